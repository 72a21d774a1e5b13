"""What a listener that takes a second parameter is given beside its messages, new for each call.

It reads where they are from, and sets what is to become of them. What is set counts once it returns.

Source: ``ConsumeConcurrentlyContext.java``, ``ConsumeOrderlyContext.java``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from seglog.arguments import MAX_I32, as_flag, as_int, as_number
from seglog.remoting.message_queue import MessageQueue

AS_SET: Final = -1
"""``suspend_ms`` of the consumer."""


@dataclass(slots=True)
class ConsumeConcurrentlyContext:
    """For messages that are consumed side by side.

    Attributes:
        queue: That they were pulled from, which may be one of the group's retry topic.
        started_ms: When the listener was called, on the wall clock; ``CONSUME_START_TIME`` in Java.
        delay_level: How long those wait that failed: a level of the broker, 0 for longer after every failure,
            and below 0 for a dead letter now.
        ack_index: The last message of the batch that is done, where the listener returns success: those
            behind it have failed. -1 for none; what is beyond the batch is all of it.
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
    """For messages of a queue that is consumed in order.

    Attributes:
        queue: That they were pulled from.
        started_ms: When the listener was called, on the wall clock.
        auto_commit: Whether a success commits. Else it only goes on: ``Consume.COMMIT`` commits all that has
            succeeded since, ``Consume.ROLLBACK`` has all of it come again.
        suspend_ms: How long the queue waits if it has to, from 10 to 30,000; -1 for what the consumer is
            set to.
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
