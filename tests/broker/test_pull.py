"""Pulls answer every status of the store with RocketMQ's code, and wait where they are asked to."""

from __future__ import annotations

import threading
import time

import pytest

from seglog.broker.broker import Broker
from seglog.broker.config import BrokerConfig
from seglog.broker.pull import HeldPull, response_code
from seglog.broker.topics import TopicConfig
from seglog.clock import VirtualClock
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.headers import PullMessageHeader
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.message import decode_message
from seglog.storage.format.properties import encode_properties
from seglog.storage.get_status import GetStatus
from tests.support.brokers import open_broker, pull, send


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
def test_each_status_has_its_code(status, at_start, further):
    assert response_code(status, 0) is at_start
    assert response_code(status, 7) is further


def test_every_status_is_in_the_table_above():
    for status in GetStatus:
        response_code(status, 0)


def test_messages_come_with_where_to_go_on(broker):
    for number in range(3):
        send(broker, "T", b"%d" % number)
    answer = pull(broker, "T", 1)
    assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, "FOUND")
    assert bodies(answer) == [b"1", b"2"]
    header = answer.header
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
def test_offsets_outside_of_the_queue_say_where_to_go_on(broker, queue_offset, code, status, goes_on):
    for _ in range(3):
        send(broker, "T")
    answer = pull(broker, "T", queue_offset)
    assert (answer.code, answer.remark, answer.header.next_begin_offset) == (code, status, goes_on)
    assert answer.body is None


def test_an_empty_queue_is_waited_at_from_its_start_and_left_from_elsewhere(broker):
    send(broker, "T")
    assert pull(broker, "T", 0, queue_id=1).code is ResponseCode.PULL_NOT_FOUND
    moved = pull(broker, "T", 9, queue_id=1)
    assert (moved.code, moved.header.next_begin_offset) == (ResponseCode.PULL_OFFSET_MOVED, 0)


def test_tags_are_compared_by_their_codes_only(broker):
    for tag in ("Aa", "BB", "C"):
        send(broker, "T", tag.encode(), properties=tagged(tag))
    answer = pull(broker, "T", subscription="Aa")
    assert bodies(answer) == [b"Aa", b"BB"], "the codes collide; the client compares the tags"
    assert answer.header.next_begin_offset == 3


def test_a_queue_without_a_wanted_tag_is_passed_over(broker):
    for _ in range(5):
        send(broker, "T", properties=tagged("A"))
    answer = pull(broker, "T", subscription="B || C")
    assert (answer.code, answer.header.next_begin_offset) == (ResponseCode.PULL_RETRY_IMMEDIATELY, 5)


def test_a_pull_brings_what_it_asks_for_and_no_more_than_the_broker_gives(tmp_path):
    config = BrokerConfig(max_pull_count=5)
    with open_broker(tmp_path, config=config) as broker:
        for _ in range(8):
            send(broker, "T")
        assert len(pull(broker, "T", max_msg_nums=3).body.records) == 3
        assert len(pull(broker, "T", max_msg_nums=100).body.records) == 5
        assert len(pull(broker, "T", max_msg_nums=0).body.records) == 1


def test_a_pull_ends_with_its_bytes_but_the_first_message_always_comes(broker):
    for _ in range(3):
        send(broker, "T", bytes(1000))
    header = PullMessageHeader("cg", "T", 0, 0, 32, 4, 0, 0, 0, "*", max_msg_bytes=10)
    answer = broker.dispatch(Request(RequestCode.PULL_MESSAGE, header))
    assert len(answer.body.records) == 1


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
def test_pulls_are_refused_in_rocketmqs_words(broker, arguments, code, says):
    send(broker, "T")
    broker.topics.put(TopicConfig("closed", 1, 1, 2))
    answer = pull(broker, **{"topic": "T", **arguments})
    assert answer.code is code
    assert says in answer.remark


def test_a_pull_commits_the_offset_that_it_brings(broker):
    send(broker, "T")
    flags = PullFlag.SUBSCRIPTION | PullFlag.COMMIT_OFFSET
    pull(broker, "T", 1, flags=flags, commit_offset=1)
    assert broker.offsets.query("cg", "T", 0) == 1
    pull(broker, "T", 1, commit_offset=7)
    assert broker.offsets.query("cg", "T", 0) == 1


def test_a_refused_pull_commits_nothing(broker):
    send(broker, "T")
    flags = PullFlag.SUBSCRIPTION | PullFlag.COMMIT_OFFSET
    pull(broker, "T", 1, queue_id=9, flags=flags, commit_offset=1)
    assert broker.offsets.of_group("cg") == {}


def test_s2_07_a_pull_does_not_look_at_locks(broker):
    send(broker, "T")
    broker.locks.lock("cg", [MessageQueue("T", "broker-a", 0)], "someone else")
    assert pull(broker, "T").code is ResponseCode.SUCCESS


HOLD = PullFlag.SUBSCRIPTION | PullFlag.SUSPEND


def held_pull(broker, **arguments):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(pull(broker, "T", flags=HOLD, **arguments)))
    thread.start()
    return thread, answers


def test_s4_25_a_held_pull_is_answered_when_a_message_arrives(tmp_path):
    with Broker.open(tmp_path, background=False) as broker:
        send(broker, "T")
        thread, answers = held_pull(broker, queue_offset=1, suspend_timeout_ms=60_000)
        send(broker, "T", b"second")
        thread.join(10)
        assert bodies(answers[0]) == [b"second"]


def test_a_held_pull_ends_empty_when_its_time_has_passed(tmp_path):
    clock = VirtualClock()
    with open_broker(tmp_path, clock) as broker:
        send(broker, "T")
        thread, answers = held_pull(broker, queue_offset=1, suspend_timeout_ms=15_000)
        while thread.is_alive():
            clock.advance(1_000)
            time.sleep(0.001)
        assert answers[0].code is ResponseCode.PULL_NOT_FOUND


def test_a_held_pull_that_an_unwanted_message_wakes_goes_on_behind_it(tmp_path):
    with Broker.open(tmp_path, background=False) as broker:
        send(broker, "T")
        thread, answers = held_pull(broker, queue_offset=1, suspend_timeout_ms=60_000, subscription="A")
        send(broker, "T", properties=tagged("B"))
        thread.join(10)
        assert answers[0].code is ResponseCode.PULL_RETRY_IMMEDIATELY
        assert answers[0].header.next_begin_offset == 2


def test_closing_the_broker_ends_held_pulls(tmp_path):
    broker = Broker.open(tmp_path, background=False)
    send(broker, "T")
    thread, answers = held_pull(broker, queue_offset=1, suspend_timeout_ms=600_000)
    time.sleep(0.05)
    broker.close()
    thread.join(10)
    assert answers[0].code in (ResponseCode.PULL_NOT_FOUND, ResponseCode.SERVICE_NOT_AVAILABLE)


def test_a_caller_that_cannot_wait_gets_the_held_pull_itself(broker):
    send(broker, "T")
    header = PullMessageHeader("cg", "T", 0, 1, 32, int(HOLD), 0, 15_000, 0, "*")
    held = broker.answer(Request(RequestCode.PULL_MESSAGE, header))
    assert isinstance(held, HeldPull)
    assert held.nothing_yet.code is ResponseCode.PULL_NOT_FOUND


def test_only_a_pull_that_finds_nothing_is_held(broker):
    send(broker, "T")
    for queue_offset, code in ((0, ResponseCode.SUCCESS), (5, ResponseCode.PULL_OFFSET_MOVED)):
        assert pull(broker, "T", queue_offset, flags=HOLD, suspend_timeout_ms=10**9).code is code
