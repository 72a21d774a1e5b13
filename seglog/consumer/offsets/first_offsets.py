"""The begin of a group in a queue without an offset, and requests for offsets of queues.

Source: ``RebalancePushImpl.java computePullFromWhereWithException``.
"""

from __future__ import annotations

from typing import Final

from seglog.consumer.brokers import Brokers
from seglog.consumer.listener import ConsumeFrom
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Header, Request
from seglog.remoting.headers import (
    GetMaxOffsetHeader,
    GetMinOffsetHeader,
    OffsetResponseHeader,
    SearchOffsetHeader,
)
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.names import RETRY_PREFIX

CLOCKS_APART_MS: Final = 60_000
"""Largest assumed lead of a client's clock over a broker's, so that no first message is missed."""


class FirstOffsets:
    """Asks brokers where a group begins. Its flows run on the client's home.

    Args:
        brokers: The brokers of the client.
        consume_from: The kind of place.
        timestamp_ms: The store time for ``ConsumeFrom.TIMESTAMP``.
    """

    def __init__(self, brokers: Brokers, consume_from: ConsumeFrom, timestamp_ms: int) -> None:
        self._brokers = brokers
        self._consume_from = consume_from
        self._timestamp_ms = timestamp_ms

    async def of(self, queue: MessageQueue) -> int:
        """Returns the queue offset to begin at.

        Raises:
            SeglogError: The broker refuses, or there is no answer.
        """
        is_retry = queue.topic.startswith(RETRY_PREFIX)
        if self._consume_from is ConsumeFrom.TIMESTAMP and not is_retry:
            return await offset_at(self._brokers, queue, self._timestamp_ms)
        if self._consume_from is ConsumeFrom.FIRST and not is_retry:
            return await min_offset(self._brokers, queue)
        if self._consume_from is not ConsumeFrom.TIMESTAMP and is_retry:
            return 0  # a retry topic belongs to this group, and none of its messages may be missed
        return await max_offset(self._brokers, queue)

    async def of_new(self, queue: MessageQueue, seen_ms: int) -> int:
        """Returns the queue offset to begin at in a queue that appeared while the consumer runs.

        For a new queue this is its first message. A queue whose broker was down when the consumer started may
        be old: then it is the first message stored since.

        Args:
            queue: The queue.
            seen_ms: A time at which it was missing, by the client's wall clock.

        Raises:
            SeglogError: The broker refuses, or there is no answer.
        """
        if self._consume_from is not ConsumeFrom.LAST:
            return await self.of(queue)
        return await offset_at(self._brokers, queue, seen_ms - CLOCKS_APART_MS)


async def min_offset(brokers: Brokers, queue: MessageQueue) -> int:
    """Returns the offset of a queue's oldest message.

    Raises:
        SeglogError: The broker refuses, or there is no answer.
    """
    header = GetMinOffsetHeader(queue.topic, queue.queue_id)
    return await _ask(brokers, queue, RequestCode.GET_MIN_OFFSET, header)


async def max_offset(brokers: Brokers, queue: MessageQueue) -> int:
    """Returns the offset of a queue's next message.

    Raises:
        SeglogError: The broker refuses, or there is no answer.
    """
    header = GetMaxOffsetHeader(queue.topic, queue.queue_id)
    return await _ask(brokers, queue, RequestCode.GET_MAX_OFFSET, header)


async def offset_at(brokers: Brokers, queue: MessageQueue, timestamp_ms: int) -> int:
    """Returns the offset of the first message that was stored at a time or later.

    Raises:
        SeglogError: The broker refuses, or there is no answer.
    """
    header = SearchOffsetHeader(queue.topic, queue.queue_id, timestamp_ms)
    return await _ask(brokers, queue, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)


async def _ask(brokers: Brokers, queue: MessageQueue, code: RequestCode, header: Header) -> int:
    found = await brokers.ask_for(queue.broker_name, Request(code, header), OffsetResponseHeader)
    return found.offset
