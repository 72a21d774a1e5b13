"""Messages that were handed over to a listener's thread or task, and the result of each."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from seglog.consumer.hands.failures import Failures
from seglog.consumer.listener import Consume
from seglog.consumer.message_bodies import body_of
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record import COMPRESSED, COMPRESSION_MASK, INNER_BATCH, Message

STORED_OTHERWISE: Final = COMPRESSED | INNER_BATCH
"""Flags of a message whose stored body differs from the producer's."""


@dataclass(slots=True, eq=False)
class Handed:
    """The results of messages; messages in no list were not given to the listener.

    One thread or task changes it; any thread may read it meanwhile, or take waiting messages from it.

    Attributes:
        waiting: Messages that were handed over and not given yet, in order.
        cache: The cache that they are of; after a reset their queue has another one. None before they are
            handed over.
        current: The message or batch that was given last.
        began_ms: Monotonic time when it was given; for a series of quick messages, when the first was given.
        is_begun: Whether the listener was called, or is about to be called.
        is_ended: Whether it will not be called again.
        done: Messages that the listener finished, and those whose TTL had passed.
        open: Messages that it finished, in order, which its next ``COMMIT`` ends.
        failed: Messages that it failed at.
        delay_levels: The delay levels of these, by queue offset, if the listener has set them.
        waits_for_commit: Whether failed messages that are given up stay open until a ``COMMIT``.
        is_rolled_back: Whether the failed ones were rolled back and do not count as failures.
        suspend_ms: How long the queue waits then; -1 for the consumer's setting.
        expired: How many of the done messages it did not get.
        acks: Results that have no effect here, such as a commit without a transaction.
        error: The exception at the last failed message, if it would end a program or a task.
        spent_ms: The duration of all calls.
        failures: Counts similar failures; None if each failure is new.
    """

    waiting: deque[Message]
    cache: object = None
    current: Message | Sequence[Message] | None = None
    began_ms: float = 0.0
    is_begun: bool = False
    is_ended: bool = False
    done: list[Message] = field(default_factory=list)
    open: list[Message] = field(default_factory=list)
    failed: list[Message] = field(default_factory=list)
    delay_levels: dict[int, int] = field(default_factory=dict)
    waits_for_commit: bool = False
    is_rolled_back: bool = False
    suspend_ms: float = -1
    expired: int = 0
    acks: Consume | None = None
    error: BaseException | None = None
    spent_ms: float = 0.0
    failures: Failures | None = None

    @classmethod
    def of(cls, messages: Sequence[Message]) -> Handed:
        """Returns an object for messages of which none was given yet."""
        return cls(deque(messages))

    @property
    def at_work(self) -> Sequence[Message]:
        """The messages that the listener is processing."""
        current = None if self.is_ended else self.current
        if current is None:
            return ()
        return (current,) if isinstance(current, Message) else current

    def next_batch(self, most: int, *, is_of_one_topic: bool = False) -> Sequence[Message]:
        """Takes the messages to give next; none if none waits.

        Args:
            most: The most messages.
            is_of_one_topic: Whether all must be of one topic: retried messages of a queue may be of several.
        """
        batch: list[Message] = []
        with suppress(IndexError):
            while len(batch) < most:
                if is_of_one_topic and batch and self.waiting[0].topic != batch[0].topic:
                    break
                batch.append(self.waiting.popleft())
        if batch:
            self.current = batch
        return batch

    def give_up(self, error: BaseException) -> None:
        """Ends it after a failure of the code around the listener: the current messages have failed too."""
        ended = (*self.done, *self.open, *self.failed)
        self.failed.extend(one for one in self.at_work if one not in ended)
        self.is_ended, self.error = True, error

    def first_waiting(self) -> Message | None:
        """Returns the message to give next without taking it; any thread may call it."""
        with suppress(IndexError):
            return self.waiting[0]
        return None

    def take_waiting(self) -> list[Message]:
        """Takes all waiting messages, for other threads; any thread may call it."""
        taken: list[Message] = []
        with suppress(IndexError):
            while True:
                taken.append(self.waiting.pop())
        return taken[::-1]


def as_given(message: Message) -> Message:
    """Returns a message with the original body of its producer.

    Raises:
        BodyError: It does not inflate, or its codec is not installed.
    """
    if not message.sys_flag & STORED_OTHERWISE:
        return message
    body = body_of(message)
    return replace(message, body=body, sys_flag=message.sys_flag & ~(COMPRESSED | COMPRESSION_MASK))


def named(group: str, queue: MessageQueue, message: Message) -> str:
    """Returns the text that names an attempt at a message in the log.

    Args:
        group: The consumer group.
        queue: The queue that it was pulled from; it may be one of the retry topic.
        message: The message, with its failures so far.
    """
    place = f"message {message.unique_key or message.message_id} of topic {message.topic}"
    attempt = f"attempt {message.reconsume_times + 1} of group {group}"
    where = f"{queue.topic}, queue {queue.queue_id} of {queue.broker_name}, offset {message.queue_offset}"
    return f"{place}, {attempt}, {where}"
