"""Bodies in which clients report themselves, and brokers report them to others.

Source: ``HeartbeatData.java``, ``ConsumerData.java``, ``SubscriptionData.java``,
``CheckClientRequestBody.java``, ``GetConsumerListByGroupResponseBody.java``, ``ConsumerConnection.java``,
``ProducerConnection.java``, ``ProducerTableInfo.java``, ``GroupForbidden.java``.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Final

from seglog.errors import InvalidArgumentError
from seglog.remoting.body_json.body_codec import object_body
from seglog.remoting.body_json.fields import (
    BOOL,
    INT32,
    INT64,
    TEXT,
    Form,
    JsonField,
    entries_of,
    items_of,
    member_of,
    named,
    object_of,
)
from seglog.remoting.heartbeat import (
    CheckClientBody,
    Connection,
    ConsumerConnectionsBody,
    ConsumerData,
    ConsumerListBody,
    ConsumeType,
    GroupForbiddenBody,
    HeartbeatBody,
    MessageModel,
    Producer,
    ProducerConnectionsBody,
    ProducersBody,
)
from seglog.remoting.subscription import SubscriptionData, is_tag_type, parse_subscription
from seglog.storage.format.config import ConfigValue
from seglog.storage.format.record import java_string_hash


def _tags_of(data: SubscriptionData) -> Mapping[str, ConfigValue]:
    """Returns what follows from an expression: its tags, and their hashes as Java has them."""
    tags: frozenset[str] | None = None
    if is_tag_type(data.expression_type):
        try:
            tags = parse_subscription(data.expression).tags
        except InvalidArgumentError:
            tags = None  # an expression that names none: Java sends it with empty sets too
    return {"tagsSet": sorted(tags or ()), "codeSet": sorted(java_string_hash(tag) for tag in tags or ())}


_CONSUME_FROM: Final = named(
    "CONSUME_FROM_LAST_OFFSET",
    "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
    "CONSUME_FROM_MIN_OFFSET",
    "CONSUME_FROM_MAX_OFFSET",
    "CONSUME_FROM_FIRST_OFFSET",
    "CONSUME_FROM_TIMESTAMP",
)
"""``ConsumeFromWhere``."""
SUBSCRIPTION: Final = object_of(
    SubscriptionData,
    derived=_tags_of,
    topic=JsonField("topic", TEXT),
    expression=JsonField("subString", TEXT),
    version=JsonField("subVersion", INT64),
    expression_type=JsonField("expressionType", TEXT),
    is_class_filter=JsonField("classFilterMode", BOOL),
)
CONSUMER: Final = object_of(
    ConsumerData,
    group=JsonField("groupName", TEXT),
    subscriptions=JsonField("subscriptionDataSet", items_of(SUBSCRIPTION, tuple)),
    consume_type=JsonField("consumeType", member_of(ConsumeType)),
    message_model=JsonField("messageModel", member_of(MessageModel)),
    consume_from=JsonField("consumeFromWhere", _CONSUME_FROM),
    is_unit_mode=JsonField("unitMode", BOOL),
)


def _decode_producer(found: ConfigValue, name: str) -> str:
    return TEXT.decode(
        found.get("groupName") if isinstance(found, Mapping) else found, f"groupName of {name}"
    )


_PRODUCER: Final = Form[str](lambda group: {"groupName": group}, _decode_producer)
HEARTBEAT: Final = object_body(
    HeartbeatBody,
    client_id=JsonField("clientID", TEXT),
    producer_groups=JsonField("producerDataSet", items_of(_PRODUCER, tuple)),
    consumers=JsonField("consumerDataSet", items_of(CONSUMER, tuple)),
    fingerprint=JsonField("heartbeatFingerprint", INT32),
    is_without_subscriptions=JsonField("withoutSub", BOOL),
)
CHECK_CLIENT: Final = object_body(
    CheckClientBody,
    client_id=JsonField("clientId", TEXT),
    group=JsonField("group", TEXT),
    subscription=JsonField("subscriptionData", SUBSCRIPTION),
)
CONSUMER_LIST: Final = object_body(
    ConsumerListBody, client_ids=JsonField("consumerIdList", items_of(TEXT, tuple))
)
_CONNECTIONS: Final = items_of(
    object_of(
        Connection,
        client_id=JsonField("clientId", TEXT),
        address=JsonField("clientAddr", TEXT),
        language=JsonField("language", TEXT),
        version=JsonField("version", INT32),
    ),
    frozenset,
    order=attrgetter("client_id", "address"),
)
CONSUMER_CONNECTIONS: Final = object_body(
    ConsumerConnectionsBody,
    connections=JsonField("connectionSet", _CONNECTIONS),
    subscriptions=JsonField("subscriptionTable", entries_of(TEXT, SUBSCRIPTION)),
    consume_type=JsonField("consumeType", member_of(ConsumeType)),
    message_model=JsonField("messageModel", member_of(MessageModel)),
    consume_from=JsonField("consumeFromWhere", _CONSUME_FROM),
)
PRODUCER_CONNECTIONS: Final = object_body(
    ProducerConnectionsBody, connections=JsonField("connectionSet", _CONNECTIONS)
)
PRODUCERS: Final = object_body(
    ProducersBody,
    groups=JsonField(
        "data",
        entries_of(
            TEXT,
            items_of(
                object_of(
                    Producer,
                    client_id=JsonField("clientId", TEXT),
                    address=JsonField("remoteIP", TEXT),
                    language=JsonField("language", TEXT),
                    version=JsonField("version", INT32),
                    heard_ms=JsonField("lastUpdateTimestamp", INT64),
                ),
                tuple,
            ),
        ),
    ),
)
GROUP_FORBIDDEN: Final = object_body(
    GroupForbiddenBody,
    group=JsonField("group", TEXT),
    topic=JsonField("topic", TEXT),
    is_readable=JsonField("readable", BOOL),
)
