"""QUERY_MESSAGE, VIEW_MESSAGE_BY_ID and QUERY_CONSUME_QUEUE: messages by key, id and place.

Differences: the result of a query fits into a frame that every client takes, and the newest messages have
precedence; RocketMQ sends all that it has found. Keys are compared with the message's own, not only by hash.
Units of a queue have no bit maps, which this broker does not make; if the first unit does not exist, the body
still has the range.

Source: ``QueryMessageProcessor.java``, ``AdminBrokerProcessor.java queryConsumeQueue``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from seglog.broker.access import Action, Resource
from seglog.broker.handlers.handler import Call, Handler
from seglog.broker.handlers.touching import named, of_topic
from seglog.broker.state.state import BrokerState
from seglog.errors import NotFoundError
from seglog.remoting.admin_bodies import QueueUnit, QueueUnitsBody
from seglog.remoting.admin_headers import (
    QueryMessageHeader,
    QueryMessageResponseHeader,
    QueryQueueHeader,
    ViewMessageHeader,
)
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, refuse
from seglog.remoting.records import decode_records
from seglog.remoting.subscription import SubscriptionData
from seglog.storage.format.config import ConfigValue, encode_config
from seglog.storage.format.names import HALF_TOPIC, SCHEDULE_TOPIC
from seglog.storage.format.record import Message, decode_message
from seglog.storage.format.record import properties as props
from seglog.storage.format.system_names import CHECK_MAX_TOPIC, TIMER_TOPIC
from seglog.storage.threads import check_may_wait

MAX_FOUND: Final = 64
"""``maxMsgsNumBatch``: messages that a query returns at most."""
FOUND_BY_UNIQUE_KEY: Final = 32
"""``defaultQueryMaxNum``."""
MAX_FOUND_BYTES: Final = 12 << 20
"""Most bytes that a query returns besides its newest message; a frame may have 16 MiB."""
MAX_UNITS: Final = 1 << 16
"""Units of a queue in one answer."""
_BY_TAG: Final = "T"
_KEPT_FOR_OTHERS: Final = frozenset((SCHEDULE_TOPIC, TIMER_TOPIC, HALF_TOPIC, CHECK_MAX_TOPIC))
"""Topics whose messages name the topic that they belong to."""


def query_messages(state: BrokerState, call: Call[QueryMessageHeader]) -> Response:
    """Finds messages of a topic by key, unique key or tag."""
    check_may_wait()  # the index is brought to the end of the log first
    header, store = call.header, state.store
    if header.max_num < 0 and not header.is_unique_key:
        return refuse(ResponseCode.SYSTEM_ERROR, f"maxNum is {header.max_num}, and must be at least 0")
    count = FOUND_BY_UNIQUE_KEY if header.is_unique_key else min(header.max_num, MAX_FOUND)
    by_tag = header.index_type == _BY_TAG and not header.is_unique_key
    times_ms = {"begin_ms": header.begin_ms, "end_ms": header.end_ms}
    found = store.query(header.topic, header.key, count, **times_ms, by_tag=by_tag) if count > 0 else []
    records = list(_iter_newest(state, found))
    if not records:
        remark = "can not find message, maybe time range not correct"
        return Response(ResponseCode.QUERY_NOT_FOUND, QueryMessageResponseHeader(0, 0), remark=remark)
    last = QueryMessageResponseHeader(*store.index_end())
    return Response(ResponseCode.SUCCESS, last, decode_records(b"".join(reversed(records))))


def view_message(state: BrokerState, call: Call[ViewMessageHeader]) -> Response:
    """Returns the message whose record starts at a place of the log, which its id names."""
    header = call.header
    try:
        record = state.store.record_at(header.phy_offset)
    except NotFoundError:
        remark = f"can not find message by the offset, {header.phy_offset}"
        return refuse(ResponseCode.SYSTEM_ERROR, remark)
    is_checked = state.config.release.checks_viewed_topic and header.topic and header.topic.strip()
    if is_checked and _topic_of(decode_message(record)) != header.topic:
        return refuse(ResponseCode.NO_PERMISSION, "The topic does not match the message")
    return Response(ResponseCode.SUCCESS, body=record)


def query_queue(state: BrokerState, call: Call[QueryQueueHeader]) -> Response:
    """Returns units of a queue, and what a group wants of its topic if one is named."""
    header, store = call.header, state.store
    where = f"{header.queue_id}@{header.topic}"
    try:
        view = store.queue(header.topic, header.queue_id)
    except NotFoundError:
        return refuse(ResponseCode.SYSTEM_ERROR, f"{where} is not exist!")
    units: tuple[QueueUnit, ...] = ()
    remark: str | None = f"Index {header.first} of {where} is not exist!"
    if view.min_offset <= header.first < view.max_offset:
        remark = None
        count = max(0, min(header.count, view.max_offset - header.first, MAX_UNITS))
        units = tuple(
            QueueUnit(phy_offset, size_bytes, tags_code)
            for phy_offset, size_bytes, tags_code in view.units(header.first, count).tolist()
        )
    body = QueueUnitsBody(view.max_offset, view.min_offset, units, *_wanted(state, header))
    return Response(ResponseCode.SUCCESS, body=body, remark=remark)


def _iter_newest(state: BrokerState, found: list[Message]) -> Iterator[bytes]:
    """Yields the records of messages, the newest first, as many as fit into an answer."""
    size_bytes = 0
    for message in reversed(found):
        try:
            record = state.store.record_at(message.phy_offset)
        except NotFoundError:  # retention deleted it meanwhile
            return
        size_bytes += len(record)
        if size_bytes > MAX_FOUND_BYTES and size_bytes > len(record):
            return
        yield record


def _topic_of(message: Message) -> str:
    if message.topic not in _KEPT_FOR_OTHERS:
        return message.topic
    return message.properties.get(props.REAL_TOPIC, "")


def _wanted(state: BrokerState, header: QueryQueueHeader) -> tuple[SubscriptionData | None, str | None]:
    """Returns a group's subscription, and its filter as JSON or the reason why none is known."""
    group, topic = header.consumer_group, header.topic
    if group is None:
        return None, None
    online = state.clients.consumers(group)
    subscription = None if online is None else online.subscriptions.get(topic)
    if subscription is None:
        return None, f"{group}@{topic} is not online!"
    one = state.filters.get(group, topic)
    if one is None:
        return subscription, "null"
    fields: dict[str | int, ConfigValue] = {
        "bornTime": one.born_ms,
        "clientVersion": one.version,
        "consumerGroup": group,
        "deadTime": one.dead_ms,
        "expression": one.expression,
        "expressionType": one.expression_type,
        "topic": topic,
    }
    return subscription, encode_config(fields)


def _viewed(header: ViewMessageHeader, _request: Request, state: BrokerState) -> tuple[str | None, ...]:
    """Returns the topic that the header names and that of the record; None for a record not yet written."""
    try:
        read: str | None = state.store.message_at(header.phy_offset).topic
    except NotFoundError:
        read = None
    return (header.topic, read) if header.topic else (read,)


def _asking_group(header: QueryQueueHeader, _request: Request, _state: BrokerState) -> tuple[str, ...]:
    return () if header.consumer_group is None else (header.consumer_group,)


HANDLERS: Final = (
    Handler(RequestCode.QUERY_MESSAGE, QueryMessageHeader, query_messages, (of_topic(Action.GET),)),
    Handler(
        RequestCode.VIEW_MESSAGE_BY_ID,
        ViewMessageHeader,
        view_message,
        (named(Resource.TOPIC, _viewed, Action.GET),),
    ),
    Handler(
        RequestCode.QUERY_CONSUME_QUEUE,
        QueryQueueHeader,
        query_queue,
        (of_topic(Action.GET), named(Resource.GROUP, _asking_group, Action.GET)),
    ),
)
