"""A pull: the messages that it returns, the offset that it commits, and when it is held.

Every status of the store has its response code. A pull at the end of a queue that may be suspended returns a
:class:`HeldPull`, with the answer for the case that no message arrives: a caller in process waits with it, a
server parks it (``held_pulls.py``). After the hold the queue is read again, but nothing is committed.

A pull returns at most 32 messages or 256 KiB, and at most 8 messages or 64 KiB if they are probably no longer
in memory: further before the end of the log than ``BrokerState.hot_bytes``. The first message decides which
limit applies (RocketMQ looks at each message, so a batch may become hot on the way); it is always returned.

Source: ``PullMessageProcessor.java``, ``DefaultPullMessageResultHandler.java``; statuses and limits in
``DefaultMessageStore.java getMessage, isTheBatchFull``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from seglog.broker.pulls.broadcast_pulls import broadcast_client, broadcast_start, note_broadcast
from seglog.broker.pulls.pull_checks import Permitted, check_pull
from seglog.broker.state.refusals import fenced
from seglog.broker.state.state import BrokerState
from seglog.remoting.bodies import RecordsBody
from seglog.remoting.codes import MASTER_ID, PullFlag, ResponseCode
from seglog.remoting.command import Response
from seglog.remoting.headers import PullMessageHeader, PullMessageResponseHeader
from seglog.remoting.peer import Peer
from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.layout import I64
from seglog.storage.format.record import PHY_OFFSET_AT
from seglog.storage.reads import GetResult, MessageFilter

_CODES: Final = {
    GetStatus.FOUND: ResponseCode.SUCCESS,
    GetStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    GetStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
}

OFFSET_RESET: Final = "OFFSET_RESET"
"""Remark of the answer that notifies a client of a reset; it is not a status of the store."""


@dataclass(frozen=True, slots=True)
class HeldPull:
    """A pull that waits for a message.

    Attributes:
        header: The request's header.
        peer: The client.
        is_lite: Whether it was a LITE_PULL_MESSAGE.
        wanted: The filter of the pull.
        hold_ms: The longest hold.
        nothing_yet: The answer if no message arrives in time.
    """

    header: PullMessageHeader
    peer: Peer
    is_lite: bool
    wanted: MessageFilter | None
    hold_ms: int
    nothing_yet: Response

    def answer(self, state: BrokerState) -> Response:
        """Returns the present answer; everything may have changed since the pull was held."""
        return _look(state, self.header, self.peer, is_lite=self.is_lite).answer


def response_code(status: GetStatus, queue_offset: int) -> ResponseCode:
    """Returns the code that a status of the store becomes, for a pull at ``queue_offset``."""
    code = _CODES.get(status)
    if code is not None:
        return code
    # An empty or absent queue: a pull from its start is held, any other offset is sent back to the start.
    return ResponseCode.PULL_OFFSET_MOVED if queue_offset else ResponseCode.PULL_NOT_FOUND


def pull(
    state: BrokerState, header: PullMessageHeader, peer: Peer, *, is_lite: bool = False
) -> Response | HeldPull:
    """Returns the answer to a pull, or the held pull; commits the offset that was sent with it.

    After a reset the client is sent its new offset; the commit in that pull is stale and is ignored. A member
    that has lost the queue to another is refused, messages and commit.

    Args:
        state: The broker's.
        header: What is asked.
        peer: Who asks.
        is_lite: Whether it is a LITE_PULL_MESSAGE.
    """
    answer, permitted, status = _look(state, header, peer, is_lite=is_lite)
    if permitted is None:
        return answer
    if header.sys_flag & PullFlag.COMMIT_OFFSET:
        group, topic, queue_id = header.consumer_group, header.topic, header.queue_id
        client_id = state.clients.id_of(group, peer)
        if not state.offsets.commit(group, topic, queue_id, header.commit_offset, client_id, header.owner):
            return fenced(group, topic, queue_id)
    # Where messages were lost a hold would be useless: the answer has the next offset.
    is_end = answer.code is ResponseCode.PULL_NOT_FOUND and status is not GetStatus.OFFSET_FOUND_NULL
    if is_end and header.sys_flag & PullFlag.SUSPEND:
        config = state.config
        hold_ms = header.suspend_timeout_ms if config.long_polling_enable else config.short_polling_ms
        return HeldPull(header, peer, is_lite, permitted.wanted, max(0, hold_ms), answer)
    return answer


class _Look(NamedTuple):
    """The result of reading a queue: the answer, and if it was read, the permission and the messages."""

    answer: Response
    permitted: Permitted | None = None
    status: GetStatus | None = None


def _look(state: BrokerState, header: PullMessageHeader, peer: Peer, *, is_lite: bool) -> _Look:
    permitted = check_pull(state, header, peer, is_lite=is_lite)
    if isinstance(permitted, Response):
        return _Look(permitted)
    queue = header.consumer_group, header.topic, header.queue_id
    reset = state.offsets.take_reset(*queue)
    if reset is not None:
        state.offsets.note_pull(*queue, reset)
        return _Look(_reset(state, header, reset, permitted))
    broadcast = broadcast_client(state, header, peer)
    if broadcast is not None:
        start = broadcast_start(state, header, broadcast)
        if start is not None:
            return _Look(_reset(state, header, start, permitted))
    found = _read(state, header, permitted.wanted)
    count = _count(found, header, permitted.wanted)
    size_bytes = sum(map(len, found.runs)) if count else 0
    state.figures.note_pull(header.consumer_group, header.topic, count, size_bytes)
    answer = _answer(header, permitted, found)
    if broadcast is not None:
        is_moved = answer.code is ResponseCode.PULL_OFFSET_MOVED
        note_broadcast(state, header, broadcast, found.next_offset if is_moved else header.queue_offset)
    state.offsets.note_pull(*queue, found.next_offset)
    return _Look(answer, permitted, found.status)


def _count(found: GetResult, header: PullMessageHeader, wanted: MessageFilter | None) -> int:
    """Returns how many messages a read found; without a filter it need not look at them."""
    if found.status is not GetStatus.FOUND:
        return 0
    if wanted is not None:
        return len(found)
    return found.next_offset - header.queue_offset - sum(map(len, found.stepped_over))


def _reset(state: BrokerState, header: PullMessageHeader, offset: int, permitted: Permitted) -> Response:
    low, high = (
        find(header.topic, header.queue_id) for find in (state.store.min_offset, state.store.max_offset)
    )
    return Response(
        ResponseCode.PULL_OFFSET_MOVED,
        _header(permitted, offset, low, high),
        remark=OFFSET_RESET,
    )


def _answer(header: PullMessageHeader, permitted: Permitted, found: GetResult) -> Response:
    return Response(
        response_code(found.status, header.queue_offset),
        _header(permitted, found.next_offset, found.min_offset, found.max_offset),
        RecordsBody(found) if found.status is GetStatus.FOUND else None,
        found.status.name,
    )


def _header(permitted: Permitted, next_offset: int, low: int, high: int) -> PullMessageResponseHeader:
    return PullMessageResponseHeader(
        MASTER_ID, next_offset, low, high, permitted.topic.sys_flag, permitted.group.sys_flag
    )


def _read(state: BrokerState, header: PullMessageHeader, wanted: MessageFilter | None) -> GetResult:
    config, store = state.config, state.store
    count = max(1, min(header.max_msg_nums, config.max_pull_count))
    size_bytes = config.max_pull_bytes
    if header.max_msg_bytes is not None and header.max_msg_bytes > 0:
        size_bytes = min(size_bytes, header.max_msg_bytes)
    where = header.topic, header.queue_id, header.queue_offset
    found = store.get(*where, count, wanted, max_bytes=size_bytes)
    if found.status is not GetStatus.FOUND or not _is_cold(state, found):
        return found
    count = min(count, config.max_cold_pull_count)
    size_bytes = min(size_bytes, config.max_cold_pull_bytes)
    # The next offset of a filtered read depends on the bounds too.
    if wanted is None and len(found) <= count and sum(map(len, found.runs)) <= size_bytes:
        return found
    return store.get(*where, count, wanted, max_bytes=size_bytes)


def _is_cold(state: BrokerState, found: GetResult) -> bool:
    """Returns whether the messages begin further before the end of the log than ``hot_bytes``."""
    store = state.store
    end = store.max_phy_offset
    if end - store.min_phy_offset <= state.hot_bytes:
        return False
    phy_offset = int(I64.unpack_from(found.runs[0], PHY_OFFSET_AT)[0])
    return end - phy_offset > state.hot_bytes
