"""The offsets of a group at its brokers, read and committed by one consumer.

Source: ``RemoteBrokerOffsetStore.java``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from seglog.clock import Clock
from seglog.consumer.brokers import Brokers
from seglog.consumer.offsets.begin import Begin
from seglog.consumer.offsets.first_offsets import FirstOffsets
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, expect_header
from seglog.remoting.headers import (
    OffsetResponseHeader,
    QueryConsumerOffsetHeader,
    UpdateConsumerOffsetHeader,
)
from seglog.remoting.later import Deferred
from seglog.remoting.message_queue import MessageQueue


class OffsetStore(Protocol):
    """Where the offsets of a group are kept. Its flows run on the client's home.

    Attributes:
        owner: The client id that is sent with commits, so that a broker of ours refuses those of queues that
            another member has begun in; None where no queue is shared.
    """

    owner: str | None

    async def start_of(self, queue: MessageQueue) -> tuple[int, Begin]:
        """Returns the queue offset to go on from, and whether that is the one that is kept."""

    async def kept(self, queue: MessageQueue) -> int | None:
        """Returns the stored offset; None if there is none."""

    async def commit(self, queue: MessageQueue, queue_offset: int) -> None:
        """Stores the offset at which the group continues."""

    def persist(self) -> Deferred[None]:
        """Returns what is resolved once committed offsets survive the client; who waits for it may write."""

    def load(self) -> None:
        """Reads the offsets that the client keeps itself; called before it starts.

        Raises:
            SeglogError: They cannot be read.
        """

    def saw(self, topic: str, queues: Collection[MessageQueue]) -> None:
        """Notes the present queues of a topic; none if it does not exist."""

    def forget(self, queue: MessageQueue) -> None:
        """Notes that the topic of a queue does not exist now: the queue is new when it is there again."""


class BrokerOffsetStore:
    """Offsets that the brokers of the queues keep.

    Args:
        brokers: The brokers of the client.
        group: The consumer group.
        first: Says where to begin in a queue without an offset.
        clock: Says when a topic did not exist.
        owner: As the attribute.
    """

    def __init__(
        self, brokers: Brokers, group: str, first: FirstOffsets, clock: Clock, owner: str | None
    ) -> None:
        self.owner = owner
        self._brokers = brokers
        self._group = group
        self._first = first
        self._clock = clock
        self._gone_ms: dict[MessageQueue, int] = {}

    async def start_of(self, queue: MessageQueue) -> tuple[int, Begin]:
        """Returns the queue offset to go on from, and whether that is the one that is kept.

        Raises:
            SeglogError: The broker refuses, or there is no answer.
        """
        kept = await self._ask(queue, is_young_at_zero=True)
        if kept is not None:
            return kept, Begin.KEPT
        gone_ms = self._gone_ms.get(queue)
        first = self._first.of(queue) if gone_ms is None else self._first.of_new(queue, gone_ms)
        return await first, Begin.ANEW

    async def kept(self, queue: MessageQueue) -> int | None:
        """Returns the broker's stored offset; None if it has none.

        Raises:
            SeglogError: The broker refuses, or there is no answer.
        """
        return await self._ask(queue, is_young_at_zero=False)

    async def _ask(self, queue: MessageQueue, *, is_young_at_zero: bool) -> int | None:
        """Returns the broker's answer, which may be 0 for a young queue without an offset."""
        header = QueryConsumerOffsetHeader(
            self._group, queue.topic, queue.queue_id, set_zero_if_not_found=is_young_at_zero
        )
        answer = await self._brokers.ask(
            queue.broker_name, Request(RequestCode.QUERY_CONSUMER_OFFSET, header)
        )
        if answer.code is ResponseCode.QUERY_NOT_FOUND:
            return None
        return expect_header(answer, OffsetResponseHeader).offset

    async def commit(self, queue: MessageQueue, queue_offset: int) -> None:
        """Stores the offset at which the group continues.

        Raises:
            SeglogError: The broker refuses, or there is no answer.
        """
        header = UpdateConsumerOffsetHeader(
            self._group, queue.topic, queue.queue_id, queue_offset, self.owner
        )
        await self._brokers.order(queue.broker_name, Request(RequestCode.UPDATE_CONSUMER_OFFSET, header))

    def persist(self) -> Deferred[None]:
        """Returns what waits for the disk where the broker is in this process and its durability is SYNC."""
        return self._brokers.settle()

    def load(self) -> None:
        """Returns at once: the client keeps nothing itself."""

    def saw(self, topic: str, queues: Collection[MessageQueue]) -> None:
        """Does nothing: brokers report young queues themselves."""

    def forget(self, queue: MessageQueue) -> None:
        """Notes the first time at which the queue's topic did not exist."""
        self._gone_ms.setdefault(queue, self._clock.now_ms())
