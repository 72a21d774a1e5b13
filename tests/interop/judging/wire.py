"""Requests and answers as they go over a connection: ext fields and bytes, made of our typed values and back.

Bodies that are JSON stand here in the shapes that Java reads and writes; the engine itself hands over values.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from seglog.broker.handlers.table import HANDLERS
from seglog.broker.tables.groups import group_to_config
from seglog.remoting.batch import encode_batch
from seglog.remoting.bodies import (
    LockBatchBody,
    LockedQueuesBody,
    MessageBatch,
    RecordsBody,
    ResetOffsetsBody,
)
from seglog.remoting.command import Body, Request, Response
from seglog.remoting.headers import encode_header
from seglog.remoting.heartbeat import (
    Connection,
    ConsumerConnectionsBody,
    ConsumerListBody,
    GroupForbiddenBody,
    HeartbeatBody,
    ProducerConnectionsBody,
)
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription import SubscriptionData, is_tag_type, parse_subscription
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.storage.format.config.config_json import decode_config
from seglog.storage.format.record.tags import java_string_hash


@dataclass(frozen=True, slots=True)
class WireRequest:
    """What a client sends."""

    code: int
    ext: Mapping[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """What a broker answers.

    Attributes:
        body: Bytes; decoded where it is JSON, see :func:`queues_of` and the like.
    """

    code: int
    remark: str | None
    ext: Mapping[str, str]
    body: bytes


def encode_request(request: Request) -> WireRequest:
    """Returns a request as it goes out; its code has a handler, which knows the names of the header."""
    handler = HANDLERS[request.code]
    assert handler is not None, request.code
    ext = encode_header(request.header, handler.wire_names)
    return WireRequest(request.code, {**ext, **(request.ext or {})}, _encode_body(request.body))


def encode_answer(answer: Response) -> WireAnswer:
    """Returns an answer as it would go out."""
    ext = {**encode_header(answer.header), **(answer.ext or {})}
    return WireAnswer(int(answer.code), answer.remark, ext, _encode_body(answer.body) or b"")


def queues_of(body: bytes) -> frozenset[MessageQueue]:
    """Returns the queues that a lock request was given."""
    return frozenset(_queue(each) for each in json.loads(body)["lockOKMQSet"])


def resets_of(body: bytes) -> dict[MessageQueue, int]:
    """Returns where a reset leads, queue by queue."""
    table: Any = decode_config(body)
    return {_queue(json.loads(key)): offset for key, offset in table["offsetTable"].items()}


def _queue(fields: Mapping[str, Any]) -> MessageQueue:
    return MessageQueue(fields["topic"], fields["brokerName"], fields["queueId"])


def _encode_body(body: Body) -> bytes | None:
    match body:
        case None:
            return None
        case bytes() | memoryview():
            return bytes(body)
        case RecordsBody():
            return b"".join(body.records)
        case MessageBatch():
            return encode_batch(body)
        case SubscriptionGroup():
            return json.dumps(group_to_config(body)).encode()
        case LockBatchBody():
            return json.dumps(
                {
                    "consumerGroup": body.consumer_group,
                    "clientId": body.client_id,
                    "onlyThisBroker": body.is_only_this_broker,
                    "mqSet": [_fields(queue) for queue in sorted(body.queues)],
                }
            ).encode()
        case LockedQueuesBody():
            return json.dumps({"lockOKMQSet": [_fields(queue) for queue in sorted(body.queues)]}).encode()
        case ResetOffsetsBody():
            table = {json.dumps(_fields(queue)): offset for queue, offset in sorted(body.offsets.items())}
            return json.dumps({"offsetTable": table}).encode()
    return json.dumps(_client_fields(body)).encode()


def _client_fields(body: Body) -> dict[str, object]:
    """Returns the JSON of what clients say of themselves, and others of them."""
    match body:
        case HeartbeatBody():
            return _heartbeat(body)
        case ConsumerListBody():
            return {"consumerIdList": list(body.client_ids)}
        case ConsumerConnectionsBody():
            return {
                "connectionSet": _connections(body.connections),
                "subscriptionTable": {
                    topic: _subscription(each) for topic, each in body.subscriptions.items()
                },
                "consumeType": body.consume_type.value,
                "messageModel": body.message_model.value,
                "consumeFromWhere": body.consume_from,
            }
        case ProducerConnectionsBody():
            return {"connectionSet": _connections(body.connections)}
        case GroupForbiddenBody():
            return {"group": body.group, "topic": body.topic, "readable": body.is_readable}
    raise TypeError(f"no wire form of {type(body).__name__}")


def _connections(connections: Iterable[Connection]) -> list[dict[str, object]]:
    return [{"clientId": each.client_id} for each in connections]


def _heartbeat(body: HeartbeatBody) -> dict[str, object]:
    return {
        "clientID": body.client_id,
        "producerDataSet": [{"groupName": name} for name in body.producer_groups],
        "consumerDataSet": [
            {
                "groupName": consumer.group,
                "consumeType": consumer.consume_type.value,
                "messageModel": consumer.message_model.value,
                "consumeFromWhere": consumer.consume_from,
                "subscriptionDataSet": [_subscription(each) for each in consumer.subscriptions],
                "unitMode": consumer.is_unit_mode,
            }
            for consumer in body.consumers
        ],
        "heartbeatFingerprint": body.fingerprint,
        "withoutSub": body.is_without_subscriptions,
    }


def _subscription(data: SubscriptionData) -> dict[str, object]:
    tags = parse_subscription(data.expression).tags if is_tag_type(data.expression_type) else None
    return {
        "topic": data.topic,
        "subString": data.expression,
        "subVersion": data.version,
        "expressionType": data.expression_type,
        "classFilterMode": data.is_class_filter,
        "tagsSet": sorted(tags or ()),
        "codeSet": sorted(java_string_hash(tag) for tag in tags or ()),
    }


def _fields(queue: MessageQueue) -> dict[str, object]:
    return {"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic}
