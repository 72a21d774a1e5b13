"""The listener: an application's function, which a consumer calls with each message.

If ``batch_size`` is above 1 it is called with a tuple of one or more messages of one queue. A listener with a
second parameter without a default is also given a context, see :mod:`~seglog.consumer.contexts`.

It returns None (or :attr:`Consume.SUCCESS`) when the message is done. To get the same message again later, it
returns another member of ``Consume`` or raises: an orderly consumer then makes the rest of the queue wait,
and for a concurrent consumer the broker delivers the message again. ``message.reconsume_times`` counts the
failures. Any other result, ``True`` and ``False`` included, is a failure, which the log explains: the result
of the message is unclear, and counting it as a success could lose the message.

An ``async def`` listener may await calls of an ``AsyncProducer``, ``sleep_ms``, and on real time anything
that a task may await. On virtual time it is stepped while time is moved, and may await only the first two.

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

from typing_extensions import TypeVar, override

from seglog.arguments import refusal, shown
from seglog.consumer.contexts import ConsumeConcurrentlyContext, ConsumeOrderlyContext, Context
from seglog.errors import InvalidArgumentError
from seglog.storage.format.record import Message


class Consume(enum.Enum):
    """The result of a listener for a message.

    Attributes:
        SUCCESS: It is done; the same as None.
        SUSPEND_CURRENT_QUEUE_A_MOMENT: It has failed, and is delivered again: by an orderly consumer after
            ``suspend_ms``, while its queue waits; by the broker of a concurrent one after 10 s, 30 s, 1 m and
            so on.
        RECONSUME_LATER: The same.
        COMMIT: For orderly consumers with ``auto_commit = False`` in the context: it is done, and so are all
            earlier messages of the queue that succeeded without a commit. Otherwise the same as SUCCESS.
        ROLLBACK: Likewise: all these messages are delivered again after ``suspend_ms``, and do not count as
            failed. Otherwise the same as SUCCESS.
    """

    SUCCESS = "SUCCESS"
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"
    RECONSUME_LATER = "RECONSUME_LATER"
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"


M = TypeVar("M", bound=Message, default=Message)
"""The messages of a consumer: ``Message``, or ``DecodedMessage`` if it has ``decode``."""
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
"""A listener of a concurrent consumer."""
OrderlyListener: TypeAlias = (
    _AnyKind[M]
    | Callable[[M, ConsumeOrderlyContext], Said]
    | Callable[[tuple[M, ...], ConsumeOrderlyContext], Said]
)
"""A listener of an orderly consumer."""
EitherListener: TypeAlias = (
    _AnyKind[M] | Callable[[M, Context], Said] | Callable[[tuple[M, ...], Context], Said]
)
"""A listener of a consumer of either kind."""
Listener: TypeAlias = ConcurrentListener[M] | OrderlyListener[M]
"""A plain function, called in a thread of its consumer, or an ``async def`` one, a task in an event loop."""
SAID: Final = (Consume, type(None))
"""The results of a plain listener."""
AGAIN: Final = (Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT, Consume.RECONSUME_LATER)
ENDS: Final = (Consume.COMMIT, Consume.ROLLBACK)
"""The results that only an orderly consumer's listener may return."""
_FORMS: Final = "a function that takes a message, or a message and a context"
_NAMES: Final = {member.value: member for member in Consume}
_UNIONS: Final = (Union, UnionType)
_WORDS: Final = re.compile(r"[\w.]+")
_WORDS_OF_UNIONS: Final = frozenset({"None", "Optional", "Union"})


class ConsumeFrom(enum.Enum):
    """Where a group starts in a queue without a committed offset.

    In any case a queue that still has its first message in memory is consumed from there, by the broker's
    answer (RocketMQ's rule for young topics).

    Attributes:
        LAST: Behind the last message, with the next one that is stored. RocketMQ has three deprecated names
            for it, of which each is taken as text: :data:`ALSO_LAST`.
        FIRST: At the oldest message that is stored.
        TIMESTAMP: At the first message that was stored at ``consume_timestamp`` or later.
    """

    LAST = "CONSUME_FROM_LAST_OFFSET"
    FIRST = "CONSUME_FROM_FIRST_OFFSET"
    TIMESTAMP = "CONSUME_FROM_TIMESTAMP"

    @classmethod
    @override
    def _missing_(cls, value: object) -> ConsumeFrom | None:
        return cls.LAST if value in ALSO_LAST else None


ALSO_LAST: Final = (
    "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
    "CONSUME_FROM_MIN_OFFSET",
    "CONSUME_FROM_MAX_OFFSET",
)
"""Deprecated names of ``ConsumeFromWhere.java``; ``RebalancePushImpl.java`` begins at the end with each."""


def is_awaited(listener: Callable[..., object]) -> bool:
    """Returns whether a listener is ``async def``, or an object whose ``__call__`` is."""
    return iscoroutinefunction(listener) or iscoroutinefunction(type(listener).__call__)


def takes_context(listener: Callable[..., object]) -> bool:
    """Returns whether a listener takes a context: it has a second parameter without a default.

    Raises:
        InvalidArgumentError: It can be called neither with messages alone nor with a context behind them.
    """
    try:
        form = signature(listener)
    except (TypeError, ValueError):  # some functions in C have no signature
        return False
    for count in (1, 2):
        with suppress(TypeError):
            form.bind(*(None,) * count)
            return count == 2
    raise refusal("listener", listener, _FORMS, f"this one is called as {form}")


def check_context(listener: Callable[..., object], *, is_in_order: bool) -> None:
    """Refuses a listener annotated with the context of the other kind of consumer.

    A union of both contexts is accepted, and so is a parameter without an annotation.

    Args:
        listener: The application's.
        is_in_order: Whether its consumer is orderly.

    Raises:
        InvalidArgumentError: It takes the other context, so its settings would fail for every message; or it
            can be called neither with messages alone nor with messages and a context.
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
    """Returns the annotation of the second parameter, as text if a name in it is not loaded."""
    try:
        form = signature(listener, eval_str=True)
    except Exception:  # noqa: BLE001 - the application's annotation, whose names may be loaded only for type checkers
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
    """Returns the result of a listener as a ``Consume``.

    Args:
        result: Its return value.
        is_in_order: Whether results of orderly consumers are valid.

    Raises:
        InvalidArgumentError: It is neither None nor a member of ``Consume``, nor the name of one; so the
            result of the messages is unclear, and they must be delivered again.
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
