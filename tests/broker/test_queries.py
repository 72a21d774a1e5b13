"""Messages are found by key, unique key, tag, id and place, as tools and clients ask for them."""

from __future__ import annotations

import json

import pytest

from seglog.broker.handlers import queries
from seglog.broker.settings.config import BrokerConfig
from seglog.broker.settings.releases import RELEASES
from seglog.clock import VirtualClock
from seglog.remoting.admin_bodies import QueueUnit, QueueUnitsBody
from seglog.remoting.admin_headers import (
    QueryMessageHeader,
    QueryMessageResponseHeader,
    QueryQueueHeader,
    ViewMessageHeader,
)
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, expect_body, expect_header
from seglog.remoting.heartbeat import ConsumerData, HeartbeatBody
from seglog.remoting.subscription import SubscriptionData
from seglog.storage.format.record import decode_message, decode_message_id, java_string_hash
from tests.support.asks import bodies_of
from tests.support.brokers import open_broker, send, send_delayed, send_header

START_MS = 1_700_000_000_000
FOREVER_MS = (1 << 63) - 1


@pytest.fixture
def clock():
    return VirtualClock(START_MS)


def query(broker, key, count=32, begin_ms=0, end_ms=FOREVER_MS, topic="T", **more):
    header = QueryMessageHeader(topic, key, count, begin_ms, end_ms, **more)
    return broker.dispatch(Request(RequestCode.QUERY_MESSAGE, header))


def fill(broker, clock):
    for number in range(5):
        properties = f"UNIQ_KEY\x01u{number}\x02KEYS\x01all k{number}\x02TAGS\x01{'ab'[number % 2]}\x02"
        assert send(broker, "T", b"%d" % number, properties=properties.encode()).code is ResponseCode.SUCCESS
        clock.advance(1_000)


@pytest.mark.parametrize(
    ("key", "more", "expected"),
    [
        ("k3", {}, [b"3"]),
        ("k3", {"index_type": "K"}, [b"3"]),
        ("u3", {}, [b"3"]),  # before 5.4 a key is any of them
        ("u3", {"index_type": "U"}, [b"3"]),
        ("u3", {"is_unique_key": True}, [b"3"]),
        ("u3", {"is_unique_key": True, "index_type": "U"}, [b"3"]),
        ("all", {}, [b"0", b"1", b"2", b"3", b"4"]),
        ("all", {"count": 2}, [b"3", b"4"]),
        ("all", {"count": 2, "is_unique_key": True}, [b"0", b"1", b"2", b"3", b"4"]),
        ("all", {"begin_ms": START_MS + 1_000, "end_ms": START_MS + 3_000}, [b"1", b"2", b"3"]),
        ("b", {"index_type": "T"}, [b"1", b"3"]),
        ("b", {"index_type": "T", "count": 1}, [b"3"]),
    ],
)
def test_messages_are_found_by_key_unique_key_and_tag(broker, clock, key, more, expected):
    fill(broker, clock)
    answer = query(broker, key, **more)
    assert bodies_of(answer) == expected
    last = broker.store.message_at(expect_header(answer, QueryMessageResponseHeader).last_phy_offset)
    assert (last.body, last.store_timestamp_ms) == (b"4", START_MS + 4_000)
    assert expect_header(answer, QueryMessageResponseHeader).last_ms == START_MS + 4_000


@pytest.mark.parametrize(
    ("key", "more"),
    [
        ("nothing", {}),
        ("b", {}),  # a tag is no key
        ("k3", {"index_type": "T"}),  # and a key no tag
        ("all", {"count": 0}),
        ("all", {"topic": "U"}),
        ("all", {"begin_ms": START_MS + 10_000}),
        ("all", {"begin_ms": 10, "end_ms": 5}),
    ],
)
def test_what_is_not_found_is_said_without_an_end_of_the_index(broker, clock, key, more):
    fill(broker, clock)
    answer = query(broker, key, **more)
    assert answer.code is ResponseCode.QUERY_NOT_FOUND
    assert answer.remark == "can not find message, maybe time range not correct"
    assert answer.header == QueryMessageResponseHeader(0, 0)
    assert answer.body is None


def test_a_query_for_fewer_than_no_messages_is_refused(broker, clock):
    fill(broker, clock)
    answer = query(broker, "all", count=-5)
    assert (answer.code, answer.body) == (ResponseCode.SYSTEM_ERROR, None)
    assert answer.remark == "maxNum is -5, and must be at least 0"


def test_an_empty_store_has_no_end_of_an_index(broker):
    assert query(broker, "k").header == QueryMessageResponseHeader(0, 0)


def test_a_query_returns_what_fits_into_a_frame_the_newest_and_never_nothing(broker, clock, monkeypatch):
    fill(broker, clock)
    size_bytes = len(broker.store.record_at(0))
    monkeypatch.setattr(queries, "MAX_FOUND_BYTES", 2 * size_bytes)
    assert bodies_of(query(broker, "all")) == [b"3", b"4"]
    monkeypatch.setattr(queries, "MAX_FOUND_BYTES", 1)
    assert bodies_of(query(broker, "all")) == [b"4"]


def test_a_query_finds_at_most_64_messages(broker):
    for number in range(70):
        send(broker, "T", b"%d" % number, properties=b"KEYS\x01k\x02")
    assert bodies_of(query(broker, "k", 1_000)) == [b"%d" % number for number in range(6, 70)]


# ------------------------------------------------------------------------------------------ by id


def view(broker, phy_offset, topic=None):
    return broker.dispatch(Request(RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageHeader(phy_offset, topic)))


@pytest.mark.parametrize("topic", [None, "", " ", "T"])
def test_a_message_is_returned_as_the_log_has_it(broker, topic):
    send(broker, "T", b"first")
    place = decode_message_id(send_header(send(broker, "T", b"second")).msg_id)[1]
    answer = view(broker, place, topic)
    assert (answer.code, answer.body) == (ResponseCode.SUCCESS, broker.store.record_at(place))
    assert decode_message(answer.body).body == b"second"


@pytest.mark.parametrize("place", [-1, 4, 1 << 40])
def test_no_message_is_returned_where_none_begins(broker, place):
    send(broker, "T", b"first")
    answer = view(broker, place, "T")
    assert answer.code is ResponseCode.SYSTEM_ERROR
    assert answer.remark == f"can not find message by the offset, {place}"


@pytest.mark.parametrize("release", RELEASES)
def test_a_message_of_another_topic_is_refused_since_5_5_1(tmp_path, release):
    with open_broker(tmp_path, config=BrokerConfig(compatible_with=release)) as broker:
        send(broker, "T", b"x")
        answer = view(broker, 0, "U")
        if release == "5.5.1":
            assert answer.code is ResponseCode.NO_PERMISSION
            assert answer.remark == "The topic does not match the message"
        else:
            assert answer.body == broker.store.record_at(0)


def test_a_message_that_waits_is_of_the_topic_that_it_waits_for(broker):
    send_delayed(broker, 3, b"later")
    assert broker.store.message_at(0).topic == "SCHEDULE_TOPIC_XXXX"
    assert view(broker, 0, "T").code is ResponseCode.SUCCESS
    assert view(broker, 0, "SCHEDULE_TOPIC_XXXX").code is ResponseCode.NO_PERMISSION


# --------------------------------------------------------------------------------------- by place


def units(broker, first=0, count=32, group=None, queue_id=0, topic="T"):
    header = QueryQueueHeader(topic, queue_id, first, count, group)
    return broker.dispatch(Request(RequestCode.QUERY_CONSUME_QUEUE, header))


def test_units_of_a_queue_lead_to_its_messages(broker, clock):
    fill(broker, clock)
    body = expect_body(units(broker, 1, 2), QueueUnitsBody)
    assert (body.min_offset, body.max_offset, body.subscription, body.filter_text) == (0, 5, None, None)
    assert [broker.store.message_at(unit.phy_offset).body for unit in body.units] == [b"1", b"2"]
    for unit, tag in zip(body.units, "ba", strict=True):
        size_bytes = len(broker.store.record_at(unit.phy_offset))
        assert unit == QueueUnit(unit.phy_offset, size_bytes, java_string_hash(tag))


def test_units_end_with_the_queue_or_at_the_limit_of_an_answer(broker, clock, monkeypatch):
    fill(broker, clock)
    assert len(expect_body(units(broker, 3, (1 << 31) - 1), QueueUnitsBody).units) == 2
    assert expect_body(units(broker, 3, 0), QueueUnitsBody).units == ()
    assert expect_body(units(broker, 3, -1), QueueUnitsBody).units == ()
    monkeypatch.setattr(queries, "MAX_UNITS", 1)
    assert len(expect_body(units(broker, 3), QueueUnitsBody).units) == 1


@pytest.mark.parametrize("first", [-1, 5, 1 << 40])
def test_units_that_are_not_there_are_said_with_the_range(broker, clock, first):
    fill(broker, clock)
    answer = units(broker, first)
    assert (answer.code, answer.body) == (ResponseCode.SUCCESS, QueueUnitsBody(5, 0))
    assert answer.remark == f"Index {first} of 0@T is not exist!"


@pytest.mark.parametrize(("topic", "queue_id"), [("U", 0), ("T", 3), ("T", 99)])
def test_a_queue_without_messages_has_no_units(broker, clock, topic, queue_id):
    fill(broker, clock)
    answer = units(broker, topic=topic, queue_id=queue_id)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, f"{queue_id}@{topic} is not exist!")


def test_units_come_with_what_a_group_wants(tmp_path):
    config = BrokerConfig(enable_property_filter=True)
    with open_broker(tmp_path / "store", config=config) as broker:
        send(broker, "T", properties=b"TAGS\x01a\x02")
        assert expect_body(units(broker, group="g"), QueueUnitsBody).filter_text == "g@T is not online!"
        tags = SubscriptionData("T", "a || b", version=1)
        sql = SubscriptionData("U", "price > 5", 2, "SQL92")
        heartbeat = HeartbeatBody("c", (), (ConsumerData("g", (tags, sql)),))
        broker.dispatch(Request(RequestCode.HEART_BEAT, body=heartbeat))
        body = expect_body(units(broker, group="g"), QueueUnitsBody)
        assert (body.subscription, body.filter_text) == (tags, "null")
        send(broker, "U")
        body = expect_body(units(broker, group="g", topic="U"), QueueUnitsBody)
        assert body.subscription == sql
        found = json.loads(body.filter_text or "")
        assert (found["consumerGroup"], found["expression"]) == ("g", "price > 5")
