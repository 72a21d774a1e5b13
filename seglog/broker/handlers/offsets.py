"""Requests about offsets: those that groups commit, and the ranges of queues.

Source: ``ConsumerManageProcessor.java``, ``AdminBrokerProcessor.java``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from seglog.broker.access import Action, Resource
from seglog.broker.handlers.handler import Call, Handler
from seglog.broker.handlers.touching import named, of_consumer_group, of_group, of_topic
from seglog.broker.state.refusals import fenced
from seglog.broker.state.state import BrokerState
from seglog.broker.state.young_queue import is_young
from seglog.remoting.bodies import ResetOffsetsBody
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, refuse
from seglog.remoting.headers import (
    CloneGroupOffsetHeader,
    GetMaxOffsetHeader,
    GetMinOffsetHeader,
    OffsetResponseHeader,
    QueryConsumerOffsetHeader,
    ResetOffsetHeader,
    SearchOffsetHeader,
    UpdateConsumerOffsetHeader,
)
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.store import MessageStore
from seglog.storage.threads import check_may_wait


def query_consumer_offset(state: BrokerState, call: Call[QueryConsumerOffsetHeader]) -> Response:
    """Says where a group continues in a queue.

    A group without an offset starts at 0 in a queue that still has its first message in memory, regardless of
    it has configured: it is taken to have been there from the beginning. Elsewhere it is not found, and
    the client decides.

    A member that subscribes to the topic asks because it begins in the queue. That is noted before the offset
    is read, so that no commit of the member before it comes in between; and that member, if it is in this
    process, has dropped the queue when this one gets the answer.
    """
    header = call.header
    member = state.clients.member(header.consumer_group, call.peer)
    topic = None if member is None else state.topics.get(header.topic)
    if (
        member is not None
        and topic is not None
        and header.set_zero_if_not_found
        and header.topic in member.choices
        and 0 <= header.queue_id < topic.read_queue_nums
    ):
        before = state.offsets.take(header.consumer_group, header.topic, header.queue_id, member.client_id)
        if before is not None:
            taken = MessageQueue(header.topic, state.config.broker_name, header.queue_id)
            state.clients.tell_taken(header.consumer_group, before, taken)
    offset = state.offsets.query(header.consumer_group, header.topic, header.queue_id)
    if offset is not None:
        return _answer(offset)
    if not header.set_zero_if_not_found:
        return refuse(
            ResponseCode.QUERY_NOT_FOUND, "Not found, do not set to zero, maybe this group boot first"
        )
    if is_young(state, header.topic, header.queue_id):
        return _answer(0)
    return refuse(
        ResponseCode.QUERY_NOT_FOUND, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
    )


def update_consumer_offset(state: BrokerState, call: Call[UpdateConsumerOffsetHeader]) -> Response:
    """Commits where a group continues in a queue; not for a member that has lost it to another."""
    header = call.header
    group = header.consumer_group
    if state.groups.get(group) is None:
        return refuse(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} not exist!")
    if state.topics.get(header.topic) is None:
        return refuse(ResponseCode.TOPIC_NOT_EXIST, f"Topic {header.topic} not exist!")
    is_stored = state.offsets.commit(
        group,
        header.topic,
        header.queue_id,
        header.commit_offset,
        state.clients.id_of(group, call.peer),
        header.owner,
    )
    return Response(ResponseCode.SUCCESS) if is_stored else fenced(group, header.topic, header.queue_id)


def get_max_offset(state: BrokerState, call: Call[GetMaxOffsetHeader]) -> Response:
    """Says which queue offset the next message gets."""
    return _answer(state.store.max_offset(call.header.topic, call.header.queue_id))


def get_min_offset(state: BrokerState, call: Call[GetMinOffsetHeader]) -> Response:
    """Says where a queue begins."""
    return _answer(state.store.min_offset(call.header.topic, call.header.queue_id))


def search_offset(state: BrokerState, call: Call[SearchOffsetHeader]) -> Response:
    """Says which message of a queue was stored at a moment."""
    header = call.header
    is_upper = (header.boundary_type or "").lower() == "upper"  # any other text means lower
    boundary: Literal["lower", "upper"] = "upper" if is_upper else "lower"
    return _answer(state.store.offset_by_time(header.topic, header.queue_id, header.timestamp_ms, boundary))


def reset_offset(state: BrokerState, call: Call[ResetOffsetHeader]) -> Response:
    """Moves a group to an offset or a time, in one queue or all; it need not have clients.

    Clients that it has are notified with their next pull.
    """
    header = call.header
    topic = state.topics.get(header.topic)
    if topic is None:
        return refuse(ResponseCode.TOPIC_NOT_EXIST, f"Topic {header.topic} does not exist")
    if state.groups.get(header.group) is None:
        return refuse(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {header.group} does not exist")
    targets: dict[int, int] = {}
    if header.queue_id >= 0 and header.offset not in (None, -1):
        targets[header.queue_id] = header.offset
        low, high = (
            find(header.topic, header.queue_id) for find in (state.store.min_offset, state.store.max_offset)
        )
        if not low <= header.offset <= high + 1:
            return refuse(
                ResponseCode.SYSTEM_ERROR,
                f"Target offset {header.offset} not in consume queue range [{low}-{high}]",
            )
        targets[header.queue_id] = min(header.offset, high)
    else:
        queue_ids: Iterable[int] = (header.queue_id,)
        if header.queue_id < 0:
            topic.check_listed()
            check_may_wait()  # it reads messages of each queue
            queue_ids = range(topic.read_queue_nums)
        targets = {
            queue_id: offset_of_time(state.store, header.topic, queue_id, header.timestamp_ms)
            for queue_id in queue_ids
        }
    if not targets:
        return refuse(ResponseCode.SYSTEM_ERROR, "No queues to reset.")
    for queue_id, offset in targets.items():
        state.offsets.reset(header.group, header.topic, queue_id, offset, call.peer.client_id)
    return Response(
        ResponseCode.SUCCESS,
        body=ResetOffsetsBody(
            {
                MessageQueue(header.topic, state.config.broker_name, queue_id): offset
                for queue_id, offset in targets.items()
            }
        ),
    )


def clone_offsets(state: BrokerState, call: Call[CloneGroupOffsetHeader]) -> Response:
    """Gives a group the offsets of another; of one that is online, in topics that it subscribes to."""
    header = call.header
    source, target = header.source_group, header.target_group
    topics = {header.topic} if header.topic else {topic for topic, _ in state.offsets.of_group(source)}
    for topic in sorted(topics):
        is_wanted = header.is_offline or state.takes_part(source, topic)
        if is_wanted and state.topics.get(topic) is not None:
            state.offsets.clone(source, target, topic, call.peer.client_id)
    return Response(ResponseCode.SUCCESS)


def _answer(offset: int) -> Response:
    return Response(ResponseCode.SUCCESS, OffsetResponseHeader(offset))


def offset_of_time(store: MessageStore, topic: str, queue_id: int, timestamp_ms: int) -> int:
    """Returns the offset from which a group gets messages stored at a time or later; below 0 for none."""
    if timestamp_ms < 0:
        return store.max_offset(topic, queue_id)
    return store.offset_by_time(topic, queue_id, timestamp_ms, "lower")


def _source(header: CloneGroupOffsetHeader, _request: Request, _state: BrokerState) -> tuple[str]:
    return (header.source_group,)


def _target(header: CloneGroupOffsetHeader, _request: Request, _state: BrokerState) -> tuple[str]:
    return (header.target_group,)


def _cloned(header: CloneGroupOffsetHeader, _request: Request, _state: BrokerState) -> tuple[str | None]:
    return (header.topic or None,)


_QUERY: Final = (Action.SUB, Action.GET)
_COMMIT: Final = (Action.SUB, Action.UPDATE)
_CLONE: Final = (
    named(Resource.GROUP, _source, Action.GET),
    named(Resource.GROUP, _target, Action.UPDATE),
    named(Resource.TOPIC, _cloned, Action.UPDATE),
)
HANDLERS: Final = (
    Handler(
        RequestCode.QUERY_CONSUMER_OFFSET,
        QueryConsumerOffsetHeader,
        query_consumer_offset,
        (of_topic(*_QUERY), of_consumer_group(*_QUERY)),
    ),
    Handler(
        RequestCode.UPDATE_CONSUMER_OFFSET,
        UpdateConsumerOffsetHeader,
        update_consumer_offset,
        (of_topic(*_COMMIT), of_consumer_group(*_COMMIT)),
    ),
    Handler(RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader, get_max_offset, (of_topic(Action.GET),)),
    Handler(RequestCode.GET_MIN_OFFSET, GetMinOffsetHeader, get_min_offset, (of_topic(Action.GET),)),
    Handler(
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, SearchOffsetHeader, search_offset, (of_topic(Action.GET),)
    ),
    Handler(
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
        ResetOffsetHeader,
        reset_offset,
        (of_topic(Action.UPDATE), of_group(Action.UPDATE)),
    ),
    Handler(RequestCode.CLONE_GROUP_OFFSET, CloneGroupOffsetHeader, clone_offsets, _CLONE),
)
