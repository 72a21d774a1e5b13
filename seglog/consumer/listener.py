"""What an application gives a consumer: a function that is called with each message.

Of a consumer whose ``batch_size`` is above 1 it is called with a tuple of messages of one queue, one or more
of them. One with a second parameter that has no default is given a context there, see
:mod:`~seglog.consumer.contexts`.

It returns nothing (or :attr:`Consume.SUCCESS`) when it is done with the message. To get the same message
again later, it returns one of the others or raises: in order, what follows in the queue waits until then, and
where messages are consumed side by side the broker brings it again. ``message.reconsume_times`` counts the
failures. All else that it returns, ``True`` and ``False`` too, is a failure, which the log explains: it does
not say what became of the message, and taken for a success it could lose one.

One that is ``async def`` may await calls of an ``AsyncProducer``, ``sleep_ms``, and on real time all that a
task may. On virtual time it is stepped while time is moved, and may await the former two only.

Source: ``MessageListenerOrderly.java``, ``ConsumeOrderlyStatus.java``, ``ConsumeConcurrentlyStatus.java``.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from inspect import iscoroutinefunction, signature
from types import NoneType, UnionType
from typing import Annotated, Final, ForwardRef, TypeAlias, Union, get_args, get_origin

from typing_extensions import TypeVar

from seglog.arguments import refusal, shown
from seglog.consumer.contexts import ConsumeConcurrentlyContext, ConsumeOrderlyContext, Context
from seglog.errors import InvalidArgumentError
from seglog.storage.format.record import Message


class Consume(enum.Enum):
    """The result of a listener for a message.

    Attributes:
        SUCCESS: It is done; None says the same.
        SUSPEND_CURRENT_QUEUE_A_MOMENT: It has failed, and comes again: in order after ``suspend_ms``, while
            its queue waits; side by side after 10 s, 30 s, 1 m and so on, by the broker.
        RECONSUME_LATER: The same.
        COMMIT: In order only, where the context says ``auto_commit = False``: it is done, and so is all of
            the queue that succeeded before without being committed. Else it is what SUCCESS is.
        ROLLBACK: In order only, likewise: all of that comes again after ``suspend_ms``, and has not failed.
            Else it is what SUCCESS is.
    """

    SUCCESS = "SUCCESS"
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"
    RECONSUME_LATER = "RECONSUME_LATER"
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"


M = TypeVar("M", bound=Message, default=Message)
"""What a consumer gives: a ``Message``, or a ``DecodedMessage`` where it has ``decode``."""
Said: TypeAlias = Consume | Awaitable[Consume | None] | None
PlainListener: TypeAlias = Callable[[M], Consume | None]
AsyncListener: TypeAlias = Callable[[M], Awaitable[Consume | None]]
BatchListener: TypeAlias = Callable[[tuple[M, ...]], Said]
_AnyKind: TypeAlias = PlainListener[M] | AsyncListener[M] | BatchListener[M]
ConcurrentListener: TypeAlias = (
    _AnyKind[M]
    | Callable[[M, ConsumeConcurrentlyContext], Said]
    | Callable[[tuple[M, ...], ConsumeConcurrentlyContext], Said]
)
"""That of a consumer whose messages are consumed side by side."""
OrderlyListener: TypeAlias = (
    _AnyKind[M]
    | Callable[[M, ConsumeOrderlyContext], Said]
    | Callable[[tuple[M, ...], ConsumeOrderlyContext], Said]
)
"""That of a consumer whose messages come in order."""
EitherListener: TypeAlias = (
    _AnyKind[M] | Callable[[M, Context], Said] | Callable[[tuple[M, ...], Context], Said]
)
"""That of a consumer of which it is not known which of both it is."""
Listener: TypeAlias = ConcurrentListener[M] | OrderlyListener[M]
"""A function, called in a thread of its consumer; or one that is ``async def``, a task in an event loop."""
SAID: Final = (Consume, type(None))
"""What a listener returns that is not to be awaited."""
AGAIN: Final = (Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT, Consume.RECONSUME_LATER)
ENDS: Final = (Consume.COMMIT, Consume.ROLLBACK)
"""What only a listener can say whose messages come in order."""
_FORMS: Final = "a function that takes a message, or a message and a context"
_NAMES: Final = {member.value: member for member in Consume}
_UNIONS: Final = (Union, UnionType)
_WORDS: Final = re.compile(r"[\w.]+")
_WORDS_OF_UNIONS: Final = frozenset({"None", "Optional", "Union"})


class ConsumeFrom(enum.Enum):
    """Where a group starts in a queue without a committed offset.

    In any case, a queue that still has its first message in memory is consumed from there, because
    the broker says so (RocketMQ's rule for young topics).

    Attributes:
        LAST: Behind the last message: with what comes next.
        FIRST: At the oldest message that is stored.
        TIMESTAMP: At the first message that was stored at ``consume_timestamp`` or later.
    """

    LAST = "CONSUME_FROM_LAST_OFFSET"
    FIRST = "CONSUME_FROM_FIRST_OFFSET"
    TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


def is_awaited(listener: Callable[..., object]) -> bool:
    """Returns whether a listener is ``async def``, or an object whose call is."""
    return iscoroutinefunction(listener) or iscoroutinefunction(type(listener).__call__)


def takes_context(listener: Callable[..., object]) -> bool:
    """Returns whether a listener asks for a context, by a second parameter without a default.

    Raises:
        InvalidArgumentError: It can be called neither with messages alone nor with a context behind them.
    """
    try:
        form = signature(listener)
    except (TypeError, ValueError):  # of some that are written in C it is not known
        return False
    for count in (1, 2):
        with suppress(TypeError):
            form.bind(*(None,) * count)
            return count == 2
    raise refusal("listener", listener, _FORMS, f"this one is called as {form}")


def check_context(listener: Callable[..., object], *, is_in_order: bool) -> None:
    """Refuses a listener that is annotated to take the context of the other kind of consumer.

    That it takes either, as a union of both says, is right, and so is a parameter without an annotation.

    Args:
        listener: The application's.
        is_in_order: Of which kind its consumer is.

    Raises:
        InvalidArgumentError: It takes the other one, so what it sets would fail, for every message; or it can
            be called neither with messages alone nor with a context behind them.
    """
    if not takes_context(listener):
        return
    orderly, concurrent = ConsumeOrderlyContext.__name__, ConsumeConcurrentlyContext.__name__
    own, other, giver = (
        (orderly, concurrent, "a PushConsumer")
        if is_in_order
        else (concurrent, orderly, "an OrderlyConsumer")
    )
    if set(_names_in(_second_annotation(listener))) == {other}:
        advice = f"this one takes a {other}, which listeners of {giver} are given"
        raise refusal("listener", listener, f"a function that takes a message and a {own}", advice)


def _second_annotation(listener: Callable[..., object]) -> object:
    """Returns what is written at the second parameter, as text where that names what is not loaded."""
    try:
        form = signature(listener, eval_str=True)
    except Exception:  # noqa: BLE001 - the application's code, which may name what only its checker loads
        form = signature(listener)
    return [*form.parameters.values()][1].annotation


def _names_in(annotation: object) -> Iterator[str]:
    """Yields the names of the classes that an annotation is a union of, without that of None."""
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        names = {word.rpartition(".")[2] for word in _WORDS.findall(annotation)}
        yield from names - _WORDS_OF_UNIONS
    elif get_origin(annotation) is Annotated:
        yield from _names_in(get_args(annotation)[0])
    elif get_origin(annotation) in _UNIONS:
        for one in get_args(annotation):
            yield from _names_in(one)
    elif annotation is ConsumeConcurrentlyContext or annotation is ConsumeOrderlyContext:
        yield annotation.__name__
    elif annotation is not NoneType:
        yield str(annotation)


def end_of(result: object, *, is_in_order: bool) -> Consume:
    """Returns what a listener says of its messages.

    Args:
        result: What it has returned.
        is_in_order: Whether it may say what only goes in order.

    Raises:
        InvalidArgumentError: It is neither None nor a member of ``Consume``, nor the name of one; so it does
            not say what became of the messages, which therefore have to come again.
    """
    if result is None:
        return Consume.SUCCESS
    member = _NAMES.get(result) if isinstance(result, str) else result
    if isinstance(member, Consume) and (is_in_order or member not in ENDS):
        return member
    if isinstance(result, Awaitable):
        if isinstance(result, Coroutine):
            result.close()
        raise InvalidArgumentError(
            f"the listener returned a {type(result).__name__} that is to be awaited",
            help="make the listener itself `async def`",
        )
    known = [name for name, one in _NAMES.items() if is_in_order or one not in ENDS]
    raise InvalidArgumentError(
        f"the listener returned {shown(result)}, so its message comes again: expected None or one of "
        f"Consume: {', '.join(known)}",
        help="return nothing for a message that is done, Consume.RECONSUME_LATER to get it again",
    )
