"""Combines the listeners of one consumer, one for each topic, into one; and registers them.

A retried message is passed to the listener of the topic that it was sent to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Generic, TypeVar, overload

from typing_extensions import override

from seglog.arguments import refusal
from seglog.consumer.contexts import Context
from seglog.consumer.listener import Listener, M, Said, is_awaited, takes_context
from seglog.errors import ConsumerError
from seglog.storage.format.record import Message

Given = Message | tuple[Message, ...]
R = TypeVar("R", bound=Said)
C = TypeVar("C", bound=Context)
Plain = Callable[[Callable[[], object]], Awaitable[object]]
"""Calls a plain listener outside of the event loop, which must not wait for it."""
_EXPECTED: Final = "a function that takes a message"


class ByTopic:
    """Calls the listener of a message's topic.

    Args:
        listeners: By topic.

    Attributes:
        takes_context: Whether any of them takes a context.
    """

    def __init__(self, listeners: Mapping[str, Listener[Any]]) -> None:
        self._calls: dict[str, tuple[Callable[..., object], bool]] = {
            topic: (listener, takes_context(listener)) for topic, listener in listeners.items()
        }
        self.takes_context = any(takes for _, takes in self._calls.values())

    def __call__(self, given: Given, context: object = None) -> object:
        """Calls it.

        Raises:
            ConsumerError: There is none of the topic.
        """
        listener, takes = self._of(given)
        return listener(given, context) if takes else listener(given)

    def _of(self, given: Given) -> tuple[Callable[..., object], bool]:
        topic = (given if isinstance(given, Message) else given[0]).topic
        found = self._calls.get(topic)
        if found is None:
            raise ConsumerError(
                f"no listener is registered for topic {topic}: there are those of {', '.join(self._calls)}",
                help=f'register one: @consumer.on("{topic}")',
            )
        return found


class AwaitedByTopic(ByTopic):
    """The same if some listeners are ``async def``: it is awaited itself, and calls the plain ones.

    Attributes:
        plain: Calls a plain listener; None to call it at once.
    """

    def __init__(self, listeners: Mapping[str, Listener[Any]]) -> None:
        super().__init__(listeners)
        self.plain: Plain | None = None
        self.are_all_awaited = all(is_awaited(listener) for listener in listeners.values())

    @override
    async def __call__(self, given: Given, context: object = None) -> object:
        """Calls it, and awaits the result if it is awaitable.

        Raises:
            ConsumerError: There is none of the topic.
        """
        listener, takes = self._of(given)
        arguments = (given, context) if takes else (given,)
        if is_awaited(listener):
            return await listener(*arguments)  # type: ignore[misc]  # what an async listener returns
        if self.plain is None:
            return listener(*arguments)
        return await self.plain(lambda: listener(*arguments))


def called_as_one(listeners: Mapping[str, Listener[Any]]) -> ByTopic:
    """Returns a listener that calls the listener of each message's topic."""
    kind = AwaitedByTopic if any(map(is_awaited, listeners.values())) else ByTopic
    return kind(listeners)


class On(Generic[C, M]):
    """Registers a listener for a topic, as a decorator.

    Args:
        register: Called with the listener; raises if no message can be given to it.
    """

    def __init__(self, register: Callable[[Listener[M]], None]) -> None:
        self._register = register

    @overload
    def __call__(self, listener: Callable[[M], R]) -> Callable[[M], R]: ...
    @overload
    def __call__(self, listener: Callable[[M, C], R]) -> Callable[[M, C], R]: ...
    @overload
    def __call__(self, listener: Callable[[tuple[M, ...]], R]) -> Callable[[tuple[M, ...]], R]: ...
    @overload
    def __call__(self, listener: Callable[[tuple[M, ...], C], R]) -> Callable[[tuple[M, ...], C], R]: ...
    def __call__(self, listener: Any) -> Any:
        """Registers a listener, and returns it unchanged.

        Raises:
            InvalidArgumentError: It cannot be called with a message, or with a context of this kind of
                consumer.
        """
        if not callable(listener):
            raise refusal("listener", listener, _EXPECTED)
        self._register(listener)
        return listener
