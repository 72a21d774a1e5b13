"""Subscriptions of consumers with listeners change while they run: with a heartbeat and the next round."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.client.connect import make_client
from seglog.clock import VirtualClock
from seglog.consumer.listener import ConsumeFrom
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import AsyncPushConsumer, PushConsumer
from seglog.errors import ConsumerError, InvalidArgumentError, InvalidNameError, RemoteProtocolError
from seglog.producer.producer import Producer
from seglog.remoting.codes import RequestCode
from seglog.remoting.heartbeat import HeartbeatBody
from seglog.remoting.subscription import Subscription
from tests.support.brokers import open_broker
from tests.support.consumers import Send, until_idle_in_loop
from tests.support.listening import BrokerServer
from tests.support.machine.patience import wait_until, wait_until_in_loop
from tests.support.recording import RecordingLink

BOTH = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])


def said(link: RecordingLink) -> dict[str, str]:
    """Returns what the last heartbeat said of topics."""
    bodies = [request.body for _moment, request in link.asked if request.code == RequestCode.HEART_BEAT]
    assert isinstance(bodies[-1], HeartbeatBody)
    (consumer,) = bodies[-1].consumers
    return {one.topic: one.expression for one in consumer.subscriptions if one.topic != "%RETRY%g"}


def topics(consumer: Any) -> set[str]:
    return {queue.topic for queue in consumer.queues if queue.topic != "%RETRY%g"}


@BOTH
def test_a_topic_that_is_new_is_said_at_once_and_shared_within_a_second(
    broker: Broker, link: RecordingLink, send: Send, kind: Any
):
    seen: list[tuple[str, bytes]] = []
    send(1, topic="T")
    send(2, topic="U")
    consumer = kind(
        link, "g", "T", lambda one: seen.append((one.topic, one.body)), consume_from=ConsumeFrom.FIRST
    )
    consumer.start()
    broker.advance("5s")
    link.asked.clear()
    consumer.subscribe("U")
    assert (said(link), link.moments(RequestCode.HEART_BEAT)) == ({"T": "*", "U": "*"}, [5])
    broker.advance("1s")
    assert topics(consumer) == {"T", "U"}
    assert seen == [("T", b"0"), ("U", b"0"), ("U", b"1")]
    consumer.close()
    assert broker.offsets.query("g", "U", 0) == 2


@BOTH
def test_other_tags_count_for_the_pull_that_a_broker_holds(
    broker: Broker, link: RecordingLink, send: Send, kind: Any
):
    """And what passed before is not asked for again."""
    seen: list[str | None] = []
    send(1, tags="A")
    send(1, tags="B")
    consumer = kind(link, "g", {"T": "A"}, lambda one: seen.append(one.tags), consume_from=ConsumeFrom.FIRST)
    consumer.start()
    broker.advance("5s")
    consumer.subscribe("T", "B || C")
    assert said(link) == {"T": "B || C"}
    for tags in "ABC":
        send(1, tags=tags)
    broker.advance("1500ms")
    assert seen == ["A", "B", "C"]
    consumer.close()
    assert broker.offsets.query("g", "T", 0) == 5


@BOTH
def test_a_topic_that_is_given_up_is_committed_and_another_member_gets_its_queues(
    broker: Broker, link: RecordingLink, send: Send, kind: Any
):
    seen: list[str] = []
    send(2, topic="T")
    send(2, topic="U")
    consumer = kind(
        link, "g", {"T": "*", "U": "*"}, lambda one: seen.append(one.topic), consume_from=ConsumeFrom.FIRST
    )
    consumer.start()
    broker.advance("5s")
    link.asked.clear()
    consumer.unsubscribe("U")
    assert said(link) == {"T": "*"}
    broker.advance("1s")
    assert topics(consumer) == {"T"}
    assert broker.offsets.query("g", "U", 0) == 2
    assert {lock.queue.topic for lock in broker.locks.all()} <= {"T", "%RETRY%g"}
    send(1, topic="U")
    send(1, topic="T")
    broker.advance("25s")
    assert sorted(seen) == ["T", "T", "T", "U", "U"]
    consumer.subscribe("U")
    broker.advance("1s")
    assert sorted(seen) == ["T", "T", "T", "U", "U", "U"], "it goes on where it was"
    consumer.close()


@BOTH
def test_what_a_broker_refuses_changes_nothing(tmp_path: Path, kind: Any):
    seen: list[bytes] = []
    with open_broker(tmp_path, VirtualClock()) as broker:
        producer = Producer(broker)
        producer.send("T", b"x", queue_id=0)
        with kind(broker, "g", "T", lambda one: seen.append(one.body)) as consumer:
            consumer.start()
            broker.advance(0)
            with pytest.raises(RemoteProtocolError, match="refuses SQL92"):
                consumer.subscribe("T", Subscription.by_sql("price > 5"))
            producer.send("T", b"y", queue_id=0)
            broker.advance("1s")
    assert seen == [b"x", b"y"]


def test_a_condition_takes_the_place_of_tags(tmp_path: Path):
    seen: list[bytes] = []
    config = BrokerConfig(enable_property_filter=True)
    with open_broker(tmp_path, VirtualClock(), config=config) as broker, Producer(broker) as producer:
        producer.send("T", b"x", queue_id=0)
        with PushConsumer(broker, "g", "T", lambda one: seen.append(one.body)) as consumer:
            consumer.start()
            broker.advance(0)
            consumer.subscribe("T", Subscription.by_sql("price > 5"))
            for price in ("3", "7"):
                producer.send("T", price.encode(), queue_id=0, properties={"price": price})
            broker.advance("2s")
    assert seen == [b"x", b"7"]


def test_before_the_start_it_is_what_is_consumed_from_then_on(broker: Broker, send: Send):
    seen: list[str] = []
    send(1, topic="T")
    send(1, topic="U")
    with PushConsumer(broker, "g", "T", lambda one: seen.append(one.topic)) as consumer:
        consumer.subscribe("U")
        consumer.unsubscribe("T")
        consumer.run_until_idle()
    assert seen == ["U"]


def test_wrong_topics_tags_and_consumers_that_are_closed_are_refused(broker: Broker):
    consumer = PushConsumer(broker, "g", "T", print)
    with pytest.raises(InvalidNameError):
        consumer.subscribe("no topic")
    with pytest.raises(InvalidArgumentError):
        consumer.subscribe("T", "||")
    with pytest.raises(InvalidNameError):
        consumer.unsubscribe("no topic")
    consumer.close()
    for call in (consumer.subscribe, consumer.unsubscribe):
        with pytest.raises(ConsumerError, match="closed"):
            call("T")


def test_over_a_connection_both_faces_change_what_they_consume(tmp_path: Path):
    async def consume(address: str, seen: list[str]) -> None:
        async with AsyncPushConsumer(address, "async", "T", lambda one: seen.append(one.topic)) as consumer:
            await consumer.start()
            await consumer.subscribe("U")
            await until_idle_in_loop(consumer, idle_s=60)
            await consumer.unsubscribe("T")
            await wait_until_in_loop(lambda: topics_of(consumer) == {"U"})

    def topics_of(consumer: AsyncPushConsumer) -> set[str]:
        return {queue.topic for queue in consumer.queues if not queue.topic.startswith("%RETRY%")} - {"T"}

    with BrokerServer(tmp_path / "s") as server, make_client(server.address) as client:
        with Producer(client) as producer:
            for topic in "TU":
                producer.send(topic, b"x")
        seen: list[str] = []
        with PushConsumer(client, "g", "T", lambda one: seen.append(one.topic)) as consumer:
            consumer.start()
            consumer.subscribe("U")
            wait_until(lambda: sorted(seen) == ["T", "U"], idle_s=30)
            consumer.unsubscribe("T")
            wait_until(lambda: topics(consumer) == {"U"}, idle_s=30)
        of_async: list[str] = []
        asyncio.run(consume(server.address, of_async))
    assert sorted(of_async) == ["T", "U"]
