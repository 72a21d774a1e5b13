"""Typed headers and ext fields say the same, in RocketMQ's spelling."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import ProtocolError
from seglog.remoting import admin_headers, client_headers, headers
from seglog.remoting.command import Header
from seglog.remoting.headers import (
    GetMaxOffsetHeader,
    PullMessageHeader,
    SendMessageHeader,
    decode_header,
    encode_header,
    fields_of,
)
from tests.support.rows import each_row

KINDS = [
    kind
    for module in (headers, client_headers, admin_headers)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, Header) and kind is not Header
]
VALUES = {
    "str": st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
    "int": st.integers(-(2**63), 2**63 - 1),
    "Int32": st.integers(-(2**31), 2**31 - 1),
    "bool": st.booleans(),
    "bytes": st.text(st.characters(exclude_categories=["Cs"]), max_size=10).map(str.encode),
}


SPELLINGS = {
    "AddedResponseHeader": "addTopicCount",
    "BrokerConsumeStatsHeader": "isOrder",
    "FiguresHeader": "statsName statsKey",
    "BrokerNameHeader": "brokerName",
    "CloneGroupOffsetHeader": "srcGroup destGroup topic offline",
    "ClusterHeader": "cluster",
    "ConfigVersionResponseHeader": "version",
    "ConsumeDirectlyHeader": "consumerGroup clientId msgId brokerName topic topicSysFlag groupSysFlag",
    "ConsumeStatsHeader": "consumerGroup topic topicList",
    "ConsumerGroupHeader": "consumerGroup",
    "ConsumerStatusHeader": "topic group clientAddr",
    "CorrectionOffsetHeader": "topic compareGroup filterGroups",
    "CreateTopicHeader": (
        "topic defaultTopic readQueueNums writeQueueNums perm topicFilterType topicSysFlag order attributes"
    ),
    "DeleteGroupHeader": "groupName cleanOffset",
    "EarliestTimeHeader": "topic queueId",
    "GetMaxOffsetHeader": "topic queueId committed",
    "GetMinOffsetHeader": "topic queueId",
    "GetRouteInfoHeader": "topic acceptStandardJsonOnly",
    "GroupCountResponseHeader": "totalGroupNum",
    "GroupForbiddenHeader": "group topic readable",
    "GroupHeader": "group",
    "GroupSubscriptionHeader": "group topic",
    "KeyHeader": "namespace key",
    "KeyValueHeader": "namespace key value",
    "MembersChangedHeader": "consumerGroup seglogTopic seglogBroker seglogQueueId",
    "NameServerTopicHeader": "topic clusterName",
    "NamespaceHeader": "namespace",
    "OffsetResponseHeader": "offset",
    "PageHeader": "topicSeq dataVersion maxTopicNum",
    "ProducerGroupHeader": "producerGroup",
    "PullMessageHeader": (
        "consumerGroup topic queueId queueOffset maxMsgNums sysFlag commitOffset "
        "suspendTimeoutMillis subVersion subscription expressionType maxMsgBytes requestSource "
        "proxyFrowardClientId seglogOwner"
    ),
    "PullMessageResponseHeader": (
        "suggestWhichBrokerId nextBeginOffset minOffset maxOffset topicSysFlag groupSysFlag"
    ),
    "QueryConsumerOffsetHeader": "consumerGroup topic queueId setZeroIfNotFound",
    "QueryMessageHeader": (
        "topic key maxNum beginTimestamp endTimestamp _UNIQUE_KEY_QUERY indexType lastKey"
    ),
    "QueryMessageResponseHeader": "indexLastUpdateTimestamp indexLastUpdatePhyoffset",
    "QueryQueueHeader": "topic queueId index count consumerGroup",
    "ReplyMessageHeader": (
        "producerGroup topic defaultTopic defaultTopicQueueNums queueId sysFlag bornTimestamp flag bornHost"
        " storeHost storeTimestamp properties reconsumeTimes unitMode"
    ),
    "ResetOffsetHeader": "group topic timestamp isForce queueId offset",
    "RunningInfoHeader": "consumerGroup clientId jstackEnable",
    "SearchOffsetHeader": "topic queueId timestamp boundaryType",
    "SendBackHeader": "offset group delayLevel originMsgId originTopic unitMode maxReconsumeTimes",
    "SendMessageHeader": (
        "producerGroup topic defaultTopic defaultTopicQueueNums queueId sysFlag bornTimestamp flag "
        "properties reconsumeTimes unitMode maxReconsumeTimes batch bname"
    ),
    "SendMessageResponseHeader": "msgId queueId queueOffset transactionId batchUniqId seglogDurability",
    "TimeSpanHeader": "topic group",
    "TimestampResponseHeader": "timestamp",
    "TopicCountResponseHeader": "totalTopicNum",
    "TopicHeader": "topic",
    "DeleteTopicHeader": "topic",
    "UnregisterClientHeader": "clientID producerGroup consumerGroup",
    "UpdateConsumerOffsetHeader": "consumerGroup topic queueId commitOffset seglogOwner",
    "ValueResponseHeader": "value",
    "ViewMessageHeader": "offset topic",
    "WipedResponseHeader": "wipeTopicCount",
}
"""Names on the wire, in the order of the fields, as RocketMQ's classes spell them."""


def any_header(kind):
    fields = {}
    for field in dataclasses.fields(kind):
        name, _, optional = field.type.partition(" | ")
        # One that is absent is read as its default, so None is written only where it is the default.
        is_none = bool(optional) and field.default is None
        fields[field.name] = (st.none() | VALUES[name]) if is_none else VALUES[name]
    return st.builds(kind, **fields)


@each_row("kind", KINDS)
def test_every_field_has_one_wire_name(kind):
    names = [field.name for field in dataclasses.fields(kind)]
    assert list(kind.WIRE) == names
    assert len(set(kind.WIRE.values())) == len(names)


def test_names_on_the_wire_are_rocketmqs():
    assert {kind.__name__: " ".join(kind.WIRE.values()) for kind in KINDS if kind.WIRE} == SPELLINGS


@given(st.sampled_from(KINDS).flatmap(any_header))
def test_a_header_survives_its_ext_fields(header):
    assert decode_header(type(header), encode_header(header)) == header


@given(any_header(SendMessageHeader))
def test_a_send_header_survives_the_one_letter_names(header):
    ext = encode_header(header, SendMessageHeader.WIRE_V2)
    assert set(ext) <= set("abcdefghijklmn")
    assert decode_header(SendMessageHeader, ext, SendMessageHeader.WIRE_V2) == header


def test_one_letter_names_are_rocketmqs():
    assert SendMessageHeader.WIRE_V2["topic"] == "b"
    assert SendMessageHeader.WIRE_V2["queue_id"] == "e"
    assert SendMessageHeader.WIRE_V2["properties"] == "i"
    assert SendMessageHeader.WIRE_V2["broker_name"] == "n"


def test_absent_optional_fields_take_their_defaults_and_unknown_ones_are_ignored():
    ext = {"topic": "T", "queueId": "3", "bname": "b", "lo": "x"}
    assert decode_header(GetMaxOffsetHeader, ext) == GetMaxOffsetHeader("T", 3, is_committed=True)


def test_none_is_left_out():
    header = PullMessageHeader("g", "T", 0, 5, 32, 2, 0, 15_000, 0)
    assert encode_header(header) == {
        "consumerGroup": "g",
        "topic": "T",
        "queueId": "0",
        "queueOffset": "5",
        "maxMsgNums": "32",
        "sysFlag": "2",
        "commitOffset": "0",
        "suspendTimeoutMillis": "15000",
        "subVersion": "0",
    }


@each_row(
    "ext, says",
    [
        pytest.param({"topic": "T"}, "<queueId> is null", id="missing"),
        pytest.param({"topic": "T", "queueId": "three"}, "queueId holds 'three'", id="word"),
        pytest.param({"topic": "T", "queueId": ""}, "whole number", id="empty"),
        pytest.param({"topic": "T", "queueId": "٣"}, "whole number", id="other digits"),
        pytest.param({"topic": "T", "queueId": "1_0"}, "whole number", id="underscore"),
        pytest.param({"topic": "T", "queueId": "--1"}, "queueId", id="two signs"),
        pytest.param({"topic": "T", "queueId": str(2**31)}, "32 bits", id="33 bits"),
        pytest.param({"topic": "T", "queueId": str(2**40)}, "32 bits", id="42 bits"),
        pytest.param({"topic": "T", "queueId": str(2**63)}, "32 bits", id="65 bits"),
        pytest.param({"topic": "T", "queueId": "9" * 5000}, "whole number", id="5000 digits"),
    ],
)
def test_finding_10_of_the_broker_bad_fields_are_refused_by_name(ext, says):
    with pytest.raises(ProtocolError, match=says):
        decode_header(GetMaxOffsetHeader, ext)


def test_the_names_of_a_table_are_looked_up_once_and_tables_do_not_mix():
    kind, wire = GetMaxOffsetHeader, GetMaxOffsetHeader.WIRE
    tables = [{name: f"{first}{name}" for name in wire} for first in "ab"]
    for first, table in zip("ab", tables, strict=True):
        fields = fields_of(kind, table)
        assert [field.wire_name for field in fields] == [f"{first}{name}" for name in wire]
        assert fields_of(kind, table) is fields
        ext = encode_header(GetMaxOffsetHeader("T", 3), table)
        assert ext == {f"{first}topic": "T", f"{first}queue_id": "3", f"{first}is_committed": "true"}
        assert decode_header(kind, ext, table) == GetMaxOffsetHeader("T", 3)
    assert [field.wire_name for field in fields_of(kind)] == list(wire.values())
    for number in range(100):  # tables that end make place for others, which may have their addresses
        assert fields_of(kind, {name: f"{number}{name}" for name in wire})[0].wire_name == f"{number}topic"
