"""Offsets of a group at its broker, as one consumer reads and commits them.

Source: ``RemoteBrokerOffsetStore.java``, ``RebalancePushImpl.java computePullFromWhere``.
"""

from __future__ import annotations

from seglog.client.links import Link
from seglog.consumer.listener import ConsumeFrom
from seglog.errors import RemoteProtocolError
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


class OffsetStore:
    """Committed offsets of one group.

    Args:
        link: To the broker.
        group: Whose offsets.
        consume_from: Where to begin without an offset.
    """

    def __init__(self, link: Link, group: str, consume_from: ConsumeFrom) -> None:
        self._link = link
        self._group = group
        self._consume_from = consume_from

    def start_of(self, queue: MessageQueue) -> int:
        """Returns the queue offset to go on from.

        Raises:
            RemoteProtocolError: The broker refuses.
        """
        asked = Request(
            RequestCode.QUERY_CONSUMER_OFFSET,
            QueryConsumerOffsetHeader(self._group, queue.topic, queue.queue_id),
        )
        response = self._link.invoke(asked)
        if response.code is not ResponseCode.QUERY_NOT_FOUND:
            return expect_header(response, OffsetResponseHeader).offset
        if self._consume_from is ConsumeFrom.FIRST:
            return self._ask(RequestCode.GET_MIN_OFFSET, GetMinOffsetHeader(queue.topic, queue.queue_id))
        return self._ask(RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader(queue.topic, queue.queue_id))

    def commit(self, queue: MessageQueue, offset: int) -> None:
        """Stores where the group continues.

        Raises:
            RemoteProtocolError: The broker refuses.
        """
        header = UpdateConsumerOffsetHeader(self._group, queue.topic, queue.queue_id, offset)
        response = self._link.invoke(Request(RequestCode.UPDATE_CONSUMER_OFFSET, header))
        if response.code is not ResponseCode.SUCCESS:
            raise RemoteProtocolError(response.code, response.remark or response.code.name)

    def _ask(self, code: RequestCode, header: Header) -> int:
        return expect_header(self._link.invoke(Request(code, header)), OffsetResponseHeader).offset
