"""Bodies of the requests that administer topics, groups and offsets.

Source: ``remoting/.../protocol/admin/TopicStatsTable.java``, ``.../admin/ConsumeStats.java``,
``.../body/QueryConsumeTimeSpanBody.java``, ``.../body/QueryCorrectionOffsetBody.java``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seglog.remoting.bodies import BrokerData
from seglog.remoting.command import TypedBody
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription import SubscriptionData
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.storage.format.config import ConfigValue


@dataclass(frozen=True, slots=True)
class ConfigBody(TypedBody):
    """A table, or one entry of it, in the form of its file under ``config/``: JSON on the wire."""

    value: ConfigValue


@dataclass(frozen=True, slots=True)
class NamesBody(TypedBody):
    """Names of topics or groups.

    Attributes:
        broker_address: Of the broker whose topics they are, or that has more of them where a name server
            says so.
    """

    names: frozenset[str]
    broker_address: str | None = None


@dataclass(frozen=True, slots=True)
class KeyValuesBody(TypedBody):
    """Values by key."""

    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ClusterBody(TypedBody):
    """The brokers that a name server knows.

    Attributes:
        brokers: By name.
        clusters: Names of their brokers, by their own.
    """

    brokers: Mapping[str, BrokerData]
    clusters: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class GroupListBody(TypedBody):
    """Groups to be made or altered together."""

    groups: tuple[SubscriptionGroup, ...]


@dataclass(frozen=True, slots=True)
class TopicOffsets:
    """The range of one queue.

    Attributes:
        last_update_ms: When its last message was stored; 0 without.
    """

    min_offset: int
    max_offset: int
    last_update_ms: int


@dataclass(frozen=True, slots=True)
class TopicStatsBody(TypedBody):
    """The queues of a topic, and how many messages a second were put to it in the last minute."""

    offsets: Mapping[MessageQueue, TopicOffsets]
    put_tps: float = 0.0


@dataclass(frozen=True, slots=True)
class GroupOffsets:
    """The offsets of a group in one queue.

    Attributes:
        broker_offset: Of the message that is put next.
        consumer_offset: Committed; 0 if it never was.
        pull_offset: Of the message that it pulls next; messages between the two are in flight (``Inflight``).
        last_timestamp_ms: When the last message that it has consumed was stored; 0 if that is not known.
    """

    broker_offset: int
    consumer_offset: int
    pull_offset: int
    last_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class ConsumeStatsBody(TypedBody):
    """The offsets of a group in the queues of its topics, and its recent pull rate per second."""

    offsets: Mapping[MessageQueue, GroupOffsets]
    consume_tps: float = 0.0


@dataclass(frozen=True, slots=True)
class BrokerConsumeStatsBody(TypedBody):
    """The offsets of all groups of a broker, by topic.

    Attributes:
        groups: An entry for each group, by its name.
        total_lag: Messages that groups have still to consume.
        total_inflight: Of these, the messages that they have pulled.
    """

    broker_address: str
    groups: tuple[Mapping[str, tuple[ConsumeStatsBody, ...]], ...]
    total_lag: int
    total_inflight: int


@dataclass(frozen=True, slots=True)
class QueueTimeSpan:
    """The times of one queue, -1 where there is no message.

    Attributes:
        min_timestamp_ms: When its first message was stored.
        max_timestamp_ms: When its last one was.
        consume_timestamp_ms: When the last one was that the group has consumed.
        delay_ms: How long the next one has waited for the group; 0 if there is none.
    """

    min_timestamp_ms: int
    max_timestamp_ms: int
    consume_timestamp_ms: int
    delay_ms: int


@dataclass(frozen=True, slots=True)
class TimeSpansBody(TypedBody):
    """The times of the queues of a topic."""

    spans: Mapping[MessageQueue, QueueTimeSpan]


@dataclass(frozen=True, slots=True)
class CorrectionOffsetsBody(TypedBody):
    """The least offset of any group by queue; the greatest number if the compared group is not ahead."""

    offsets: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Figure:
    """A count over a span.

    Attributes:
        total: How much.
        per_s: The same a second.
        per_call: The same a call.
    """

    total: int
    per_s: float
    per_call: float = 0.0


@dataclass(frozen=True, slots=True)
class FiguresBody(TypedBody):
    """Counts over the last minute, hour and day."""

    minute: Figure
    hour: Figure
    day: Figure


@dataclass(frozen=True, slots=True)
class QueueUnit:
    """A unit of a queue.

    Attributes:
        tags_code: Hash of the tag; in the delay topic when the message is due, as milliseconds.
        is_match: Whether the unit's bit map matches the group's filter; this broker has no bit maps.
    """

    phy_offset: int
    size_bytes: int
    tags_code: int
    is_match: bool = False


@dataclass(frozen=True, slots=True)
class QueueUnitsBody(TypedBody):
    """Units of a queue.

    Attributes:
        units: In order; none if the first requested unit does not exist.
        max_offset: Of the message that is put next.
        subscription: Of the group that was named, if it is online.
        filter_text: The filter of the group as JSON, or the reason why none is known.
    """

    max_offset: int
    min_offset: int
    units: tuple[QueueUnit, ...] = ()
    subscription: SubscriptionData | None = None
    filter_text: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSubscriptionBody(TypedBody):
    """The subscription of a group to a topic.

    Attributes:
        subscription: None if it has none, or is offline.
    """

    group: str
    topic: str | None
    subscription: SubscriptionData | None = None


@dataclass(frozen=True, slots=True)
class HaSlave(TypedBody):
    """How a slave follows its master; all of it is 0 where the broker is a master itself.

    Attributes:
        per_s: Bytes that came in the last second.
        max_offset: Physical offset up to which it has the log.
        read_ms: When it last read of its master.
        write_ms: When it last wrote to it.
        flush_offset: Physical offset up to which its master is on the disk.
    """

    per_s: int = 0
    max_offset: int = 0
    read_ms: int = 0
    write_ms: int = 0
    flush_offset: int = 0


@dataclass(frozen=True, slots=True)
class HaStatusBody(TypedBody):
    """How a log is copied to other brokers.

    Attributes:
        max_offset: Physical offset of the end of the log.
        is_master: Whether the broker takes messages by itself.
        in_sync: How many slaves have all of it.
        slaves: The connections of slaves; here there are none.
        as_slave: What the broker does as a slave itself.
    """

    max_offset: int
    is_master: bool = True
    in_sync: int = 0
    slaves: tuple[HaSlave, ...] = ()
    as_slave: HaSlave = HaSlave()
