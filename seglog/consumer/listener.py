"""What an application gives a consumer: a function that is called with each message.

It returns nothing (or :attr:`Consume.SUCCESS`) when it is done with the message. To get the same message
again later, it returns :attr:`Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT` or raises; what follows in the
queue waits until then. ``message.reconsume_times`` counts the failures.

Source: ``MessageListenerOrderly.java``, ``ConsumeOrderlyStatus.java``.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TypeAlias

from seglog.storage.format.record import Message


class Consume(enum.Enum):
    """What became of a message."""

    SUCCESS = "SUCCESS"
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"


Listener: TypeAlias = Callable[[Message], Consume | None]


class ConsumeFrom(enum.Enum):
    """Where a group begins in a queue that it never committed an offset for.

    In any case, a queue that still has its first message in memory is consumed from there, because
    the broker says so (RocketMQ's rule for young topics).
    """

    LAST = "CONSUME_FROM_LAST_OFFSET"
    FIRST = "CONSUME_FROM_FIRST_OFFSET"
