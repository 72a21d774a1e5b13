"""Statistics: the ranges of topics, the offsets of groups in them, and store times.

Source: ``AdminBrokerProcessor.java getTopicStatsInfo, getConsumeStats, queryConsumeTimeSpan,
getEarliestMsgStoretime, queryCorrectionOffset, queryTopicConsumeByWho, queryTopicsByConsumer,
fetchAllConsumeStatsInBroker``. Difference: the last includes pulled offsets, for which RocketMQ reports 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from seglog.broker.access import Action, Resource
from seglog.broker.figures.samples import Span
from seglog.broker.handlers.handler import Call, Handler
from seglog.broker.handlers.touching import named, of_consumer_group, of_every, of_group, of_topic
from seglog.broker.state.state import BrokerState
from seglog.broker.tables import TopicConfig
from seglog.errors import InvalidArgumentError
from seglog.remoting.admin_bodies import (
    BrokerConsumeStatsBody,
    ConsumeStatsBody,
    CorrectionOffsetsBody,
    GroupOffsets,
    NamesBody,
    QueueTimeSpan,
    TimeSpansBody,
    TopicOffsets,
    TopicStatsBody,
)
from seglog.remoting.admin_headers import (
    BrokerConsumeStatsHeader,
    ConsumeStatsHeader,
    CorrectionOffsetHeader,
    EarliestTimeHeader,
    GroupHeader,
    TimeSpanHeader,
    TimestampResponseHeader,
    TopicHeader,
)
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, refuse
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.store import MessageStore
from seglog.storage.threads import check_may_wait

_NOTHING_LEFT: Final = (1 << 63) - 1
_UNKNOWN: Final = -1
MOST_LISTED: Final = 65_536
"""Most queues of several topics or groups in one answer; more would not fit into a frame."""


class _Left:
    """Counts the queues that one answer may still list."""

    def __init__(self) -> None:
        self._count = MOST_LISTED

    def take(self, topic: TopicConfig) -> None:
        """Counts the queues of a topic.

        Raises:
            InvalidArgumentError: They are too many, alone or together with those counted before.
        """
        topic.check_listed()
        self._count -= topic.queue_nums
        if self._count < 0:
            raise InvalidArgumentError(
                f"the answer would list more than {MOST_LISTED} queues",
                help="ask for one group and one topic at a time",
            )


def get_topic_stats(state: BrokerState, call: Call[TopicHeader]) -> Response:
    """Returns the range of each queue of a topic, and when its last message was stored."""
    name, store = call.header.topic, state.store
    topic = state.topics.get(name)
    if topic is None:
        return _no_topic(name)
    topic.check_listed()
    check_may_wait()  # it reads one message of each queue, and there may be many queues
    found: dict[MessageQueue, TopicOffsets] = {}
    for queue_id in range(topic.queue_nums):
        end = store.max_offset(name, queue_id)
        last_ms = stored_ms(store, name, queue_id, end - 1) if end else 0
        queue = MessageQueue(name, state.config.broker_name, queue_id)
        found[queue] = TopicOffsets(store.min_offset(name, queue_id), end, last_ms)
    rate = state.figures.put_rate(name, Span.MINUTE).per_s
    return Response(ResponseCode.SUCCESS, body=TopicStatsBody(found, rate))


def get_consume_stats(state: BrokerState, call: Call[ConsumeStatsHeader]) -> Response:
    """Returns where a group is in the queues of its topics, with what it has pulled and not committed."""
    check_may_wait()  # as above
    header = call.header
    found: dict[MessageQueue, GroupOffsets] = {}
    rate = 0.0
    left = _Left()
    for name in sorted(_topics_of(state, header)):
        topic = state.topics.get(name)
        if topic is not None:
            left.take(topic)
            found |= _offsets_in(state, header.consumer_group, name, topic.read_queue_nums)
            rate += state.figures.pulled_rate(header.consumer_group, name, Span.MINUTE).per_s
    return Response(ResponseCode.SUCCESS, body=ConsumeStatsBody(found, rate))


def get_broker_consume_stats(state: BrokerState, call: Call[BrokerConsumeStatsHeader]) -> Response:
    """Returns where every group is in the topics that it has offsets in, and how much that is together."""
    check_may_wait()  # as above
    groups: list[dict[str, tuple[ConsumeStatsBody, ...]]] = []
    lag = inflight = 0
    left = _Left()
    for group in sorted(one.name for one in state.groups.all()):
        of_topics: list[ConsumeStatsBody] = []
        for name in sorted(state.offsets.topics_of(group)):
            topic = state.topics.get(name)
            if topic is None or (call.header.is_order_only and not topic.is_order):
                continue
            if not state.takes_part(group, name):
                continue
            left.take(topic)
            found = _offsets_in(state, group, name, topic.write_queue_nums)
            rate = state.figures.pulled_rate(group, name, Span.MINUTE).per_s
            of_topics.append(ConsumeStatsBody(found, rate))
            lag += sum(one.broker_offset - one.consumer_offset for one in found.values())
            inflight += sum(one.pull_offset - one.consumer_offset for one in found.values())
        groups.append({group: tuple(of_topics)})
    body = BrokerConsumeStatsBody(state.config.address, tuple(groups), lag, inflight)
    return Response(ResponseCode.SUCCESS, body=body)


def get_time_span(state: BrokerState, call: Call[TimeSpanHeader]) -> Response:
    """Returns since when messages of a topic are stored, and how long the next one has waited for a group."""
    name, store = call.header.topic, state.store
    topic = state.topics.get(name)
    if topic is None:
        return _no_topic(name)
    topic.check_listed()
    check_may_wait()  # as above
    found: dict[MessageQueue, QueueTimeSpan] = {}
    for queue_id in range(topic.write_queue_nums):
        first_ms = stored_ms(store, name, queue_id, store.min_offset(name, queue_id))
        end = store.max_offset(name, queue_id)
        committed = state.offsets.query(call.header.group, name, queue_id)
        at = _UNKNOWN if committed is None else committed
        delay_ms = 0
        if at < end:
            # A group that never committed gets the first message that exists.
            next_ms = stored_ms(store, name, queue_id, max(at, store.min_offset(name, queue_id)))
            delay_ms = state.now_ms() - next_ms if next_ms >= 0 else 0
        found[MessageQueue(name, state.config.broker_name, queue_id)] = QueueTimeSpan(
            first_ms,
            stored_ms(store, name, queue_id, end - 1),
            stored_ms(store, name, queue_id, at - 1) if at > 0 else first_ms,
            delay_ms,
        )
    return Response(ResponseCode.SUCCESS, body=TimeSpansBody(found))


def get_earliest_time(state: BrokerState, call: Call[EarliestTimeHeader]) -> Response:
    """Returns when the first message of a queue was stored."""
    header, store = call.header, state.store
    first = store.min_offset(header.topic, header.queue_id)
    return Response(
        ResponseCode.SUCCESS,
        TimestampResponseHeader(stored_ms(store, header.topic, header.queue_id, first)),
    )


def get_correction_offsets(state: BrokerState, call: Call[CorrectionOffsetHeader]) -> Response:
    """Returns the least offset that any group has in each queue of a topic.

    Offsets below a queue's minimum do not count. RocketMQ forgets the offsets of groups that are to be left
    out; here they only do not count.
    """
    header, store = call.header, state.store
    left_out = _left_out(header)
    least: dict[int, int] = {}
    compared: dict[int, int] = {}
    for (group, topic, queue_id), offset in state.offsets.all().items():
        if topic != header.topic:
            continue
        if group == header.compare_group:
            compared[queue_id] = offset
        if group not in left_out and offset >= store.min_offset(topic, queue_id):
            least[queue_id] = min(offset, least.get(queue_id, offset))
    for queue_id, offset in compared.items():
        if queue_id in least and least[queue_id] > offset:
            least[queue_id] = _NOTHING_LEFT
    return Response(ResponseCode.SUCCESS, body=CorrectionOffsetsBody(least))


def get_groups_of_topic(state: BrokerState, call: Call[TopicHeader]) -> Response:
    """Names the groups that consume a topic: those that are online, and those that have offsets in it."""
    topic = call.header.topic
    online = {group.name for group in state.clients.all_consumers() if topic in group.subscriptions}
    return Response(ResponseCode.SUCCESS, body=NamesBody(frozenset(online | state.offsets.groups_of(topic))))


def get_topics_of_group(state: BrokerState, call: Call[GroupHeader]) -> Response:
    """Names the topics that a group has offsets in, and the broker."""
    topics = frozenset(state.offsets.topics_of(call.header.group))
    return Response(ResponseCode.SUCCESS, body=NamesBody(topics, state.config.address))


def stored_ms(store: MessageStore, topic: str, queue_id: int, queue_offset: int) -> int:
    """Returns the store time of a message in ms, -1 if it cannot be read."""
    found = store.get(topic, queue_id, queue_offset, 1) if queue_offset >= 0 else None
    if found is None or not found.records or found.lost:
        return _UNKNOWN
    return found.messages[0].store_timestamp_ms


def _offsets_in(
    state: BrokerState, group: str, topic: str, queue_nums: int
) -> dict[MessageQueue, GroupOffsets]:
    """Returns where a group is in the queues of a topic."""
    store = state.store
    found: dict[MessageQueue, GroupOffsets] = {}
    for queue_id in range(queue_nums):
        known = state.offsets.query(group, topic, queue_id)
        committed = 0 if known is None else known
        pulled = state.offsets.pulled(group, topic, queue_id)
        last_ms = stored_ms(store, topic, queue_id, committed - 1) if committed else 0
        found[MessageQueue(topic, state.config.broker_name, queue_id)] = GroupOffsets(
            store.max_offset(topic, queue_id),
            committed,
            max(committed, pulled or 0),
            max(0, last_ms),
        )
    return found


def _topics_of(state: BrokerState, header: ConsumeStatsHeader) -> set[str]:
    if header.topic_list:
        return set(_listed(header.topic_list))
    topics = {header.topic} if header.topic else state.offsets.topics_of(header.consumer_group)
    return {topic for topic in topics if state.takes_part(header.consumer_group, topic)}


def _no_topic(name: str) -> Response:
    return refuse(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist")


def _listed(topic_list: str) -> list[str]:
    return topic_list.split(";")


def _left_out(header: CorrectionOffsetHeader) -> set[str]:
    return set((header.filter_groups or "").split(","))


def _counted(header: ConsumeStatsHeader, _request: Request, _state: BrokerState) -> Sequence[str | None]:
    return _listed(header.topic_list) if header.topic_list else (header.topic or None,)


def _compared(header: CorrectionOffsetHeader, _request: Request, _state: BrokerState) -> tuple[str]:
    return (header.compare_group,)


def _not_counted(header: CorrectionOffsetHeader, _request: Request, _state: BrokerState) -> list[str]:
    return sorted(_left_out(header) - {""})


_CORRECTION: Final = (
    of_topic(Action.GET),
    named(Resource.GROUP, _compared, Action.GET),
    named(Resource.GROUP, _not_counted, Action.GET),
    of_every(Resource.GROUP, Action.GET),
)
HANDLERS: Final = (
    Handler(RequestCode.GET_TOPIC_STATS_INFO, TopicHeader, get_topic_stats, (of_topic(Action.GET),)),
    Handler(
        RequestCode.GET_CONSUME_STATS,
        ConsumeStatsHeader,
        get_consume_stats,
        (of_consumer_group(Action.GET), named(Resource.TOPIC, _counted, Action.GET)),
    ),
    Handler(
        RequestCode.GET_BROKER_CONSUME_STATS,
        BrokerConsumeStatsHeader,
        get_broker_consume_stats,
        (of_every(Resource.GROUP, Action.GET), of_every(Resource.TOPIC, Action.GET)),
    ),
    Handler(
        RequestCode.QUERY_CONSUME_TIME_SPAN,
        TimeSpanHeader,
        get_time_span,
        (of_topic(Action.GET), of_group(Action.GET)),
    ),
    Handler(
        RequestCode.GET_EARLIEST_MSG_STORETIME,
        EarliestTimeHeader,
        get_earliest_time,
        (of_topic(Action.GET),),
    ),
    Handler(RequestCode.QUERY_CORRECTION_OFFSET, CorrectionOffsetHeader, get_correction_offsets, _CORRECTION),
    Handler(
        RequestCode.QUERY_TOPIC_CONSUME_BY_WHO,
        TopicHeader,
        get_groups_of_topic,
        (of_topic(Action.GET), of_every(Resource.GROUP, Action.LIST)),
    ),
    Handler(
        RequestCode.QUERY_TOPICS_BY_CONSUMER,
        GroupHeader,
        get_topics_of_group,
        (of_group(Action.GET), of_every(Resource.TOPIC, Action.LIST)),
    ),
)
