"""What clients report to a broker, and what the broker reports of them to others.

Source: ``remoting/.../protocol/heartbeat/HeartbeatData.java``, ``ConsumerData.java``,
``.../body/ConsumerConnection.java``, ``Connection.java``, ``CheckClientRequestBody.java``,
``ConsumerRunningInfo.java``, ``ProcessQueueInfo.java``, ``ConsumeStatus.java``,
``ConsumeMessageDirectlyResult.java``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from seglog.remoting.command import TypedBody
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription import SubscriptionData


class ConsumeType(enum.Enum):
    """How a consumer gets its messages; in Java's order, since clients in C++ say the number."""

    ACTIVELY = "CONSUME_ACTIVELY"
    PASSIVELY = "CONSUME_PASSIVELY"
    POP = "CONSUME_POP"


class MessageModel(enum.Enum):
    """Whether the clients of a group share its messages or each get all of them; in Java's order."""

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
class Producer:
    """One client that produces, as tools see it.

    Attributes:
        address: A slash, host and port, as Java shows addresses.
        language: Name of RocketMQ's ``LanguageCode``.
        version: Ordinal of RocketMQ's ``MQVersion``.
        heard_ms: Wall clock of its last heartbeat.
    """

    client_id: str
    address: str
    language: str
    version: int
    heard_ms: int


@dataclass(frozen=True, slots=True)
class ProducersBody(TypedBody):
    """All producers that are online, by group."""

    groups: Mapping[str, tuple[Producer, ...]]


@dataclass(frozen=True, slots=True)
class GroupForbiddenBody(TypedBody):
    """Whether a group may read a topic."""

    group: str
    topic: str
    is_readable: bool


@dataclass(frozen=True, slots=True)
class QueueReport:
    """How a consumer is at one queue; times are milliseconds of the wall clock.

    Attributes:
        done_offset: Up to where it is done; what is committed next.
        cached_min_offset: Of what is in memory; 0 where nothing is, as the next two.
        cached_size_mib: Whole mebibytes of bodies.
        taken_min_offset: Of what a listener has; RocketMQ says it of ordered queues only.
        unlock_tries: How often the lock could not be given back yet.
        is_dropped: Whether it is being handed over.
    """

    done_offset: int
    cached_min_offset: int
    cached_max_offset: int
    cached_count: int
    cached_size_mib: int
    taken_min_offset: int
    taken_max_offset: int
    taken_count: int
    is_locked: bool
    locked_ms: int
    is_dropped: bool
    pulled_ms: int
    consumed_ms: int
    unlock_tries: int = 0


@dataclass(frozen=True, slots=True)
class TopicRates:
    """How fast a consumer was at a topic in the last minute.

    Attributes:
        pull_ms: Mean time of a pull that found something.
        pulled_per_s: Messages that came.
        consume_ms: Mean time of a call of the listener.
        done_per_s: Messages that it was done with.
        failed_per_s: Messages that it failed at.
        failed_in_hour: How many those were in the last hour.
    """

    pull_ms: float = 0.0
    pulled_per_s: float = 0.0
    consume_ms: float = 0.0
    done_per_s: float = 0.0
    failed_per_s: float = 0.0
    failed_in_hour: int = 0


@dataclass(frozen=True, slots=True)
class RunningInfoBody(TypedBody):
    """How a consumer runs, in answer to GET_CONSUMER_RUNNING_INFO.

    Attributes:
        properties: Its settings, by their names in Java, and what Java's tools look for.
        rates: By topic.
        stacks: What its threads do, if that was asked.
    """

    properties: Mapping[str, str] = field(default_factory=dict)
    subscriptions: tuple[SubscriptionData, ...] = ()
    queues: Mapping[MessageQueue, QueueReport] = field(default_factory=dict)
    rates: Mapping[str, TopicRates] = field(default_factory=dict)
    stacks: str | None = None


class DirectEnd(enum.Enum):
    """What became of a message that a listener was given outside the order of its queue; ``CMResult``."""

    SUCCESS = "CR_SUCCESS"
    LATER = "CR_LATER"
    ROLLBACK = "CR_ROLLBACK"
    COMMIT = "CR_COMMIT"
    THROW_EXCEPTION = "CR_THROW_EXCEPTION"
    RETURN_NULL = "CR_RETURN_NULL"


@dataclass(frozen=True, slots=True)
class ConsumedDirectlyBody(TypedBody):
    """Answer to CONSUME_MESSAGE_DIRECTLY.

    Attributes:
        end: What became of the message.
        remark: What the listener raised.
        spent_ms: How long it took.
        is_in_order: Whether it is the listener of a consumer in order.
        commits_itself: Whether success is a commit, which is always so here.
    """

    end: DirectEnd
    remark: str | None = None
    spent_ms: int = 0
    is_in_order: bool = False
    commits_itself: bool = True
