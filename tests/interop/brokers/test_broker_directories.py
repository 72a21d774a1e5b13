"""One directory under our broker and the real one in turn: each goes on where the other stopped."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from seglog.broker.broker import Broker
from seglog.broker.tables.groups import group_to_config
from seglog.broker.tables.topics import TopicConfig
from seglog.clock import SystemClock, VirtualClock
from seglog.remoting.codes import PullFlag, RequestCode
from seglog.remoting.command import Request
from seglog.remoting.headers import (
    CreateTopicHeader,
    PullMessageHeader,
    QueryConsumerOffsetHeader,
    SendMessageHeader,
    UpdateConsumerOffsetHeader,
)
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.storage.format.record.message import decode_message
from tests.interop.judging.judge import Judge
from tests.interop.judging.questions import Geometry
from tests.interop.judging.wire import encode_answer
from tests.support.machine.patience import wait_until
from tests.support.material.config_files import read_config
from tests.support.material.golden import config_names, extract
from tests.support.material.stores import read_all

pytestmark = pytest.mark.interop

GEOMETRY = Geometry(1 << 20, 20_000, 500, 2_000)
SECOND, HALF_MINUTE, TWO_HOURS = 1, 4, 18
"""Delay levels."""
REAL_CONF = Geometry(1 << 20, 2_000, 100, 400)
REAL_CONF_SETTINGS: dict[str, Any] = {
    "enableConsumeQueueExt": True,
    "mappedFileSizeConsumeQueueExt": 200,
    "mappedFileSizeTimerLog": 4_096,
    "timerPrecisionMs": 1_000,
    "enabledAppendPropCRC": True,
}


def open_ours(path, clock=None):
    return Broker.open(
        path,
        clock=clock,
        background=False,
        segment_size_bytes=GEOMETRY.segment_size_bytes,
        queue_file_size_bytes=GEOMETRY.queue_file_size_bytes,
    )


def sending(topic, body, *, level=0, tag="TagA"):
    """Returns a send to queue 0; its body is also the message's id."""
    delay = f"DELAY\x01{level}\x02" if level else ""
    properties = f"UNIQ_KEY\x01{body}\x02TAGS\x01{tag}\x02{delay}".encode()
    header = SendMessageHeader("pg", topic, "TBW102", 4, 0, 0, 1_234, 0, properties)
    return Request(RequestCode.SEND_MESSAGE_V2, header, body.encode())


def pulling(topic, queue_offset=0, *, group="cg", subscription="*"):
    flags = int(PullFlag.SUBSCRIPTION)
    header = PullMessageHeader(group, topic, 0, queue_offset, 32, flags, 0, 0, 0, subscription)
    return Request(RequestCode.PULL_MESSAGE, header)


def committing(topic, offset, *, group="cg", queue_id=0):
    header = UpdateConsumerOffsetHeader(group, topic, queue_id, offset)
    return Request(RequestCode.UPDATE_CONSUMER_OFFSET, header)


def committed(ask, topic, *, group="cg", queue_id=0):
    header = QueryConsumerOffsetHeader(group, topic, queue_id)
    return int(ask(Request(RequestCode.QUERY_CONSUMER_OFFSET, header)).ext["offset"])


def bodies_at(ask, topic):
    """Returns what a consumer gets from queue 0, asked for with a pull."""
    records, bodies = ask(pulling(topic)).body, []
    while records:
        message = decode_message(memoryview(records))
        bodies.append(message.body.decode())
        records = records[message.size_bytes :]
    return bodies


def bodies_in(broker, topic):
    return [message.body.decode() for message in read_all(broker.store, topic, 0)]


def await_body(ask, topic, body):
    what = f"{body!r} in {topic}"
    wait_until(lambda: body in bodies_at(ask, topic), what, idle_s=10, look_s=0.1)


def delay_offsets(path):
    return json.loads(json.dumps(read_config(path / "config" / "delayOffset.json")))["offsetTable"]


def test_topics_groups_offsets_and_messages_of_ours_are_there_for_a_java_broker(judge: Judge, tmp_path):
    topic = TopicConfig("T", 3, 5, 6, is_order=True, attributes={"message.type": "NORMAL"})
    group = SubscriptionGroup("cg", retry_max_times=3, retry_queue_nums=2, is_consume_enabled=True)
    with open_ours(tmp_path) as ours:
        ours.topics.put(topic)
        ours.groups.put(group)
        for number in range(5):
            ours.dispatch(sending("T", f"m{number}", tag="TagA" if number % 2 else "TagB"))
        ours.dispatch(sending("Made", "x"))
        ours.dispatch(committing("T", 2))
        ours.dispatch(committing("T", 7, queue_id=2))
        ours.offsets.reset("cg", "Made", 0, 1)
        records = encode_answer(pulling("T"), ours.dispatch(pulling("T"))).body
        offsets = ours.offsets.all()
        topics = {each.name: dict(each.to_config()) for each in ours.topics.all()}
        groups = {each.name: dict(group_to_config(each)) for each in ours.groups.all()}
    with judge.broker(tmp_path, GEOMETRY) as theirs:
        assert theirs.ask(pulling("T")).body == records
        assert bodies_at(theirs.ask, "Made") == ["x"]
        found = theirs.ask(pulling("T", subscription="TagB")).body
        assert decode_message(memoryview(found)).body == b"m0"
        assert {key: theirs.topics()[key] for key in topics} == topics
        assert {key: theirs.groups()[key] for key in groups} == groups
        assert {
            (key.split("@")[1], key.split("@")[0], queue_id): offset
            for key, queues in theirs.offsets().items()
            for queue_id, offset in queues.items()
        } == offsets
        assert [committed(theirs.ask, "T", queue_id=queue_id) for queue_id in (0, 2)] == [2, 7]
        assert theirs.ask_code(351, topic="T").code == 0
        assert theirs.ask_code(352, group="cg").code == 0
        assert theirs.ask(sending("T", "theirs")).ext["queueOffset"] == "5"
        assert theirs.ask(committing("T", 6)).code == 0
    with open_ours(tmp_path) as ours:
        assert bodies_in(ours, "T") == [*(f"m{number}" for number in range(5)), "theirs"]
        assert ours.offsets.query("cg", "T", 0) == 6
        assert ours.topics.get("T") == topic
        assert ours.groups.get("cg") == group


def test_what_ours_accepted_for_later_a_java_broker_delivers_and_ours_delivers_the_rest(
    judge: Judge, tmp_path
):
    # RocketMQ delivers at once what is due later than its level allows, as seen from its own clock: ours must
    # not be ahead of it when the last messages are stored.
    with open_ours(tmp_path, VirtualClock(SystemClock().now_ms() - 2_000)) as ours:
        ours.dispatch(sending("T", "first", level=SECOND))
        ours.advance("2s")
        for name, level in (("second", SECOND), ("minute", HALF_MINUTE), ("hours", TWO_HOURS)):
            ours.dispatch(sending("T", name, level=level))
        assert bodies_in(ours, "T") == ["first"]
    assert delay_offsets(tmp_path)["1"] == 1
    with judge.broker(tmp_path, GEOMETRY) as theirs:
        await_body(theirs.ask, "T", "second")
        theirs.ask(sending("T", "of theirs", level=TWO_HOURS))
        assert bodies_at(theirs.ask, "T") == ["first", "second"]
    assert delay_offsets(tmp_path)["1"] == 2
    with open_ours(tmp_path, VirtualClock(SystemClock().now_ms())) as ours:
        ours.advance("1m")
        assert bodies_in(ours, "T") == ["first", "second", "minute"]
        ours.advance("2h")
        assert bodies_in(ours, "T") == ["first", "second", "minute", "hours", "of theirs"]
    with judge.broker(tmp_path, GEOMETRY) as theirs:
        theirs.ask(sending("T", "last", level=SECOND))
        await_body(theirs.ask, "T", "last")
        assert bodies_at(theirs.ask, "T") == ["first", "second", "minute", "hours", "of theirs", "last"]


@pytest.mark.parametrize("is_killed", [False, True], ids=["left", "killed"])
def test_ours_goes_on_in_a_directory_that_a_java_broker_has_left(judge: Judge, tmp_path, is_killed):
    with judge.broker(tmp_path, GEOMETRY, halt=is_killed) as theirs:
        attributes = "+message.type=NORMAL"
        theirs.ask(
            Request(
                RequestCode.UPDATE_AND_CREATE_TOPIC,
                CreateTopicHeader("T", "TBW102", 3, 5, 6, is_order=True, attributes=attributes),
            )
        )
        theirs.ask(
            Request(
                RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
                body=SubscriptionGroup("cg", retry_max_times=3),
            )
        )
        for number in range(3):
            theirs.ask(sending("T", f"m{number}"))
        theirs.ask(committing("T", 2))
        theirs.ask(sending("T", "second", level=SECOND))
        for name, level in (("minute", HALF_MINUTE), ("hours", TWO_HOURS)):
            theirs.ask(sending("T", name, level=level))
        await_body(theirs.ask, "T", "second")
        if is_killed:
            await_saved(tmp_path / "config" / "consumerOffset.json", "T@cg")
    with open_ours(tmp_path, VirtualClock(SystemClock().now_ms())) as ours:
        topic = ours.topics.get("T")
        assert (topic.read_queue_nums, topic.write_queue_nums, topic.is_order) == (3, 5, True)
        assert topic.attributes == {"message.type": "NORMAL"}
        assert ours.groups.get("cg").retry_max_times == 3
        assert ours.offsets.query("cg", "T", 0) == 2
        ours.advance("2h")
        delivered = Counter(bodies_in(ours, "T"))
    # RocketMQ saves every 10 s how far it has delivered, and without the end of its log.
    again = delivered.pop("second")
    assert again == 1 or (is_killed and again == 2)
    assert delivered == Counter(["m0", "m1", "m2", "minute", "hours"])


def await_saved(path, text):
    what = f"{text!r} in {path}"
    wait_until(lambda: path.exists() and text in path.read_text(), what, idle_s=15, look_s=0.1)


@pytest.mark.parametrize("name", config_names())
def test_a_java_broker_goes_on_after_ours_in_a_directory_that_was_its_own(judge: Judge, tmp_path, name):
    path = extract(name, tmp_path)
    topics = read_config(path / "config" / "topics.json")["topicConfigTable"]
    offsets = read_config(path / "config" / "consumerOffset.json")["offsetTable"]
    with Broker.open(path, clock=VirtualClock(SystemClock().now_ms())) as ours:
        ours.groups.find("cg")
        ours.dispatch(sending("TopicX", "ours"))
        end = ours.store.max_offset("TopicX", 0)
        ours.dispatch(committing("TopicX", end))
    with judge.broker(path, REAL_CONF, settings={"brokerName": "b0"}, **REAL_CONF_SETTINGS) as theirs:
        assert theirs.topics().items() >= topics.items()
        assert theirs.offsets().items() >= offsets.items()
        assert committed(theirs.ask, "TopicX") == end
        assert bodies_at(theirs.ask, "TopicX")[-1:] == ["ours"] or end > 32
        assert theirs.ask(sending("TopicX", "theirs")).ext["queueOffset"] == str(end)
