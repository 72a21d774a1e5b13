"""Topics, groups, offsets and stats, as tools ask for them."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.clock import VirtualClock
from seglog.remoting.admin_bodies import GroupListBody, GroupOffsets, QueueTimeSpan, TopicOffsets
from seglog.remoting.admin_headers import (
    ConsumeStatsHeader,
    CorrectionOffsetHeader,
    DeleteTopicHeader,
    EarliestTimeHeader,
    GroupHeader,
    PageHeader,
    TimeSpanHeader,
    TopicHeader,
)
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.headers import CreateTopicHeader, DeleteGroupHeader
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.storage.format.config.config_json import encode_config
from seglog.testing import RoomyFiles
from tests.support.brokers import ask, open_broker, pull, send, send_header

START_MS = 1_700_000_000_000


@pytest.fixture
def clock():
    return VirtualClock(START_MS)


def queue(queue_id, topic="T"):
    return MessageQueue(topic, "broker-a", queue_id)


def fill(broker, clock, count, topic="T", queue_id=0):
    for _ in range(count):
        assert send(broker, topic, queue_id=queue_id).code is ResponseCode.SUCCESS
        clock.advance(1000)


# ------------------------------------------------------------------------------------ deleting


def delete(broker, topic):
    return ask(broker, RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicHeader(topic))


def test_a_deleted_topic_is_gone_with_queues_offsets_and_pop_retries(broker, clock, tmp_path):
    fill(broker, clock, 3)
    fill(broker, clock, 2, "Other")
    for name in ("%RETRY%g_T", "%RETRY%g+T", "%RETRY%g"):
        send(broker, name)
    for group, topic in (("g", "T"), ("g", "Other"), ("h", "T")):
        broker.groups.find(group)
        broker.offsets.commit(group, topic, 0, 1)
    broker.offsets.note_pull("g", "T", 0, 2)
    before = {topic.name for topic in broker.topics.all()}
    assert {"%RETRY%g_T", "%RETRY%g"} <= before
    assert delete(broker, "T").code is ResponseCode.SUCCESS
    gone = before - {topic.name for topic in broker.topics.all()}
    assert gone == {"T", "%RETRY%g_T"} | ({"%RETRY%g+T"} & before)
    assert broker.offsets.all() == {("g", "Other", 0): 1}
    assert broker.offsets.pulled("g", "T", 0) is None
    assert broker.store.topics() == ["%RETRY%g", "Other"]
    assert pull(broker, "T").code is ResponseCode.TOPIC_NOT_EXIST
    broker.close()
    with open_broker(tmp_path / "store", clock) as again:
        assert again.topics.get("T") is None
        assert again.store.topics() == ["%RETRY%g", "Other"]


def test_a_topic_that_is_made_again_begins_at_0(broker, clock):
    fill(broker, clock, 3)
    delete(broker, "T")
    answer = send(broker, "T")
    assert (answer.code, send_header(answer).queue_offset) == (ResponseCode.SUCCESS, 0)


def test_a_topic_that_is_not_there_is_deleted_too(broker):
    assert delete(broker, "Nothing").code is ResponseCode.SUCCESS


@pytest.mark.parametrize(
    ("topic", "remark"),
    [
        (" ", "The specified topic is blank."),
        ("TBW102", "The topic[TBW102] is conflict with system topic."),
        ("broker-a", "The topic[broker-a] is conflict with system topic."),
        ("rmq_sys_x", "The topic[rmq_sys_x] is conflict with system topic."),
        ("RMQ_SYS_TRACE_TOPIC", "The topic[RMQ_SYS_TRACE_TOPIC] is conflict with system topic."),
    ],
)
def test_topics_of_the_broker_are_not_deleted(broker, topic, remark):
    answer = delete(broker, topic)
    assert (answer.code, answer.remark) == (ResponseCode.INVALID_PARAMETER, remark)


def test_a_compaction_topic_is_refused_with_a_reason(broker):
    header = CreateTopicHeader("C", "TBW102", 1, 1, 6, attributes="+cleanup.policy=COMPACTION")
    assert ask(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, header).code is ResponseCode.SUCCESS
    answer = delete(broker, "C")
    assert answer.code is ResponseCode.SYSTEM_ERROR
    assert "compaction" in answer.remark


def test_what_no_table_names_is_cleaned(broker, clock):
    fill(broker, clock, 2)
    broker.store.put("Stray", b"x")
    broker.store.put("%LMQ%x", b"x")
    broker.store.put("rmq_sys_wheel_timer", b"x")
    assert ask(broker, RequestCode.CLEAN_UNUSED_TOPIC).code is ResponseCode.SUCCESS
    assert broker.store.topics() == ["%LMQ%x", "T", "rmq_sys_wheel_timer"]


def test_expired_queues_keep_their_next_offset(broker, clock):
    fill(broker, clock, 5)
    assert ask(broker, RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE).code is ResponseCode.SUCCESS
    assert broker.store.max_offset("T", 0) == 5


def test_a_request_has_old_files_deleted(tmp_path, clock):
    local = datetime.fromtimestamp(clock.now_ms() / 1000).astimezone()
    config = BrokerConfig(retention_delete_hours=((local.hour + 12) % 24,), retention_hours=0)
    with Broker.open(
        tmp_path / "s",
        clock=clock,
        config=config,
        files=RoomyFiles(tmp_path / "s"),
        segment_size_bytes=1 << 20,
    ) as broker:
        for _ in range(3):
            broker.store.put("T", bytes(900_000))
        broker.advance("2m")
        assert broker.store.min_phy_offset == 0
        assert ask(broker, RequestCode.DELETE_EXPIRED_COMMITLOG).code is ResponseCode.SUCCESS
        broker.advance("1s")
        assert broker.store.min_phy_offset > 0


# -------------------------------------------------------------------------------------- tables


def names(table):
    return list(table)


def test_all_topics_come_with_their_number_and_version(broker, clock):
    fill(broker, clock, 1)
    answer = ask(broker, RequestCode.GET_ALL_TOPIC_CONFIG, PageHeader())
    table = answer.body.value["topicConfigTable"]
    assert answer.header.total_topic_num == len(table)
    assert table["T"]["readQueueNums"] == 4
    saved = json.loads((broker.path / "config" / "topics.json").read_text())
    assert answer.body.value["dataVersion"] == saved["dataVersion"]


def test_topics_come_in_pages_by_name_as_long_as_nothing_changes(broker, clock):
    fill(broker, clock, 1)
    code = RequestCode.GET_ALL_TOPIC_CONFIG
    whole = sorted(ask(broker, code, PageHeader()).body.value["topicConfigTable"])
    found = []
    version = None
    while len(found) < len(whole):
        page = ask(broker, code, PageHeader(len(found), version, 4)).body.value
        version = encode_config(page["dataVersion"])
        found += names(page["topicConfigTable"])
    assert found == whole
    assert names(ask(broker, code, PageHeader(99, version)).body.value["topicConfigTable"]) == []
    send(broker, "New")
    again = ask(broker, code, PageHeader(4, version, 4)).body.value
    assert names(again["topicConfigTable"]) == sorted([*whole, "New"])[:4]


def test_one_topic_is_told(broker, clock):
    fill(broker, clock, 1)
    found = ask(broker, RequestCode.GET_TOPIC_CONFIG, TopicHeader("T")).body.value
    assert (found["topicName"], found["perm"]) == ("T", 6)
    answer = ask(broker, RequestCode.GET_TOPIC_CONFIG, TopicHeader("No"))
    assert (answer.code, answer.remark) == (
        ResponseCode.TOPIC_NOT_EXIST,
        "No topic in this broker. topic: No",
    )


def test_system_topics_are_named(broker):
    found = ask(broker, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER).body.names
    assert {"TBW102", "SCHEDULE_TOPIC_XXXX", "broker-a", "TRANS_CHECK_MAX_TIME_TOPIC"} <= found


def test_finding_4_of_the_broker_what_is_forbidden_goes_with_its_group(broker):
    for group in ("g", "other"):
        broker.groups.put(SubscriptionGroup(group))
        broker.groups.forbid(group, "T", True)
    ask(broker, RequestCode.DELETE_SUBSCRIPTIONGROUP, DeleteGroupHeader("g"))
    broker.groups.put(SubscriptionGroup("g"))
    assert not broker.groups.is_forbidden("g", "T")
    assert broker.groups.is_forbidden("other", "T")
    table = ask(broker, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, PageHeader()).body.value
    assert table["forbiddenTable"] == {"other": {"T": 4}}


def test_what_is_forbidden_to_a_group_that_is_not_there_goes_when_it_is_deleted(broker):
    broker.groups.forbid("g", "T", True)
    broker.groups.forbid("other", "T", True)
    header = DeleteGroupHeader("g", False)
    assert ask(broker, RequestCode.DELETE_SUBSCRIPTIONGROUP, header).code is ResponseCode.SUCCESS
    assert not broker.groups.is_forbidden("g", "T")
    assert broker.groups.is_forbidden("other", "T")


def test_groups_come_with_what_is_forbidden_to_them(broker):
    broker.groups.put(SubscriptionGroup("g", retry_max_times=3))
    broker.groups.forbid("g", "T", True)
    answer = ask(broker, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, PageHeader())
    table = answer.body.value["subscriptionGroupTable"]
    assert answer.header.total_group_num == len(table)
    assert table["g"]["retryMaxTimes"] == 3
    assert answer.body.value["forbiddenTable"]["g"] == {"T": 4}
    page = ask(broker, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, PageHeader(0, None, 1)).body.value
    assert names(page["subscriptionGroupTable"]) == sorted(table)[:1]
    assert page["forbiddenTable"] == {}


def test_one_group_is_told_and_created_if_it_may_be(tmp_path, broker):
    found = ask(broker, RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, GroupHeader("new")).body.value
    assert found["groupName"] == "new"
    with open_broker(tmp_path / "other", config=BrokerConfig(auto_create_groups=False)) as strict:
        answer = ask(strict, RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, GroupHeader("new"))
        assert answer.code is ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        assert answer.remark == "No group in this broker"


def test_groups_are_made_together_or_not_at_all(broker):
    code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST
    bad = GroupListBody((SubscriptionGroup("a"), SubscriptionGroup("b c")))
    assert ask(broker, code, body=bad).code is ResponseCode.INVALID_PARAMETER
    assert broker.groups.get("a") is None
    good = GroupListBody((SubscriptionGroup("a"), SubscriptionGroup("b", retry_queue_nums=2)))
    assert ask(broker, code, body=good).code is ResponseCode.SUCCESS
    assert broker.groups.get("b").retry_queue_nums == 2


def test_all_offsets_come_as_their_file_has_them(broker, clock):
    fill(broker, clock, 3)
    broker.groups.find("g")
    broker.offsets.commit("g", "T", 0, 2)
    found = ask(broker, RequestCode.GET_ALL_CONSUMER_OFFSET).body.value
    assert found["offsetTable"] == {"T@g": {0: 2}}
    broker.persist()
    after = ask(broker, RequestCode.GET_ALL_CONSUMER_OFFSET).body.value
    assert encode_config(after) == (broker.path / "config" / "consumerOffset.json").read_text()


def test_delay_offsets_are_told(broker):
    for _ in range(2):
        send(broker, "T", properties=b"DELAY\x011\x02")
    broker.advance("2s")
    assert ask(broker, RequestCode.GET_ALL_DELAY_OFFSET).body.value["offsetTable"] == {1: 2}


# --------------------------------------------------------------------------------------- stats


def test_the_queues_of_a_topic_are_told_with_their_newest_message(broker, clock):
    fill(broker, clock, 3)
    fill(broker, clock, 1, queue_id=2)
    found = ask(broker, RequestCode.GET_TOPIC_STATS_INFO, TopicHeader("T")).body.offsets
    assert found == {
        queue(0): TopicOffsets(0, 3, START_MS + 2000),
        queue(1): TopicOffsets(0, 0, 0),
        queue(2): TopicOffsets(0, 1, START_MS + 3000),
        queue(3): TopicOffsets(0, 0, 0),
    }
    answer = ask(broker, RequestCode.GET_TOPIC_STATS_INFO, TopicHeader("No"))
    assert (answer.code, answer.remark) == (ResponseCode.TOPIC_NOT_EXIST, "topic[No] not exist")


def consume_stats(broker, **header):
    return ask(broker, RequestCode.GET_CONSUME_STATS, ConsumeStatsHeader("cg", **header)).body.offsets


def test_s4_44_consumer_progress_tells_what_is_inflight(broker, clock):
    fill(broker, clock, 5)
    pull(broker, "T", max_msg_nums=3)
    broker.offsets.commit("cg", "T", 0, 1)
    found = consume_stats(broker)
    assert found[queue(0)] == GroupOffsets(5, 1, 3, START_MS)
    assert found[queue(1)] == GroupOffsets(0, 0, 0, 0)
    broker.offsets.commit("cg", "T", 0, 5)
    assert consume_stats(broker)[queue(0)] == GroupOffsets(5, 5, 5, START_MS + 4000)


def test_progress_is_told_of_the_topics_that_are_asked_for(broker, clock):
    for topic in ("T", "U", "V"):
        fill(broker, clock, 1, topic)
    for topic in ("T", "U"):
        broker.offsets.commit("cg", topic, 0, 1)
    assert {found.topic for found in consume_stats(broker)} == {"T", "U"}
    assert {found.topic for found in consume_stats(broker, topic="T")} == {"T"}
    assert {found.topic for found in consume_stats(broker, topic_list="U;V;No")} == {"U", "V"}


def test_the_wait_of_the_next_message_is_told(broker, clock):
    fill(broker, clock, 4)
    code = RequestCode.QUERY_CONSUME_TIME_SPAN
    none_yet = ask(broker, code, TimeSpanHeader("T", "cg")).body.spans
    assert none_yet[queue(0)] == QueueTimeSpan(START_MS, START_MS + 3000, START_MS, 4000)
    assert none_yet[queue(1)] == QueueTimeSpan(-1, -1, -1, 0)
    broker.offsets.commit("cg", "T", 0, 3)
    span = ask(broker, code, TimeSpanHeader("T", "cg")).body.spans[queue(0)]
    assert span == QueueTimeSpan(START_MS, START_MS + 3000, START_MS + 2000, 1000)
    broker.offsets.commit("cg", "T", 0, 4)
    assert ask(broker, code, TimeSpanHeader("T", "cg")).body.spans[queue(0)].delay_ms == 0
    assert ask(broker, code, TimeSpanHeader("No", "cg")).code is ResponseCode.TOPIC_NOT_EXIST


def test_the_first_message_of_a_queue_has_a_time(broker, clock):
    clock.advance(5000)
    fill(broker, clock, 2)

    def earliest(queue_id):
        return ask(
            broker, RequestCode.GET_EARLIEST_MSG_STORETIME, EarliestTimeHeader("T", queue_id)
        ).header.timestamp_ms

    assert earliest(0) == START_MS + 5000
    assert earliest(1) == -1


def test_the_slowest_group_of_a_queue_is_told(broker, clock):
    fill(broker, clock, 9)
    for group, offset in (("a", 3), ("b", 5), ("c", 2)):
        broker.offsets.commit(group, "T", 0, offset)
    code = RequestCode.QUERY_CORRECTION_OFFSET
    assert ask(broker, code, CorrectionOffsetHeader("T", "b")).body.offsets == {0: 2}
    assert ask(broker, code, CorrectionOffsetHeader("T", "b", "c")).body.offsets == {0: 3}
    assert ask(broker, code, CorrectionOffsetHeader("T", "c", "c")).body.offsets == {0: (1 << 63) - 1}
    assert broker.offsets.query("c", "T", 0) == 2


def test_who_consumes_a_topic_and_what_a_group_consumes(broker, clock):
    fill(broker, clock, 1)
    for group, topic in (("a", "T"), ("b", "T"), ("b", "U")):
        broker.offsets.commit(group, topic, 0, 1)
    groups = ask(broker, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, TopicHeader("T")).body.names
    assert groups == {"a", "b"}
    topics = ask(broker, RequestCode.QUERY_TOPICS_BY_CONSUMER, GroupHeader("b")).body.names
    assert topics == {"T", "U"}
