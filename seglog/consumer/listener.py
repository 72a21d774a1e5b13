"""What an application gives a consumer: a function that is called with each message.

It returns nothing (or :attr:`Consume.SUCCESS`) when it is done with the message. To get the same message
again later, it returns one of the others or raises: in order, what follows in the queue waits until then, and
where messages are consumed side by side the broker brings it again. ``message.reconsume_times`` counts the
failures.

Source: ``MessageListenerOrderly.java``, ``ConsumeOrderlyStatus.java``, ``ConsumeConcurrentlyStatus.java``.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable
from typing import Final, TypeAlias

from seglog.arguments import as_enum
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record import Message


class Consume(enum.Enum):
    """What became of a message."""

    SUCCESS = "SUCCESS"
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"
    RECONSUME_LATER = "RECONSUME_LATER"


Listener: TypeAlias = Callable[[Message], Consume | None]
_AGAIN: Final = (Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT, Consume.RECONSUME_LATER)
_log = logging.getLogger(__name__)


class ConsumeFrom(enum.Enum):
    """Where a group begins in a queue that it never committed an offset for.

    In any case, a queue that still has its first message in memory is consumed from there, because
    the broker says so (RocketMQ's rule for young topics).
    """

    LAST = "CONSUME_FROM_LAST_OFFSET"
    FIRST = "CONSUME_FROM_FIRST_OFFSET"


def is_done_by(listener: Listener, message: Message, queue: MessageQueue) -> bool:
    """Calls a listener; returns whether it is done with the message. An error of its is logged.

    Raises:
        BaseException: What the listener raises that is no ``Exception``, such as ``SystemExit``.
    """
    try:
        return not is_again(listener(message))
    except Exception:  # noqa: BLE001 - the application's code: on any error the message comes again
        _log.warning("the listener failed at %s, offset %d", queue, message.queue_offset, exc_info=True)
        return False


def is_again(result: object) -> bool:
    """Returns whether a listener wants a message again, by what it returned.

    Raises:
        InvalidArgumentError: It is the name of no member of ``Consume``.
    """
    if isinstance(result, str):
        result = as_enum("what the listener returned", Consume, result)
    return result in _AGAIN
