"""Answers to pulls: who may read what, and which code each status of the store becomes.

A pull that finds nothing may be held until a message arrives; then it is answered again, without being
held again. :class:`HeldPull` is that state as a value: a caller in process waits with it, a server parks
it.

The broker compares tagsCodes only. They collide, so clients compare the tags of what they get.

Source: ``PullMessageProcessor.java``; statuses in ``DefaultMessageStore.java getMessage``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from seglog.broker.group_topics import find_group
from seglog.broker.state import BrokerState
from seglog.errors import InvalidArgumentError
from seglog.remoting.bodies import RecordsBody
from seglog.remoting.codes import MASTER_ID, PullFlag, ResponseCode
from seglog.remoting.command import Response, refuse
from seglog.remoting.headers import PullMessageHeader, PullMessageResponseHeader
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription import ALL_TAGS, TAG_TYPE, parse_subscription
from seglog.remoting.topics import PERM_READ
from seglog.storage.get_status import GetStatus
from seglog.storage.message_filter import TagFilter

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
"""Remark of the answer that tells a client of a reset; no status of the store."""


@dataclass(frozen=True, slots=True)
class HeldPull:
    """A pull that waits for a message.

    Attributes:
        header: What was asked.
        wanted: The filter that was made of it.
        nothing_yet: The answer if nothing arrives in time.
        client_id: Who pulls.
    """

    header: PullMessageHeader
    wanted: TagFilter | None
    nothing_yet: Response
    client_id: str

    def answer(self, state: BrokerState) -> Response:
        """Returns the answer of now; the queue may have got another owner meanwhile."""
        refusal = _refuse_foreign(state, self.header, self.client_id)
        return _read(state, self.header, self.wanted) if refusal is None else refusal


def response_code(status: GetStatus, queue_offset: int) -> ResponseCode:
    """Returns the code that a status of the store becomes, for a pull at ``queue_offset``."""
    code = _CODES.get(status)
    if code is not None:
        return code
    # An empty or absent queue: who asks for its start waits there, everyone else is sent back to it.
    return ResponseCode.PULL_OFFSET_MOVED if queue_offset else ResponseCode.PULL_NOT_FOUND


def pull(state: BrokerState, header: PullMessageHeader, client_id: str) -> Response | HeldPull:
    """Returns the answer to a pull, or that it is to be held; commits the offset that came with it.

    After a reset the client is told where to go on; what it commits with that pull is stale.
    """
    wanted = _check(state, header)
    if isinstance(wanted, Response):
        return wanted
    refusal = _refuse_foreign(state, header, client_id)
    if refusal is not None:
        return refusal
    queue = header.consumer_group, header.topic, header.queue_id
    reset = state.offsets.take_reset(*queue)
    if reset is not None:
        state.offsets.note_pull(*queue, reset)
        return _reset(state, header, reset)
    answer = _read(state, header, wanted)
    if header.sys_flag & PullFlag.COMMIT_OFFSET:
        state.offsets.commit(*queue, header.commit_offset, client_id)
    state.offsets.note_pull(*queue, header.queue_offset)
    # Where messages were lost there is nothing to wait for: the answer says where to go on.
    is_end = answer.code is ResponseCode.PULL_NOT_FOUND and answer.remark != GetStatus.OFFSET_FOUND_NULL.name
    if is_end and header.sys_flag & PullFlag.SUSPEND:
        return HeldPull(header, wanted, answer, client_id)
    return answer


def _check(state: BrokerState, header: PullMessageHeader) -> TagFilter | Response | None:
    group = find_group(state, header.consumer_group)
    if group is None:
        return refuse(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            f"subscription group [{header.consumer_group}] does not exist",
        )
    if not group.is_consume_enabled:
        return refuse(
            ResponseCode.NO_PERMISSION,
            f"subscription group no permission, {header.consumer_group}",
        )
    topic = state.topics.get(header.topic)
    if topic is None:
        return refuse(ResponseCode.TOPIC_NOT_EXIST, f"topic[{header.topic}] not exist, apply first please!")
    if not topic.perm & PERM_READ:
        return refuse(ResponseCode.NO_PERMISSION, f"the topic[{header.topic}] pulling message is forbidden")
    if not 0 <= header.queue_id < topic.read_queue_nums:
        return refuse(
            ResponseCode.INVALID_PARAMETER,
            f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}]"
            f" topicConfig.readQueueNums:[{topic.read_queue_nums}] consumer:[{header.consumer_group}]",
        )
    if not header.sys_flag & PullFlag.SUBSCRIPTION:
        # Without it the broker uses what a heartbeat of the group told it, and no group has sent one.
        return refuse(ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's group info not exist")
    if header.expression_type not in (None, TAG_TYPE):
        return refuse(
            ResponseCode.SYSTEM_ERROR,
            f"The broker does not support consumer to filter message by {header.expression_type}",
        )
    if not header.subscription or header.subscription == ALL_TAGS:
        return None
    try:
        return TagFilter(parse_subscription(header.subscription).expression, exact=False)
    except InvalidArgumentError:
        return refuse(ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed")


def _refuse_foreign(state: BrokerState, header: PullMessageHeader, client_id: str) -> Response | None:
    """Returns why a client cannot pull a queue that another one has locked, None if it can."""
    if not state.config.strict_queue_lock:
        return None
    queue = MessageQueue(header.topic, state.config.broker_name, header.queue_id)
    owner = state.locks.owner(header.consumer_group, queue)
    if owner in (None, client_id):
        return None
    return refuse(
        ResponseCode.NO_PERMISSION,
        f"the queue {header.topic}/{header.queue_id} is locked by client {owner}"
        f" of group {header.consumer_group}",
    )


def _reset(state: BrokerState, header: PullMessageHeader, offset: int) -> Response:
    low, high = (
        find(header.topic, header.queue_id) for find in (state.store.min_offset, state.store.max_offset)
    )
    return Response(
        ResponseCode.PULL_OFFSET_MOVED,
        PullMessageResponseHeader(MASTER_ID, offset, low, high),
        remark=OFFSET_RESET,
    )


def _read(state: BrokerState, header: PullMessageHeader, wanted: TagFilter | None) -> Response:
    config = state.config
    found = state.store.get(
        header.topic,
        header.queue_id,
        header.queue_offset,
        max(1, min(header.max_msg_nums, config.max_pull_count)),
        wanted,
        max_bytes=max(1, min(header.max_msg_bytes or config.max_pull_bytes, config.max_pull_bytes)),
    )
    return Response(
        response_code(found.status, header.queue_offset),
        PullMessageResponseHeader(MASTER_ID, found.next_offset, found.min_offset, found.max_offset),
        RecordsBody(found.records) if found.records else None,
        found.status.name,
    )
