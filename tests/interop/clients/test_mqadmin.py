"""What RocketMQ's own tool shows of our consumers, and has them do, through a real broker."""

from __future__ import annotations

import re

import pytest

from seglog.consumer.listener import Consume
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.producer.producer import Producer
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.headers import ResetOffsetHeader
from tests.interop.clients.conftest import AT_ROCKETMQ

pytestmark = pytest.mark.interop
BOTH = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])
OF_ROCKETMQ = pytest.mark.parametrize("place", AT_ROCKETMQ, indirect=True, scope="session")


@OF_ROCKETMQ
@BOTH
def test_consumer_status_prints_ours_as_it_prints_javas(place, topic, group, kind):
    with Producer(place.target) as producer:
        for number in range(8):
            producer.send(topic, b"x", queue_id=number % 4)
    consumer = place.consumer(kind, group, topic, lambda _message: None, threads=7)
    offsets = [
        [f"%RETRY%{group}", "broker-a", "0", "0"],
        *([topic, "broker-a", str(queue_id), "2"] for queue_id in range(4)),
    ]

    def are_shown() -> bool:
        consumer.commit()
        found = shown(place, group, consumer.client_id).get("Consumer Offset", [])
        return [line.split() for line in found] == offsets

    place.settle(are_shown)
    ours = shown(place, group, consumer.client_id)
    theirs_group = place.new_name("java")
    client_id = place.java.join("j", theirs_group, topic, is_in_order=kind is OrderlyConsumer)
    place.settle(lambda: place.members(theirs_group))
    theirs = shown(place, theirs_group, client_id)
    place.java.leave("j")
    assert ours.keys() == theirs.keys()
    properties, of_java = properties_of(ours), properties_of(theirs)
    assert properties.keys() <= of_java.keys()
    differing = {name for name, value in properties.items() if of_java[name] != value}
    its_own = {"consumerGroup", "PROP_CONSUMER_START_TIMESTAMP", *THREADS}
    assert its_own <= differing <= its_own | {"PROP_CLIENT_VERSION"}, "ours is like 5.4.0"
    assert {properties[name] for name in THREADS} == {"7"}
    details = [line for line in ours["Consumer MQ Detail"] if line.startswith(topic)]
    for line in details:
        assert "ProcessQueueInfo [commitOffset=2, cachedMsgMinOffset=0," in line
        assert f"locked={str(kind is OrderlyConsumer).lower()}," in line
        assert "droped=false" in line
    assert len(details) == 4
    (rates,) = (line.split() for line in ours["Consumer RT&TPS"] if line.startswith(topic))
    assert rates[2:] == ["0.13", rates[3], "0.13", "0.00", "0"], "eight messages in a minute"
    assert any("MainThread" in line for line in ours["Consumer jstack"])


THREADS = {"consumeThreadMin", "consumeThreadMax", "PROP_THREADPOOL_CORE_SIZE"}


def shown(place, group, client_id):
    """Returns the lines of each part of what the tool prints, without those of headings."""
    parts, lines = {}, []
    printed = place.java.admin("consumerStatus", "-g", group, "-i", client_id, "-s", "true")
    for line in printed.splitlines():
        heading = re.fullmatch(r"#([\w &]+)#", line)
        if heading:
            lines = parts.setdefault(heading[1], [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return parts


def properties_of(parts):
    """Returns the settings of a consumer."""
    return {
        name.strip(): value
        for name, _, value in (one.partition(": ") for one in parts["Consumer Properties"])
    }


@OF_ROCKETMQ
@BOTH
@pytest.mark.parametrize(
    ("does", "shown"),
    [
        pytest.param(lambda: None, "consumeResult=CR_SUCCESS, remark=null", id="success"),
        pytest.param(lambda: Consume.RECONSUME_LATER, "consumeResult=CR_LATER, remark=null", id="later"),
        pytest.param(
            lambda: int("x"), "consumeResult=CR_THROW_EXCEPTION, remark=ValueError: invalid", id="raises"
        ),
    ],
)
def test_a_message_that_people_pick_is_consumed_and_its_end_printed(place, topic, group, kind, does, shown):
    seen = []

    def listener(message):
        seen.append(message.message_id)
        return does() if len(seen) > 1 else None

    consumer = place.consumer(kind, group, topic, listener)
    with Producer(place.target) as producer:
        sent = producer.send(topic, b"picked")
    place.settle(lambda: seen)
    picked = ("-i", sent.offset_message_id, "-t", topic, "-g", group, "-d", consumer.client_id)
    printed = place.java.admin("queryMsgById", *picked)
    assert shown in printed
    assert f"order={str(kind is OrderlyConsumer).lower()}, autoCommit=true" in printed
    assert seen == [sent.offset_message_id] * 2


@OF_ROCKETMQ
@BOTH
def test_a_reset_that_a_broker_only_passes_on_reaches_a_consumer_at_once(place, topic, group, kind):
    """Without resets of its own (``useServerSideResetOffset``) it notifies the clients (code 220)."""
    seen = []
    consumer = place.consumer(kind, group, topic, lambda message: seen.append(message.queue_offset))
    with Producer(place.target) as producer:
        for _ in range(5):
            producer.send(topic, b"x", queue_id=2)
    # It resets no group that has not committed for each queue, those without messages included.
    place.settle(lambda: [place.done(consumer, topic, number) for number in range(4)] == [0, 0, 5, 0])
    config = ("updateBrokerConfig", "-b", place.address, "-k", "useServerSideResetOffset", "-v")
    assert "success" in place.java.admin(*config, "false")
    try:
        header = ResetOffsetHeader(group, topic, 0, is_forced=True)
        answer = place.ask(Request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header))
        assert answer.code is ResponseCode.SUCCESS
        place.settle(lambda: len(seen) == 10)
        assert sorted(seen) == sorted([*range(5)] * 2)
        place.settle(lambda: place.done(consumer, topic, 2) == 5)
    finally:
        place.java.admin(*config, "true")
