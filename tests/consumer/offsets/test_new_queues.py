"""Where a consumer that broadcasts begins in queues that appear while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seglog.broker.tables import TopicConfig
from seglog.client.connect import make_client
from seglog.consumer.listener import ConsumeFrom
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.remoting.heartbeat import MessageModel
from seglog.testing import ServedBroker, VirtualBroker
from tests.support.machine.patience import wait_until

BOTH = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])
LIMIT_S = 30.0


def bodies(seen: list[Any]) -> list[bytes]:
    return sorted(bytes(message.body) for message in seen)


@pytest.fixture
def running(tmp_path: Path) -> dict[str, Any]:
    return {
        "consume_from": ConsumeFrom.LAST,
        "message_model": MessageModel.BROADCASTING,
        "offset_folder": tmp_path / "offsets",
    }


@BOTH
def test_a_topic_made_after_the_start_is_consumed_from_its_first_message(
    seglog_broker: VirtualBroker, kind: Any, running: dict[str, Any]
):
    seen: list[Any] = []
    with kind(seglog_broker.link(), "g", "T", seen.append, **running) as consumer:
        consumer.start()
        for number in range(5):
            seglog_broker.producer().send("T", b"%d" % number)
        seglog_broker.advance("30s")
        assert bodies(seen) == [b"0", b"1", b"2", b"3", b"4"]


def test_what_was_there_at_the_start_is_passed_over(seglog_broker: VirtualBroker, running: dict[str, Any]):
    producer, seen = seglog_broker.producer(), list[Any]()
    producer.send("T", b"old")
    with PushConsumer(seglog_broker.link(), "g", "T", seen.append, **running) as consumer:
        consumer.start()
        seglog_broker.advance("30s")
        producer.send("T", b"new")
        seglog_broker.advance("1s")
    assert bodies(seen) == [b"new"]


def test_queues_that_a_topic_gets_later_are_consumed_from_their_first_message(
    seglog_broker: VirtualBroker, running: dict[str, Any]
):
    producer, seen = seglog_broker.producer(), list[Any]()
    seglog_broker.topics.put(TopicConfig("T", 1, 1))
    producer.send("T", b"old")
    with PushConsumer(seglog_broker.link(), "g", "T", seen.append, **running) as consumer:
        consumer.start()
        seglog_broker.advance("2s")
        seglog_broker.topics.put(TopicConfig("T", 2, 2))
        added = seglog_broker.producer()
        for _ in range(2):
            added.send("T", b"new")
        seglog_broker.advance("1m")
        assert {queue.queue_id for queue in consumer.queues} == {0, 1}
    assert bodies(seen) == [b"new", b"new"]


def test_what_is_old_in_a_queue_that_was_away_at_the_start_is_passed_over(
    seglog_broker: VirtualBroker, running: dict[str, Any]
):
    producer, seen = seglog_broker.producer(), list[Any]()
    seglog_broker.topics.put(TopicConfig("T", 0, 1))
    producer.send("T", b"old")
    seglog_broker.advance("1h")
    with PushConsumer(seglog_broker.link(), "g", "T", seen.append, **running) as consumer:
        consumer.start()
        producer.send("T", b"meanwhile")
        seglog_broker.topics.put(TopicConfig("T", 1, 1))
        seglog_broker.advance("1m")
    assert bodies(seen) == [b"meanwhile"]


def test_a_topic_that_is_subscribed_to_later_begins_with_what_comes_next(
    seglog_broker: VirtualBroker, running: dict[str, Any]
):
    producer, seen = seglog_broker.producer(), list[Any]()
    with PushConsumer(seglog_broker.link(), "g", "T", seen.append, **running) as consumer:
        consumer.start()
        producer.send("U", b"old")
        seglog_broker.advance("1m")
        consumer.subscribe("U")
        seglog_broker.advance("2s")
        producer.send("U", b"new")
        seglog_broker.advance("2s")
    assert bodies(seen) == [b"new"]


def test_over_a_connection_a_message_right_after_the_start_is_not_missed(
    tmp_path: Path, running: dict[str, Any]
):
    seen: list[Any] = []
    with (
        ServedBroker.at(tmp_path / "store") as server,
        server.producer() as producer,
        make_client(server.address, instance_name="one") as client,
        PushConsumer(client, "g", "T", seen.append, **running) as consumer,
    ):
        consumer.start()
        for number in range(5):
            producer.send("T", b"%d" % number)
        wait_until(lambda: len(seen) >= 5, "five messages", idle_s=30)
    assert bodies(seen) == [b"0", b"1", b"2", b"3", b"4"]
