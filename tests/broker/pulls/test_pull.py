"""Pulls answer every status of the store with RocketMQ's code, and bring no more than they should."""

from __future__ import annotations

import pytest

from seglog.broker.broker import Broker
from seglog.broker.pulls.pull import response_code
from seglog.broker.settings.config import BrokerConfig
from seglog.broker.tables.topics import TopicConfig
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.headers import PullMessageHeader
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.record.message import decode_message
from seglog.storage.format.record.properties import encode_properties
from tests.support.brokers import open_broker, pull, pull_header, records_body, send
from tests.support.narrow import not_none


def bodies(answer):
    return [decode_message(record).body for record in answer.body.records]


def tagged(tag):
    return encode_properties({"TAGS": tag})


@pytest.mark.parametrize(
    ("status", "at_start", "further"),
    [
        (GetStatus.FOUND, ResponseCode.SUCCESS, ResponseCode.SUCCESS),
        (
            GetStatus.NO_MATCHED_MESSAGE,
            ResponseCode.PULL_RETRY_IMMEDIATELY,
            ResponseCode.PULL_RETRY_IMMEDIATELY,
        ),
        (
            GetStatus.MESSAGE_WAS_REMOVING,
            ResponseCode.PULL_RETRY_IMMEDIATELY,
            ResponseCode.PULL_RETRY_IMMEDIATELY,
        ),
        (GetStatus.OFFSET_FOUND_NULL, ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_NOT_FOUND),
        (GetStatus.OFFSET_OVERFLOW_BADLY, ResponseCode.PULL_OFFSET_MOVED, ResponseCode.PULL_OFFSET_MOVED),
        (GetStatus.OFFSET_OVERFLOW_ONE, ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_NOT_FOUND),
        (GetStatus.OFFSET_TOO_SMALL, ResponseCode.PULL_OFFSET_MOVED, ResponseCode.PULL_OFFSET_MOVED),
        (GetStatus.NO_MATCHED_LOGIC_QUEUE, ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_OFFSET_MOVED),
        (GetStatus.NO_MESSAGE_IN_QUEUE, ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_OFFSET_MOVED),
    ],
    ids=lambda value: value.name if isinstance(value, GetStatus) else "",
)
def test_s4_40_each_status_has_its_code(status, at_start, further):
    assert response_code(status, 0) is at_start
    assert response_code(status, 7) is further


def test_every_status_is_in_the_table_above():
    for status in GetStatus:
        response_code(status, 0)


def test_messages_come_with_where_to_go_on(broker: Broker):
    for number in range(3):
        send(broker, "T", b"%d" % number)
    answer = pull(broker, "T", 1)
    assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, "FOUND")
    assert bodies(answer) == [b"1", b"2"]
    header = pull_header(answer)
    assert (header.next_begin_offset, header.min_offset, header.max_offset) == (3, 0, 3)
    assert header.suggest_which_broker_id == 0


@pytest.mark.parametrize(
    ("queue_offset", "code", "status", "goes_on"),
    [
        (3, ResponseCode.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE", 3),
        (4, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY", 3),
        (-1, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL", 0),
    ],
)
def test_s4_40_offsets_outside_of_the_queue_say_where_to_go_on(
    broker: Broker, queue_offset, code, status, goes_on
):
    for _ in range(3):
        send(broker, "T")
    answer = pull(broker, "T", queue_offset)
    assert (answer.code, answer.remark, pull_header(answer).next_begin_offset) == (code, status, goes_on)
    assert answer.body is None


def test_an_empty_queue_is_waited_at_from_its_start_and_left_from_elsewhere(broker: Broker):
    send(broker, "T")
    assert pull(broker, "T", 0, queue_id=1).code is ResponseCode.PULL_NOT_FOUND
    moved = pull(broker, "T", 9, queue_id=1)
    assert (moved.code, pull_header(moved).next_begin_offset) == (ResponseCode.PULL_OFFSET_MOVED, 0)


def test_tags_are_compared_by_their_codes_only(broker: Broker):
    for tag in ("Aa", "BB", "C"):
        send(broker, "T", tag.encode(), properties=tagged(tag))
    answer = pull(broker, "T", subscription="Aa")
    assert bodies(answer) == [b"Aa", b"BB"], "the codes collide; the client compares the tags"
    assert pull_header(answer).next_begin_offset == 3


def test_a_queue_without_a_wanted_tag_is_passed_over(broker: Broker):
    for _ in range(5):
        send(broker, "T", properties=tagged("A"))
    answer = pull(broker, "T", subscription="B || C")
    assert (answer.code, pull_header(answer).next_begin_offset) == (ResponseCode.PULL_RETRY_IMMEDIATELY, 5)


def test_a_pull_brings_what_it_asks_for_and_no_more_than_the_broker_gives(tmp_path):
    config = BrokerConfig(max_pull_count=5)
    with open_broker(tmp_path, config=config) as broker:
        for _ in range(8):
            send(broker, "T")
        assert len(records_body(pull(broker, "T", max_msg_nums=3)).records) == 3
        assert len(records_body(pull(broker, "T", max_msg_nums=100)).records) == 5
        assert len(records_body(pull(broker, "T", max_msg_nums=0)).records) == 1


def test_a_pull_ends_with_its_bytes_but_the_first_message_always_comes(broker: Broker):
    for _ in range(3):
        send(broker, "T", bytes(1000))
    header = PullMessageHeader("cg", "T", 0, 0, 32, 4, 0, 0, 0, "*", max_msg_bytes=10)
    answer = broker.dispatch(Request(RequestCode.PULL_MESSAGE, header))
    assert len(records_body(answer).records) == 1


@pytest.mark.parametrize("most_bytes", [None, 0, -1, -(2**31)])
def test_finding_7_of_the_broker_a_pull_without_a_positive_bound_has_none(broker: Broker, most_bytes):
    for _ in range(3):
        send(broker, "T", bytes(1000))
    header = PullMessageHeader("cg", "T", 0, 0, 32, 4, 0, 0, 0, "*", max_msg_bytes=most_bytes)
    answer = broker.dispatch(Request(RequestCode.PULL_MESSAGE, header))
    assert len(records_body(answer).records) == 3


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        pytest.param({"topic": "absent"}, ResponseCode.TOPIC_NOT_EXIST, "not exist", id="topic"),
        pytest.param({"topic": "closed"}, ResponseCode.NO_PERMISSION, "forbidden", id="permission"),
        pytest.param({"queue_id": 4}, ResponseCode.INVALID_PARAMETER, "queueId[4]", id="queue"),
        pytest.param({"queue_id": -1}, ResponseCode.INVALID_PARAMETER, "queueId[-1]", id="no queue"),
        pytest.param({"flags": PullFlag(0)}, ResponseCode.SUBSCRIPTION_NOT_EXIST, "group info", id="flag"),
        pytest.param({"subscription": "||"}, ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse", id="tags"),
        pytest.param({"expression_type": "SQL92"}, ResponseCode.SYSTEM_ERROR, "SQL92", id="SQL"),
    ],
)
def test_pulls_are_refused_in_rocketmqs_words(broker: Broker, arguments, code, says):
    send(broker, "T")
    broker.topics.put(TopicConfig("closed", 1, 1, 2))
    answer = pull(broker, **{"topic": "T", **arguments})
    assert answer.code is code
    assert says in not_none(answer.remark)


def test_a_pull_commits_the_offset_that_it_brings(broker: Broker):
    send(broker, "T")
    flags = PullFlag.SUBSCRIPTION | PullFlag.COMMIT_OFFSET
    pull(broker, "T", 1, flags=flags, commit_offset=1)
    assert broker.offsets.query("cg", "T", 0) == 1
    pull(broker, "T", 1, commit_offset=7)
    assert broker.offsets.query("cg", "T", 0) == 1


def test_a_refused_pull_commits_nothing(broker: Broker):
    send(broker, "T")
    flags = PullFlag.SUBSCRIPTION | PullFlag.COMMIT_OFFSET
    pull(broker, "T", 1, queue_id=9, flags=flags, commit_offset=1)
    assert broker.offsets.of_group("cg") == {}


def test_s2_07_a_pull_does_not_look_at_locks(broker: Broker):
    send(broker, "T")
    broker.locks.lock("cg", [MessageQueue("T", "broker-a", 0)], "someone else")
    assert pull(broker, "T").code is ResponseCode.SUCCESS


def numbers(answer):
    return len(records_body(answer).records)


def test_s4_41_a_body_is_few_views_of_the_log_and_no_copy(broker: Broker):
    for number in range(5):
        send(broker, "T", b"%d" % number)
    body = records_body(pull(broker, "T"))
    (run,) = body.runs
    assert bytes(run) == b"".join(body.records)
    assert numbers(pull(broker, "T")) == 5
    assert all(record.readonly for record in body.records)


@pytest.mark.parametrize("size", [10, 20_000])
def test_s4_42_hot_messages_come_32_or_256_kib_at_a_time(broker: Broker, size):
    for _ in range(40):
        send(broker, "T", bytes(size))
    found = records_body(pull(broker, "T", max_msg_nums=1_000))
    count, size_bytes = len(found.records), sum(map(len, found.records))
    one = len(found.records[0])
    assert count == min(32, (256 << 10) // one)
    assert size_bytes <= 256 << 10


@pytest.mark.parametrize("size", [10, 20_000])
def test_s4_42_cold_messages_come_8_or_64_kib_at_a_time(tmp_path, size):
    with open_broker(tmp_path, config=BrokerConfig(hot_bytes=0)) as broker:
        for _ in range(40):
            send(broker, "T", bytes(size))
        answer = pull(broker, "T", max_msg_nums=1_000)
        one = len(records_body(answer).records[0])
        assert numbers(answer) == min(8, (64 << 10) // one)
        assert pull_header(answer).next_begin_offset == numbers(answer)
        assert numbers(pull(broker, "T", max_msg_nums=3)) == 3


def test_s4_42_what_lies_within_memory_of_the_end_is_hot_and_what_is_before_is_cold(tmp_path):
    with open_broker(tmp_path, config=BrokerConfig(hot_bytes=20_000)) as broker:
        for _ in range(60):
            send(broker, "T", bytes(1_000))
        assert numbers(pull(broker, "T", 0)) == 8
        assert numbers(pull(broker, "T", 50)) == 10


def test_s4_42_the_first_message_comes_however_large_it_is(tmp_path):
    with open_broker(tmp_path, config=BrokerConfig(hot_bytes=0)) as broker:
        send(broker, "T", bytes(300_000))
        send(broker, "T")
        assert numbers(pull(broker, "T")) == 1


def test_a_filtered_pull_looks_at_800_units_and_says_how_far_it_got(broker: Broker):
    for number in range(900):
        send(broker, "T", properties=tagged("A" if number < 850 else "B"))
    answer = pull(broker, "T", subscription="B")
    assert (answer.code, pull_header(answer).next_begin_offset) == (ResponseCode.PULL_RETRY_IMMEDIATELY, 800)
    answer = pull(broker, "T", 800, subscription="B")
    assert (numbers(answer), pull_header(answer).next_begin_offset) == (32, 882)


def test_s4_43_the_answer_carries_the_flags_of_topic_and_group(broker: Broker):
    broker.topics.put(TopicConfig("T", 1, 1, sys_flag=2))
    broker.groups.put(SubscriptionGroup("cg", sys_flag=5))
    header = pull_header(pull(broker, "T"))
    assert (header.topic_sys_flag, header.group_sys_flag) == (2, 5)


def test_s4_43_a_pull_notes_how_far_it_got_and_commits_if_it_is_to(broker: Broker):
    for _ in range(3):
        send(broker, "T")
    pull(broker, "T")
    assert (broker.offsets.pulled("cg", "T", 0), broker.offsets.query("cg", "T", 0)) == (3, None)
    pull(
        broker, "T", 1, flags=PullFlag.SUBSCRIPTION | PullFlag.COMMIT_OFFSET, commit_offset=1, max_msg_nums=1
    )
    assert (broker.offsets.pulled("cg", "T", 0), broker.offsets.query("cg", "T", 0)) == (2, 1)
