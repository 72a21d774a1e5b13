"""What consumers send back is tried again after a while, and ends as a dead letter of its group."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from typing_extensions import override

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.broker.tables.topics import TopicConfig
from seglog.clock import VirtualClock
from seglog.errors import FullError
from seglog.remoting.bodies import BatchMessage, MessageBatch
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.headers import SendMessageHeader
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.remoting.topics import PERM_READ
from seglog.storage.format.names import SCHEDULE_TOPIC
from seglog.storage.format.record.host import Host
from seglog.storage.format.record.properties import encode_properties
from seglog.storage.format.record.sys_flag import COMPRESSED, INNER_BATCH
from seglog.storage.store import MessageStore
from tests.support.brokers import open_broker, send, send_back, send_delayed
from tests.support.material.golden import extract
from tests.support.narrow import not_none

START_MS = 1_700_000_000_000
LADDER_S = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1_200, 1_800, 3_600, 7_200)


def stored(broker, topic, queue_id=0):
    return broker.store.get(topic, queue_id, 0, 1_000).messages


def last(broker, topic):
    return stored(broker, topic)[-1]


def queue_sizes(broker):
    return {(queue.topic, queue.queue_id): queue.max_offset for queue in broker.store.queues()}


def props_of(message):
    return {name: value for name, value in message.properties.items() if name != "__CRC32#"}


def test_s4_32_s4_33_the_retry_ladder_ends_after_sixteen_retries_as_a_dead_letter(tmp_path):
    with open_broker(tmp_path) as broker:
        send(broker, "T", b"poison")
        message, now_ms = last(broker, "T"), START_MS
        for failures, wait_s in enumerate(LADDER_S):
            assert message.reconsume_times == failures
            assert send_back(broker, message.phy_offset).code is ResponseCode.SUCCESS
            broker.advance(wait_s * 1_000 - 1)
            assert len(stored(broker, "%RETRY%cg")) == failures
            broker.advance(1)
            now_ms += wait_s * 1_000
            message = last(broker, "%RETRY%cg")
            assert message.store_timestamp_ms == now_ms
        assert message.reconsume_times == 16
        assert broker.topics.get("%DLQ%cg") is None
        assert send_back(broker, message.phy_offset).code is ResponseCode.SUCCESS
        (dead,) = stored(broker, "%DLQ%cg")
        assert (dead.body, dead.reconsume_times, dead.store_timestamp_ms) == (b"poison", 17, now_ms)
        assert broker.topics.get("%DLQ%cg") == TopicConfig("%DLQ%cg", 1, 1)
        broker.advance("3d")
        assert queue_sizes(broker)["%RETRY%cg", 0] == 16


def test_s4_33_a_level_below_zero_is_a_dead_letter_at_once(broker: Broker):
    send(broker, "T", b"x")
    assert send_back(broker, 0, -1).code is ResponseCode.SUCCESS
    (dead,) = stored(broker, "%DLQ%cg")
    assert (dead.body, dead.properties["DELAY"], dead.reconsume_times) == (b"x", "0", 1)
    assert "REAL_TOPIC" not in dead.properties


@pytest.mark.parametrize(("level", "wait_s"), [(1, 1), (5, 60), (18, 7_200), (99, 7_200)])
def test_s4_32_a_client_may_choose_the_level(broker: Broker, level, wait_s):
    send(broker, "T")
    send_back(broker, 0, level)
    broker.advance(wait_s * 1_000 - 1)
    assert stored(broker, "%RETRY%cg") == []
    broker.advance(1)
    assert len(stored(broker, "%RETRY%cg")) == 1


def test_what_is_sent_back_is_the_message_with_one_more_failure(tmp_path):
    clock = VirtualClock()
    with Broker.open(tmp_path, clock=clock, record_crc=False) as broker:
        host = Host.parse("10.1.2.3:4000")
        raw = encode_properties({"TAGS": "A", "KEYS": "k", "UNIQ_KEY": "u", "own": "1"})
        put = broker.store.append(
            "T", 0, b"body", raw, 65, sys_flag=COMPRESSED, flag=7, born_timestamp_ms=5, born_host=host
        )
        send_back(broker, put.phy_offset)
        broker.advance("10s")
        again = last(broker, "%RETRY%cg")
        assert props_of(again) == {
            "TAGS": "A",
            "KEYS": "k",
            "UNIQ_KEY": "u",
            "own": "1",
            "RETRY_TOPIC": "T",
            "ORIGIN_MESSAGE_ID": put.message_id,
            "WAIT": "false",
            "DELAY": "3",
            "REAL_TOPIC": "%RETRY%cg",
            "REAL_QID": "0",
        }
        assert (again.body, again.sys_flag, again.flag) == (b"body", COMPRESSED, 7)
        assert (again.born_timestamp_ms, again.born_host, again.reconsume_times) == (5, host, 1)
        send_back(broker, again.phy_offset)
        broker.advance("30s")
        third = last(broker, "%RETRY%cg")
        assert (third.properties["ORIGIN_MESSAGE_ID"], third.properties["RETRY_TOPIC"]) == (
            put.message_id,
            "T",
        )
        assert broker.store.get("%RETRY%cg", 0, 0, 10, "A").messages


def test_a_retry_has_every_byte_that_a_java_broker_wrote(tmp_path):
    """The first two retries of a Java broker, rebuilt from what its client had consumed."""
    config = BrokerConfig(address="127.0.0.1:10911")
    with (
        MessageStore.open(extract("broker-store", tmp_path)) as java,
        Broker.open(tmp_path / "ours", clock=VirtualClock(), config=config, record_crc=False) as broker,
    ):
        expected = java.get(SCHEDULE_TOPIC, 0, 1, 1).messages[0]
        source = java.message_at(0)
        broker.store.append(
            source.topic,
            source.queue_id,
            source.body,
            source.properties_raw,
            0,
            sys_flag=source.sys_flag,
            flag=source.flag,
            born_timestamp_ms=source.born_timestamp_ms,
            born_host=source.born_host,
            store_host=source.store_host,
        )
        send_back(broker, 0, 1, group="cgretry")
        ours = last(broker, SCHEDULE_TOPIC)
    place: dict[str, Any] = {
        "queue_offset": 0,
        "phy_offset": 0,
        "store_timestamp_ms": 0,
        "properties_raw": b"",
    }
    assert dataclasses.replace(ours, **place) == dataclasses.replace(expected, **place)
    assert props_of(ours) == expected.properties


@pytest.mark.parametrize(("most", "ends"), [(0, "%DLQ%cg"), (1, SCHEDULE_TOPIC)])
def test_the_groups_own_number_of_retries_counts(broker: Broker, most, ends):
    broker.groups.put(SubscriptionGroup("cg", retry_max_times=most))
    send(broker, "T")
    send_back(broker, 0)
    assert {topic for topic, _ in queue_sizes(broker)} == {"T", ends}


def test_a_clients_number_of_retries_is_taken_before_the_groups(broker: Broker):
    send(broker, "T")
    send_back(broker, 0, max_reconsume_times=0)
    assert len(stored(broker, "%DLQ%cg")) == 1


def test_a_group_without_retry_queues_takes_nothing_back(broker: Broker):
    broker.groups.put(SubscriptionGroup("cg", retry_queue_nums=0))
    assert send_back(broker, 12_345).code is ResponseCode.SUCCESS
    assert broker.topics.get("%RETRY%cg") is None


def test_the_retry_topic_has_the_groups_queues(broker: Broker):
    broker.groups.put(SubscriptionGroup("cg", retry_queue_nums=3))
    send(broker, "T")
    for _ in range(40):
        send_back(broker, 0, 1, is_unit_mode=True)
    broker.advance("1s")
    topic = not_none(broker.topics.get("%RETRY%cg"))
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm, topic.sys_flag) == (3, 3, 6, 2)
    assert {queue_id for topic, queue_id in queue_sizes(broker) if topic == "%RETRY%cg"} == {0, 1, 2}


def test_the_checks_come_in_rocketmqs_order(tmp_path):
    with open_broker(tmp_path, config=BrokerConfig(auto_create_groups=False)) as broker:
        answer = send_back(broker, 99)
        assert (answer.code, answer.remark) == (
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            "subscription group not exist, cg",
        )
        broker.groups.put(SubscriptionGroup("cg"))
        broker.topics.put(TopicConfig("%RETRY%cg", 1, 1, perm=4))
        answer = send_back(broker, 99)
        assert answer.code is ResponseCode.NO_PERMISSION
        assert "%RETRY%cg] sending message is forbidden" in not_none(answer.remark)
        broker.topics.put(TopicConfig("%RETRY%cg", 1, 1))
        for offset in (99, -1, 0):
            answer = send_back(broker, offset)
            assert answer.code is ResponseCode.SYSTEM_ERROR
            assert answer.remark == f"look message by offset failed, {offset}"


def test_a_place_inside_a_record_is_no_message(broker: Broker):
    send(broker, "T", bytes(100))
    assert send_back(broker, 4).code is ResponseCode.SYSTEM_ERROR


def test_what_the_store_refuses_is_named_so_that_the_client_sends_it_anew(tmp_path):
    class Store(MessageStore):
        is_full = False

        @override
        def append(self, *arguments, **options):
            if self.is_full:
                raise FullError("no space left")
            return super().append(*arguments, **options)

    clock = VirtualClock()
    store = Store.open(tmp_path, clock=clock)
    assert isinstance(store, Store)
    with Broker(store, clock=clock) as broker:
        send(broker, "T")
        store.is_full = True
        answer = send_back(broker, 0)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "SERVICE_NOT_AVAILABLE")


def test_an_inner_batch_cannot_be_tried_again_as_one(tmp_path):
    path = extract("innerbatch", tmp_path)
    with Broker.open(path, clock=VirtualClock(1_900_000_000_000)) as broker:
        batch = next(
            found
            for queue in broker.store.queues()
            for found in broker.store.get(queue.topic, queue.queue_id, 0, 32).messages
            if broker.store.message_at(found.phy_offset).sys_flag & INNER_BATCH
        )
        assert send_back(broker, batch.phy_offset).code is ResponseCode.SYSTEM_ERROR


COMPACTED = TopicConfig("C", 1, 1, attributes={"cleanup.policy": "COMPACTION"})


def test_a_message_of_a_compaction_topic_is_found_by_its_id(broker: Broker):
    """Its place is one of the compaction log: 0 is a stranger in the commit log."""
    send(broker, "T", b"stranger")
    broker.topics.put(COMPACTED)
    send(broker, "C", b"mine", properties=encode_properties({"KEYS": "k", "UNIQ_KEY": "u"}))
    send_back(broker, 0, 1, origin_topic="C", origin_message_id="u")
    broker.advance("1s")
    assert [message.body for message in stored(broker, "%RETRY%cg")] == [b"mine"]


@pytest.mark.parametrize("message_id", [None, "unknown"])
def test_a_message_of_a_compaction_topic_without_its_id_is_refused(broker: Broker, message_id):
    send(broker, "T", b"stranger")
    broker.topics.put(COMPACTED)
    answer = send_back(broker, 0, origin_topic="C", origin_message_id=message_id)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "look message by offset failed, 0")
    assert stored(broker, SCHEDULE_TOPIC, 2) == []


def send_retry(broker, failures, *, most=None, level=1):
    """Sends as a client does whose message could not be sent back."""
    raw = encode_properties({"DELAY": str(level), "RETRY_TOPIC": "T", "UNIQ_KEY": "u"})
    header = SendMessageHeader(
        *("CLIENT_INNER_PRODUCER", "%RETRY%cg", "TBW102", 4, 0, 0, 5, 0, raw),
        reconsume_times=failures,
        max_reconsume_times=most,
    )
    return broker.dispatch(Request(RequestCode.SEND_MESSAGE_V2, header, b"x"))


def test_s4_33_a_retry_that_is_sent_anew_waits_and_ends_in_the_same_way(broker: Broker):
    broker.groups.put(SubscriptionGroup("cg"))
    assert send_retry(broker, 16).code is ResponseCode.SUCCESS
    broker.advance("1s")
    assert [message.reconsume_times for message in stored(broker, "%RETRY%cg")] == [16]
    send_retry(broker, 17)
    send_retry(broker, 4, most=3)
    assert [message.properties["DELAY"] for message in stored(broker, "%DLQ%cg")] == ["-1", "-1"]


def test_s2_25_a_retry_under_a_live_queue_lock_of_the_group_is_a_dead_letter_at_once(broker: Broker):
    broker.groups.put(SubscriptionGroup("cg"))
    broker.locks.lock("cg", [MessageQueue("T", "broker-a", 0)], "client")
    send_retry(broker, 1)
    assert len(stored(broker, "%DLQ%cg")) == 1
    broker.advance(60_001)
    send_retry(broker, 1)
    broker.advance("1s")
    assert len(stored(broker, "%RETRY%cg")) == 1


def test_a_delayed_message_that_fails_is_tried_again_like_any_other(broker: Broker):
    send_delayed(broker, 2, b"x", TAGS="A")
    broker.advance("5s")
    send_back(broker, last(broker, "T").phy_offset)
    broker.advance("10s")
    again = last(broker, "%RETRY%cg")
    assert (again.properties["DELAY"], again.properties["REAL_TOPIC"]) == ("3", "%RETRY%cg")
    assert again.properties["RETRY_TOPIC"] == "T"


def test_what_a_message_of_a_batch_says_of_timers_goes_when_it_is_tried_again(broker: Broker):
    raw = encode_properties({"TIMER_DELAY_SEC": "5", "KEYS": "k"})
    send(broker, "T", MessageBatch([BatchMessage(b"x", raw)]), code=RequestCode.SEND_BATCH_MESSAGE)
    send_back(broker, last(broker, "T").phy_offset)
    broker.advance("10s")
    again = last(broker, "%RETRY%cg").properties
    assert again["KEYS"] == "k"
    assert "TIMER_DELAY_SEC" not in again


def test_a_message_of_a_batch_that_says_when_it_is_due_becomes_no_dead_letter(broker: Broker):
    raw = encode_properties({"TIMER_DELAY_SEC": "5"})
    send(broker, "T", MessageBatch([BatchMessage(b"x", raw)]), code=RequestCode.SEND_BATCH_MESSAGE)
    answer = send_back(broker, last(broker, "T").phy_offset, -1)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "WHEEL_TIMER_NOT_ENABLE")


def test_a_broker_that_takes_no_messages_takes_none_back(tmp_path):
    with open_broker(tmp_path, config=BrokerConfig(broker_permission=PERM_READ)) as broker:
        send(broker, "T", b"x")
        answer = send_back(broker, last(broker, "T").phy_offset)
        assert answer.code is ResponseCode.NO_PERMISSION
        assert answer.remark == "the broker[127.0.0.1] sending message is forbidden"
        assert ("%RETRY%cg", 0) not in queue_sizes(broker)


def test_a_group_that_gets_more_retry_queues_loses_nothing_in_those_that_its_topic_lacks(tmp_path):
    with open_broker(tmp_path) as broker:
        send(broker, "T", b"x")
        phy_offset = last(broker, "T").phy_offset
        send_back(broker, phy_offset)
        broker.groups.put(SubscriptionGroup("cg", retry_queue_nums=8))
        for _ in range(20):
            send_back(broker, phy_offset)
        broker.advance("1m")
        assert not_none(broker.topics.get("%RETRY%cg")).read_queue_nums == 1
        assert len(stored(broker, "%RETRY%cg")) == 21
