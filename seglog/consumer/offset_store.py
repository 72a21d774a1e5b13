"""Offsets of a group at its brokers, as one consumer reads and commits them.

Source: ``RemoteBrokerOffsetStore.java``, ``RebalancePushImpl.java computePullFromWhere``.
"""

from __future__ import annotations

from typing import Protocol

from seglog.consumer.brokers import Brokers
from seglog.consumer.listener import ConsumeFrom
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Header, Request, expect_header
from seglog.remoting.headers import (
    GetMaxOffsetHeader,
    GetMinOffsetHeader,
    OffsetResponseHeader,
    QueryConsumerOffsetHeader,
    UpdateConsumerOffsetHeader,
)
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.names import RETRY_PREFIX


class OffsetStore(Protocol):
    """Where the offsets of a group are kept. Its flows run on the client's home."""

    async def start_of(self, queue: MessageQueue) -> int:
        """Returns the queue offset to go on from."""

    async def commit(self, queue: MessageQueue, queue_offset: int) -> None:
        """Keeps where the group continues."""


class BrokerOffsetStore:
    """Offsets that the brokers of the queues keep.

    Args:
        brokers: Of the client.
        group: Whose offsets.
        consume_from: Where to begin without an offset.
    """

    def __init__(self, brokers: Brokers, group: str, consume_from: ConsumeFrom) -> None:
        self._brokers = brokers
        self._group = group
        self._consume_from = consume_from

    async def start_of(self, queue: MessageQueue) -> int:
        """Returns the queue offset to go on from.

        Raises:
            SeglogError: The broker refuses, or there is no answer.
        """
        header = QueryConsumerOffsetHeader(self._group, queue.topic, queue.queue_id)
        answer = await self._brokers.ask(
            queue.broker_name, Request(RequestCode.QUERY_CONSUMER_OFFSET, header)
        )
        if answer.code is not ResponseCode.QUERY_NOT_FOUND:
            return expect_header(answer, OffsetResponseHeader).offset
        if queue.topic.startswith(RETRY_PREFIX):
            return 0  # what is retried is of this group, and none of it is to be missed
        if self._consume_from is ConsumeFrom.FIRST:
            return await self._ask(
                queue, RequestCode.GET_MIN_OFFSET, GetMinOffsetHeader(queue.topic, queue.queue_id)
            )
        return await self._ask(
            queue, RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader(queue.topic, queue.queue_id)
        )

    async def commit(self, queue: MessageQueue, queue_offset: int) -> None:
        """Stores where the group continues.

        Raises:
            SeglogError: The broker refuses, or there is no answer.
        """
        header = UpdateConsumerOffsetHeader(self._group, queue.topic, queue.queue_id, queue_offset)
        await self._brokers.order(queue.broker_name, Request(RequestCode.UPDATE_CONSUMER_OFFSET, header))

    async def _ask(self, queue: MessageQueue, code: RequestCode, header: Header) -> int:
        found = await self._brokers.ask_for(queue.broker_name, Request(code, header), OffsetResponseHeader)
        return found.offset
