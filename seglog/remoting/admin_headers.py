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
    """GET_TOPIC_STATS_INFO, GET_TOPIC_CONFIG and QUERY_TOPIC_CONSUME_BY_WHO."""

    topic: str


@wire_names()
@dataclass(frozen=True, slots=True)
class DeleteTopicHeader(Header):
    """DELETE_TOPIC_IN_BROKER; without the field it is refused as with a blank name."""

    topic: str = ""


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
class GroupSubscriptionHeader(Header):
    """QUERY_SUBSCRIPTION_BY_CONSUMER."""

    group: str
    topic: str | None = None


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
    """Answer to GET_ALL_SUBSCRIPTIONGROUP_CONFIG; releases before 5.4 answer without a field."""

    total_group_num: Int32 | None = None


@wire_names(is_unique_key="_UNIQUE_KEY_QUERY", begin_ms="beginTimestamp", end_ms="endTimestamp")
@dataclass(frozen=True, slots=True)
class QueryMessageHeader(Header):
    """QUERY_MESSAGE.

    Attributes:
        max_num: Messages at most, the newest; not looked at in a query by unique key.
        begin_ms: Earliest store time.
        end_ms: Latest store time.
        is_unique_key: Whether ``key`` is a unique key, as clients before 5.4 say it too.
        index_type: ``K`` for one of a message's KEYS, ``U`` for its unique key, ``T`` for its tag.
        last_key: Where a page of an index in RocksDB begins; this broker has none.
    """

    topic: str
    key: str
    max_num: Int32
    begin_ms: int
    end_ms: int
    is_unique_key: bool = False
    index_type: str | None = None
    last_key: str | None = None


@wire_names(last_ms="indexLastUpdateTimestamp", last_phy_offset="indexLastUpdatePhyoffset")
@dataclass(frozen=True, slots=True)
class QueryMessageResponseHeader(Header):
    """Answer to QUERY_MESSAGE, also where nothing was found.

    Attributes:
        last_ms: Store time of the last record in the newest file of the index; 0 where nothing was found.
        last_phy_offset: Where in the log that record is; 0 likewise.
    """

    last_ms: int
    last_phy_offset: int


@wire_names(phy_offset="offset")
@dataclass(frozen=True, slots=True)
class ViewMessageHeader(Header):
    """VIEW_MESSAGE_BY_ID.

    Attributes:
        phy_offset: Of the record; clients take it out of the offsetMsgId.
        topic: Which the message has to be of, if the release looks at it.
    """

    phy_offset: int
    topic: str | None = None


@wire_names(first="index")
@dataclass(frozen=True, slots=True)
class QueryQueueHeader(Header):
    """QUERY_CONSUME_QUEUE.

    Attributes:
        first: Queue offset of the first unit.
        count: Units at most.
        consumer_group: Whose subscription is returned as well; None for none.
    """

    topic: str = ""
    queue_id: Int32 = 0
    first: int = 0
    count: Int32 = 0
    consumer_group: str | None = None


@wire_names()
@dataclass(frozen=True, slots=True)
class KeyValueHeader(Header):
    """PUT_KV_CONFIG."""

    namespace: str
    key: str
    value: str


@wire_names()
@dataclass(frozen=True, slots=True)
class KeyHeader(Header):
    """GET_KV_CONFIG and DELETE_KV_CONFIG; without them RocketMQ finds nothing."""

    namespace: str | None = None
    key: str | None = None


@wire_names()
@dataclass(frozen=True, slots=True)
class NamespaceHeader(Header):
    """GET_KVLIST_BY_NAMESPACE; without it RocketMQ finds nothing."""

    namespace: str | None = None


@wire_names()
@dataclass(frozen=True, slots=True)
class ValueResponseHeader(Header):
    """Answer to GET_KV_CONFIG."""

    value: str | None = None


@wire_names()
@dataclass(frozen=True, slots=True)
class NameServerTopicHeader(Header):
    """DELETE_TOPIC_IN_NAMESRV.

    Attributes:
        topic: Without it RocketMQ deletes nothing.
        cluster_name: Only there; None or empty for every cluster.
    """

    topic: str = ""
    cluster_name: str | None = None


@wire_names()
@dataclass(frozen=True, slots=True)
class ClusterHeader(Header):
    """GET_TOPICS_BY_CLUSTER; without it RocketMQ names no topic."""

    cluster: str = ""


@wire_names()
@dataclass(frozen=True, slots=True)
class BrokerNameHeader(Header):
    """WIPE_WRITE_PERM_OF_BROKER and ADD_WRITE_PERM_OF_BROKER; without a name they change nothing."""

    broker_name: str = ""


@wire_names()
@dataclass(frozen=True, slots=True)
class WipedResponseHeader(Header):
    """Answer to WIPE_WRITE_PERM_OF_BROKER: how many topics the broker has."""

    wipe_topic_count: Int32


@wire_names()
@dataclass(frozen=True, slots=True)
class AddedResponseHeader(Header):
    """Answer to ADD_WRITE_PERM_OF_BROKER: how many topics the broker has."""

    add_topic_count: Int32


@wire_names(is_order_only="isOrder")
@dataclass(frozen=True, slots=True)
class BrokerConsumeStatsHeader(Header):
    """GET_BROKER_CONSUME_STATS.

    Attributes:
        is_order_only: Whether only topics of order are of interest.
    """

    is_order_only: bool = False


@wire_names()
@dataclass(frozen=True, slots=True)
class ConfigVersionResponseHeader(Header):
    """Answer to GET_BROKER_CONFIG: which state of the settings it is, as JSON."""

    version: str


@wire_names(name="statsName", key="statsKey")
@dataclass(frozen=True, slots=True)
class FiguresHeader(Header):
    """VIEW_BROKER_STATS_DATA.

    Attributes:
        name: What is counted, by RocketMQ's name.
        key: Of what: a topic, a topic with ``@`` and a group, or the cluster.
    """

    name: str
    key: str
