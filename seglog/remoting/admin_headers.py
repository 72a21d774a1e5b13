"""Typed headers of the requests that administer topics, groups and offsets; see ``headers.py``.

Source: ``remoting/.../protocol/header/DeleteTopicRequestHeader.java`` and others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from seglog.remoting.command import Header, WireNames
from seglog.remoting.headers import Int32, wire_names


@wire_names()
@dataclass(frozen=True, slots=True)
class TopicHeader(Header):
    """DELETE_TOPIC_IN_BROKER, GET_TOPIC_STATS_INFO, GET_TOPIC_CONFIG and QUERY_TOPIC_CONSUME_BY_WHO."""

    topic: str


@wire_names()
@dataclass(frozen=True, slots=True)
class GroupHeader(Header):
    """GET_SUBSCRIPTIONGROUP_CONFIG and QUERY_TOPICS_BY_CONSUMER."""

    group: str


@wire_names()
@dataclass(frozen=True, slots=True)
class ConsumeStatsHeader(Header):
    """GET_CONSUME_STATS.

    Attributes:
        topic: Only this one, if the group subscribes to it; None or empty for all that it has offsets in.
        topic_list: Only these, joined by ``;``, regardless of what it subscribes to.
    """

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None


@wire_names()
@dataclass(frozen=True, slots=True)
class TimeSpanHeader(Header):
    """QUERY_CONSUME_TIME_SPAN."""

    topic: str
    group: str


@wire_names()
@dataclass(frozen=True, slots=True)
class EarliestTimeHeader(Header):
    """GET_EARLIEST_MSG_STORETIME."""

    topic: str
    queue_id: Int32


@wire_names()
@dataclass(frozen=True, slots=True)
class TimestampResponseHeader(Header):
    """Answer to GET_EARLIEST_MSG_STORETIME; -1 for a queue without messages."""

    timestamp_ms: int


@wire_names()
@dataclass(frozen=True, slots=True)
class CorrectionOffsetHeader(Header):
    """QUERY_CORRECTION_OFFSET.

    Attributes:
        filter_groups: Groups that do not count, joined by ``,``.
        compare_group: The group whose offsets are held against those of the others.
    """

    topic: str
    compare_group: str
    filter_groups: str | None = None


@wire_names(first="topicSeq", most="maxTopicNum")
@dataclass(frozen=True, slots=True)
class PageHeader(Header):
    """GET_ALL_TOPIC_CONFIG, and with the names of ``WIRE_GROUPS`` GET_ALL_SUBSCRIPTIONGROUP_CONFIG.

    Nothing at all asks for the whole table.

    Attributes:
        first: Index of the first entry, by name.
        data_version: Version that the entries before were of, as JSON; of another one all come again.
        most: Entries at most.
    """

    first: Int32 | None = None
    data_version: str | None = None
    most: Int32 | None = None
    WIRE_GROUPS: ClassVar[WireNames] = {
        "first": "groupSeq",
        "data_version": "dataVersion",
        "most": "maxGroupNum",
    }


@wire_names()
@dataclass(frozen=True, slots=True)
class TopicCountResponseHeader(Header):
    """Answer to GET_ALL_TOPIC_CONFIG."""

    total_topic_num: Int32


@wire_names()
@dataclass(frozen=True, slots=True)
class GroupCountResponseHeader(Header):
    """Answer to GET_ALL_SUBSCRIPTIONGROUP_CONFIG."""

    total_group_num: Int32
