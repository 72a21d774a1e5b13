"""What clients report to a broker, and what the broker reports of them to others.

Source: ``remoting/.../protocol/heartbeat/HeartbeatData.java``, ``ConsumerData.java``,
``.../body/ConsumerConnection.java``, ``Connection.java``, ``CheckClientRequestBody.java``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from seglog.remoting.command import TypedBody
from seglog.remoting.subscription import SubscriptionData


class ConsumeType(enum.Enum):
    """How a consumer gets its messages."""

    ACTIVELY = "CONSUME_ACTIVELY"
    PASSIVELY = "CONSUME_PASSIVELY"
    POP = "CONSUME_POP"


class MessageModel(enum.Enum):
    """Whether the clients of a group share its messages or each get all of them."""

    BROADCASTING = "BROADCASTING"
    CLUSTERING = "CLUSTERING"


@dataclass(frozen=True, slots=True)
class ConsumerData:
    """What a client says of one group that it consumes with.

    Attributes:
        consume_from: Where the client begins in a queue that the group has no offset for; brokers only
            pass it on.
        is_unit_mode: Whether the group's retry topic is marked as one of units.
    """

    group: str
    subscriptions: tuple[SubscriptionData, ...] = ()
    consume_type: ConsumeType = ConsumeType.PASSIVELY
    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from: str = "CONSUME_FROM_LAST_OFFSET"
    is_unit_mode: bool = False


@dataclass(frozen=True, slots=True)
class HeartbeatBody(TypedBody):
    """Body of HEART_BEAT.

    Attributes:
        fingerprint: Hash of all that is said, 0 from clients that know nothing of it.
        is_without_subscriptions: Whether they were left out, because the broker has them already.
    """

    client_id: str
    producer_groups: tuple[str, ...] = ()
    consumers: tuple[ConsumerData, ...] = ()
    fingerprint: int = 0
    is_without_subscriptions: bool = False


@dataclass(frozen=True, slots=True)
class CheckClientBody(TypedBody):
    """Body of CHECK_CLIENT_CONFIG: whether the broker can serve a subscription."""

    client_id: str
    group: str
    subscription: SubscriptionData | None


@dataclass(frozen=True, slots=True)
class ConsumerListBody(TypedBody):
    """The clients of a group, among which its queues are shared."""

    client_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Connection:
    """One client as others see it.

    Attributes:
        address: Host and port.
        language: Name of RocketMQ's ``LanguageCode``.
        version: Ordinal of RocketMQ's ``MQVersion``.
    """

    client_id: str
    address: str
    language: str
    version: int


@dataclass(frozen=True, slots=True)
class ConsumerConnectionsBody(TypedBody):
    """A consumer group that is online; subscriptions by topic."""

    connections: frozenset[Connection]
    subscriptions: Mapping[str, SubscriptionData]
    consume_type: ConsumeType
    message_model: MessageModel
    consume_from: str


@dataclass(frozen=True, slots=True)
class ProducerConnectionsBody(TypedBody):
    """A producer group that is online."""

    connections: frozenset[Connection]


@dataclass(frozen=True, slots=True)
class GroupForbiddenBody(TypedBody):
    """Whether a group may read a topic."""

    group: str
    topic: str
    is_readable: bool
