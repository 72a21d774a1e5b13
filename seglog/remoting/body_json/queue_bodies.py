"""Bodies about queues: locks, resets, routes, and what is in queues.

Source: ``LockBatchRequestBody.java``, ``UnlockBatchRequestBody.java``, ``LockBatchResponseBody.java``,
``ResetOffsetBody.java``, ``GetConsumerStatusBody.java``, ``TopicRouteData.java``, ``TopicStatsTable.java``,
``ConsumeStats.java``, ``QueryConsumeTimeSpanBody.java``, ``QueryCorrectionOffsetBody.java``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from operator import attrgetter
from typing import Any, Final

from seglog.remoting.admin_bodies import (
    ConsumeStatsBody,
    CorrectionOffsetsBody,
    GroupOffsets,
    QueueTimeSpan,
    TimeSpansBody,
    TopicOffsets,
    TopicStatsBody,
)
from seglog.remoting.bodies import (
    BrokerData,
    ConsumerStatusBody,
    LockBatchBody,
    LockedQueuesBody,
    QueueData,
    ResetOffsetsBody,
    TopicRouteBody,
)
from seglog.remoting.body_json.body_codec import json_body, object_body
from seglog.remoting.body_json.fields import (
    BOOL,
    FLOAT,
    INT32,
    INT64,
    TEXT,
    Form,
    JsonField,
    entries_of,
    items_of,
    object_of,
)
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.config import ConfigValue
from seglog.text import java_time_text

QUEUE: Final = object_of(
    MessageQueue,
    topic=JsonField("topic", TEXT),
    broker_name=JsonField("brokerName", TEXT),
    queue_id=JsonField("queueId", INT32),
)
_QUEUES: Final = items_of(QUEUE, frozenset, order=attrgetter("topic", "broker_name", "queue_id"))

LOCK_BATCH: Final = object_body(
    LockBatchBody,
    consumer_group=JsonField("consumerGroup", TEXT),
    client_id=JsonField("clientId", TEXT),
    queues=JsonField("mqSet", _QUEUES),
    is_only_this_broker=JsonField("onlyThisBroker", BOOL),
)
LOCKED_QUEUES: Final = object_body(LockedQueuesBody, queues=JsonField("lockOKMQSet", _QUEUES))


def _by_queue(form: Form[Any]) -> JsonField:
    """Returns the member that has something of each queue."""
    return JsonField("offsetTable", entries_of(QUEUE, form))


RESET_OFFSETS: Final = object_body(ResetOffsetsBody, offsets=_by_queue(INT64))
_OFFSETS: Final = entries_of(QUEUE, INT64)
CONSUMER_STATUS: Final = object_body(
    ConsumerStatusBody,
    clients=JsonField("consumerTable", entries_of(TEXT, _OFFSETS)),
    queues=JsonField("messageQueueTable", _OFFSETS),
)

_QUEUE_DATA: Final = object_of(
    QueueData,
    broker_name=JsonField("brokerName", TEXT),
    read_queue_nums=JsonField("readQueueNums", INT32),
    write_queue_nums=JsonField("writeQueueNums", INT32),
    perm=JsonField("perm", INT32),
    topic_sys_flag=JsonField("topicSysFlag", INT32),
)
BROKER_DATA: Final = object_of(
    BrokerData,
    derived=lambda _broker: {"enableActingMaster": False},
    cluster=JsonField("cluster", TEXT),
    broker_name=JsonField("brokerName", TEXT),
    broker_addresses=JsonField("brokerAddrs", entries_of(INT64, TEXT)),
)
TOPIC_ROUTE: Final = object_body(
    TopicRouteBody,
    derived=lambda _route: {"filterServerTable": {}},
    queues=JsonField("queueDatas", items_of(_QUEUE_DATA, tuple)),
    brokers=JsonField("brokerDatas", items_of(BROKER_DATA, tuple)),
)

TOPIC_STATS: Final = object_body(
    TopicStatsBody,
    offsets=_by_queue(
        object_of(
            TopicOffsets,
            min_offset=JsonField("minOffset", INT64),
            max_offset=JsonField("maxOffset", INT64),
            last_update_ms=JsonField("lastUpdateTimestamp", INT64),
        ),
    ),
    put_tps=JsonField("topicPutTps", FLOAT),
)
CONSUME_STATS_FORM: Final = object_of(
    ConsumeStatsBody,
    offsets=_by_queue(
        object_of(
            GroupOffsets,
            broker_offset=JsonField("brokerOffset", INT64),
            consumer_offset=JsonField("consumerOffset", INT64),
            pull_offset=JsonField("pullOffset", INT64),
            last_timestamp_ms=JsonField("lastTimestamp", INT64),
        ),
    ),
    consume_tps=JsonField("consumeTps", FLOAT),
)
CONSUME_STATS: Final = json_body(ConsumeStatsBody, CONSUME_STATS_FORM)


@dataclass(frozen=True, slots=True)
class _Span:
    """The times of one queue, with the queue among them: a list there, a mapping here."""

    queue: MessageQueue
    min_timestamp_ms: int
    max_timestamp_ms: int
    consume_timestamp_ms: int
    delay_ms: int


def _span_texts(span: _Span) -> Mapping[str, ConfigValue]:
    """Returns the times as text in local time, which RocketMQ's bean adds; readers take the numbers."""
    return {
        "minTimeStampStr": java_time_text(span.min_timestamp_ms),
        "maxTimeStampStr": java_time_text(span.max_timestamp_ms),
        "consumeTimeStampStr": java_time_text(span.consume_timestamp_ms),
    }


_SPANS: Final = items_of(
    object_of(
        _Span,
        _span_texts,
        queue=JsonField("messageQueue", QUEUE),
        min_timestamp_ms=JsonField("minTimeStamp", INT64),
        max_timestamp_ms=JsonField("maxTimeStamp", INT64),
        consume_timestamp_ms=JsonField("consumeTimeStamp", INT64),
        delay_ms=JsonField("delayTime", INT64),
    ),
    tuple,
)


def _encode_spans(spans: Mapping[MessageQueue, QueueTimeSpan]) -> ConfigValue:
    return _SPANS.encode([_Span(queue, *astuple(span)) for queue, span in sorted(spans.items())])


def _decode_spans(found: ConfigValue, name: str) -> Mapping[MessageQueue, QueueTimeSpan]:
    return {
        span.queue: QueueTimeSpan(
            span.min_timestamp_ms, span.max_timestamp_ms, span.consume_timestamp_ms, span.delay_ms
        )
        for span in _SPANS.decode(found, name)
    }


TIME_SPANS: Final = object_body(
    TimeSpansBody, spans=JsonField("consumeTimeSpanSet", Form(_encode_spans, _decode_spans))
)
CORRECTION_OFFSETS: Final = object_body(
    CorrectionOffsetsBody, offsets=JsonField("correctionOffsets", entries_of(INT32, INT64))
)
