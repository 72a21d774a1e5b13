"""Bodies of the requests that administer topics, groups and offsets.

Source: ``remoting/.../protocol/admin/TopicStatsTable.java``, ``.../admin/ConsumeStats.java``,
``.../body/QueryConsumeTimeSpanBody.java``, ``.../body/QueryCorrectionOffsetBody.java``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seglog.remoting.command import TypedBody
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.storage.format.config import ConfigValue


@dataclass(frozen=True, slots=True)
class ConfigBody(TypedBody):
    """A table, or one entry of it, as its file under ``config/`` has it: JSON on the wire."""

    value: ConfigValue


@dataclass(frozen=True, slots=True)
class NamesBody(TypedBody):
    """Names of topics or groups."""

    names: frozenset[str]


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
    """The queues of a topic; this broker counts no rates, so the rate is 0."""

    offsets: Mapping[MessageQueue, TopicOffsets]
    put_tps: float = 0.0


@dataclass(frozen=True, slots=True)
class GroupOffsets:
    """Where a group is in one queue.

    Attributes:
        broker_offset: Of the message that is put next.
        consumer_offset: Committed; 0 if it never was.
        pull_offset: Of the message that it pulls next; what is between is on its way (``Inflight``).
        last_timestamp_ms: When the last message that it has consumed was stored; 0 if that is not known.
    """

    broker_offset: int
    consumer_offset: int
    pull_offset: int
    last_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class ConsumeStatsBody(TypedBody):
    """Where a group is in the queues of its topics; this broker counts no rates, so the rate is 0."""

    offsets: Mapping[MessageQueue, GroupOffsets]
    consume_tps: float = 0.0


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
    """The least offset of any group by queue; the greatest number where the compared group is no further."""

    offsets: Mapping[int, int]
