"""What an application gives a consumer: a function that is called with each message.

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
from collections.abc import Awaitable, Callable, Coroutine
from inspect import iscoroutinefunction
from typing import Final, TypeAlias

from seglog.arguments import shown
from seglog.errors import InvalidArgumentError
from seglog.storage.format.record import Message


class Consume(enum.Enum):
    """What became of a message."""

    SUCCESS = "SUCCESS"
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"
    RECONSUME_LATER = "RECONSUME_LATER"


PlainListener: TypeAlias = Callable[[Message], Consume | None]
AsyncListener: TypeAlias = Callable[[Message], Awaitable[Consume | None]]
Listener: TypeAlias = PlainListener | AsyncListener
"""A function, called in a thread of its consumer; or one that is ``async def``, a task in an event loop."""
SAID: Final = (Consume, type(None))
"""What a listener returns that is not to be awaited."""
_AGAIN: Final = (Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT, Consume.RECONSUME_LATER)
_SAYS: Final = f"one of Consume: {', '.join(member.value for member in Consume)}"


class ConsumeFrom(enum.Enum):
    """Where a group begins in a queue that it never committed an offset for.

    In any case, a queue that still has its first message in memory is consumed from there, because
    the broker says so (RocketMQ's rule for young topics).
    """

    LAST = "CONSUME_FROM_LAST_OFFSET"
    FIRST = "CONSUME_FROM_FIRST_OFFSET"


def is_awaited(listener: Listener) -> bool:
    """Returns whether a listener is ``async def``, or an object whose call is."""
    return iscoroutinefunction(listener) or iscoroutinefunction(type(listener).__call__)


def is_again(result: object) -> bool:
    """Returns whether a listener wants a message again, by what it returned.

    Raises:
        InvalidArgumentError: It is neither None nor a member of ``Consume``, nor the name of one; so it does
            not say what became of the message, which therefore has to come again.
    """
    if result is None:
        return False
    if isinstance(result, str):
        for member in Consume:
            if member.value == result:
                return member in _AGAIN
    elif isinstance(result, Consume):
        return result in _AGAIN
    elif isinstance(result, Awaitable):
        if isinstance(result, Coroutine):
            result.close()
        raise InvalidArgumentError(
            f"the listener returned a {type(result).__name__} that is to be awaited",
            help="make the listener itself `async def`",
        )
    raise InvalidArgumentError(
        f"the listener returned {shown(result)}, so its message comes again: expected None or {_SAYS}",
        help="return nothing for a message that is done, Consume.RECONSUME_LATER to get it again",
    )
