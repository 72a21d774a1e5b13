"""Messages that were handed over to where the listener is called, and what became of each."""

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
"""Flags of a message whose body is not as its producer gave it."""


@dataclass(slots=True, eq=False)
class Handed:
    """What became of messages; those that are in no list were not given to the listener.

    One thread or task changes it, and any may look at it meanwhile, or take what waits from it.

    Attributes:
        waiting: What was handed over and is not given yet, in order.
        cache: Which cache they are of; after a reset their queue has another one. None before they are handed
            over.
        current: What was given last: a message, or a batch of them.
        began_ms: On the monotonic clock: when it was given, or when the first of those was that are quick.
        is_begun: Whether the listener has been called, or is about to be.
        is_ended: Whether it is not called any more.
        done: Those that the listener was done with, and those whose TTL was over.
        open: Those that it was done with, in order, that its next ``COMMIT`` ends.
        failed: Those that it failed at.
        delay_levels: How long these are to wait, by queue offset, where the listener has said that.
        waits_for_commit: Whether those that are given up of the latter are open still.
        is_rolled_back: Whether the latter were given back without a failure.
        suspend_ms: How long the queue is to wait then; -1 for what the consumer is set to.
        expired: How many of the former it did not get.
        acks: What it has answered that says less than it seems to: a commit without a transaction.
        error: What it raised at the last of the latter, if that would end a program or a task.
        spent_ms: How long all that took.
        failures: How often messages have failed alike; None where each failure is new.
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
        """Returns it for messages of which none was given yet."""
        return cls(deque(messages))

    @property
    def at_work(self) -> Sequence[Message]:
        """The messages that the listener has now."""
        current = None if self.is_ended else self.current
        if current is None:
            return ()
        return (current,) if isinstance(current, Message) else current

    def next_batch(self, most: int, *, is_of_one_topic: bool = False) -> Sequence[Message]:
        """Takes the messages that are to be given next, so many at most; none where none waits.

        Args:
            most: How many.
            is_of_one_topic: Whether all of them are to be of one: messages of several are tried again.
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
        """Ends it where what calls the listener has failed: what that was at has failed with it."""
        ended = (*self.done, *self.open, *self.failed)
        self.failed.extend(one for one in self.at_work if one not in ended)
        self.is_ended, self.error = True, error

    def first_waiting(self) -> Message | None:
        """Returns the message that is to be given next, and leaves it; any thread may ask."""
        with suppress(IndexError):
            return self.waiting[0]
        return None

    def take_waiting(self) -> list[Message]:
        """Takes all that is not given yet, for others; any thread may."""
        taken: list[Message] = []
        with suppress(IndexError):
            while True:
                taken.append(self.waiting.pop())
        return taken[::-1]


def as_given(message: Message) -> Message:
    """Returns a message with its body as its producer gave it.

    Raises:
        BodyError: It does not inflate, or no codec is here for it.
    """
    if not message.sys_flag & STORED_OTHERWISE:
        return message
    body = body_of(message)
    return replace(message, body=body, sys_flag=message.sys_flag & ~(COMPRESSED | COMPRESSION_MASK))


def named(group: str, queue: MessageQueue, message: Message) -> str:
    """Returns what the log calls an attempt at a message.

    Args:
        group: Whose.
        queue: That it was pulled from, which may be one of the retry topic.
        message: The message, with its failures so far.
    """
    place = f"message {message.unique_key or message.message_id} of topic {message.topic}"
    attempt = f"attempt {message.reconsume_times + 1} of group {group}"
    where = f"{queue.topic}, queue {queue.queue_id} of {queue.broker_name}, offset {message.queue_offset}"
    return f"{place}, {attempt}, {where}"
