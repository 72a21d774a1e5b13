"""The context: the second argument of a listener that takes one, new for each call.

The listener reads from it where the messages are from, and sets on it how they end. Its settings count once
the listener returns.

Source: ``ConsumeConcurrentlyContext.java``, ``ConsumeOrderlyContext.java``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from seglog.arguments import MAX_I32, as_flag, as_int, as_number
from seglog.remoting.message_queue import MessageQueue

AS_SET: Final = -1
"""Stands for the ``suspend_ms`` of the consumer."""


@dataclass(slots=True)
class ConsumeConcurrentlyContext:
    """The context of a concurrent consumer's listener.

    Attributes:
        queue: The queue that the messages were pulled from; it may be one of the group's retry topic.
        started_ms: When the listener was called, on the wall clock; ``CONSUME_START_TIME`` in Java.
        delay_level: The delay of failed messages: a level of the broker; 0 for a delay that grows with each
            failure; below 0 for a dead letter now.
        ack_index: Index of the last message of the batch that is done, if the listener returns success: the
            messages behind it have failed. -1 for none; an index beyond the batch means all.
    """

    queue: MessageQueue
    started_ms: int
    delay_level: int = 0
    ack_index: int = MAX_I32

    def check(self) -> None:
        """Checks what the listener has set.

        Raises:
            InvalidArgumentError: It is no number, or out of its bounds.
        """
        as_int("delay_level", self.delay_level, -MAX_I32, MAX_I32)
        as_int("ack_index", self.ack_index, -1, MAX_I32)


@dataclass(slots=True)
class ConsumeOrderlyContext:
    """The context of an orderly consumer's listener.

    Attributes:
        queue: The queue that the messages were pulled from.
        started_ms: When the listener was called, on the wall clock.
        auto_commit: Whether a success commits. If not, a success only continues with the next batch;
            ``Consume.COMMIT`` then commits all that has succeeded since, and with ``Consume.ROLLBACK`` all of
            that is delivered again.
        suspend_ms: How long the queue waits after a failure, from 10 to 30,000; -1 for the consumer's
            setting.
    """

    queue: MessageQueue
    started_ms: int
    auto_commit: bool = True
    suspend_ms: float = AS_SET

    def check(self) -> None:
        """Checks what the listener has set.

        Raises:
            InvalidArgumentError: It is of another type, or out of its bounds.
        """
        as_flag("auto_commit", self.auto_commit)
        as_number("suspend_ms", self.suspend_ms, AS_SET)


Context: TypeAlias = ConsumeConcurrentlyContext | ConsumeOrderlyContext
