"""A client says who is here, keeps what its producers and consumers share, and leaves as it should."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from seglog.broker.broker import Broker
from seglog.client.client import Client
from seglog.client.connect import make_client
from seglog.clock import VirtualClock
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import AsyncPushConsumer, PushConsumer
from seglog.errors import ClientClosedError, ConsumerError, InvalidArgumentError
from seglog.producer.producer import Producer
from seglog.remoting.bodies import ConsumerStatusBody
from seglog.remoting.client_headers import ConsumerStatusHeader
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request, expect_body
from seglog.remoting.heartbeat import HeartbeatBody
from seglog.remoting.later import Deferred
from seglog.storage.format.record.message import Message
from tests.support.brokers import open_broker
from tests.support.consumers import until_idle
from tests.support.machine.patience import patience_s, wait_for_event, wait_until
from tests.support.machine.said import said
from tests.support.narrow import not_none
from tests.support.recording import RecordingLink, recording


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with open_broker(tmp_path, VirtualClock()) as opened:
        yield opened


@pytest.fixture
def link(broker: Broker) -> Iterator[RecordingLink]:
    with recording(broker, "127.0.0.1@7#client") as made:
        yield made


def last_beat(link: RecordingLink) -> HeartbeatBody:
    bodies = [request.body for _moment, request in link.asked if request.code == RequestCode.HEART_BEAT]
    assert isinstance(bodies[-1], HeartbeatBody)
    return bodies[-1]


def test_s4_11_heartbeats_come_after_a_second_and_then_every_thirty(broker: Broker, link: RecordingLink):
    with Producer(link, "shop") as producer:
        producer.send("T", b"x")
        broker.advance(62_000)
    assert link.moments(RequestCode.HEART_BEAT) == [1, 31, 61]
    assert last_beat(link).producer_groups == ("shop",)


def test_s4_11_routes_of_consumers_are_asked_for_every_thirty_seconds(broker: Broker, link: RecordingLink):
    Producer(broker).send("T", b"x")
    with OrderlyConsumer(link, "g", "T", print) as consumer:
        consumer.start()
        broker.advance(0)
        link.asked.clear()
        broker.advance(61_000)
        assert len(link.moments(RequestCode.GET_ROUTEINFO_BY_TOPIC)) == 2 * 3, "two topics"


def test_s4_11_name_servers_that_are_looked_up_are_asked_for_after_ten_seconds_and_every_two_minutes(
    broker: Broker, link: RecordingLink, caplog: pytest.LogCaptureFixture
):
    """And at the start. Where they are given, nothing is looked up."""
    link.look_at("http://names.example:8080/rocketmq/nsaddr")
    link.list_of_servers = "10.0.0.1:9876"
    with Producer(link, "shop"):
        broker.advance(131_000)
        assert link.looked == [0, 10, 130]
        link.list_of_servers = None
        broker.advance(120_000)
        assert link.looked[-1] == 250
        assert "the name servers stay as they were: no answer" in caplog.text
        lookup = not_none(link.lookup)
        assert lookup.addresses == ("10.0.0.1:9876",)
        link.list_of_servers = "10.0.0.2:9876"
        broker.advance(120_000)
        assert (link.looked[-1], lookup.addresses) == (370, ("10.0.0.2:9876",))
    with recording(broker, "127.0.0.1@7#other") as other, Producer(other, "shop"):
        broker.advance(300_000)
        assert other.looked == []


def test_s4_11_each_timer_of_a_consumer_has_its_moments(broker: Broker, link: RecordingLink):
    """Routes 10 ms, then 30 s; heartbeats 1 s, then 30 s; offsets 10 s, then 5 s; all else between them."""
    link.look_at("http://names.example:8080/rocketmq/nsaddr")
    link.list_of_servers = "10.0.0.1:9876"
    producer = Producer(broker)
    producer.send("T", b"x", queue_id=0)
    with PushConsumer(link, "g", "T", lambda _message: None) as consumer:
        consumer.start()
        broker.advance(0)
        link.cut = {RequestCode.PULL_MESSAGE}  # whose answers would commit with the next pull
        link.asked.clear()
        broker.advance(2_000)
        assert set(link.moments(RequestCode.GET_ROUTEINFO_BY_TOPIC)) == {0.01}
        assert link.moments(RequestCode.HEART_BEAT) == [1]
        link.cut = set()
        for _ in range(7):
            broker.advance(6_000)
            producer.send("T", b"x", queue_id=0)
        broker.advance(21_000)
    assert list(dict.fromkeys(link.moments(RequestCode.GET_ROUTEINFO_BY_TOPIC))) == [
        0.01,
        30.01,
        60.01,
    ]
    assert link.moments(RequestCode.HEART_BEAT) == [1, 31, 61]
    assert link.looked == [0, 10]
    committed = link.moments(RequestCode.UPDATE_CONSUMER_OFFSET)
    assert committed[0] == 10
    assert all(moment % 5 == 0 for moment in committed[:-1]), "the last one is of its end"


def test_producers_and_consumers_of_a_client_share_its_heartbeat(broker: Broker, link: RecordingLink):
    client = make_client(link)
    Producer(client, "shop").send("T", b"x")
    consumers = [kind(client, kind.__name__, "T", print) for kind in (OrderlyConsumer, PushConsumer)]
    for consumer in consumers:
        consumer.start()
    broker.advance(1_000)
    beat = last_beat(link)
    assert (beat.client_id, beat.producer_groups) == (link.client_id, ("shop",))
    assert {consumer.group for consumer in beat.consumers} == {"OrderlyConsumer", "PushConsumer"}
    assert all(len(consumer.subscriptions) == 2 for consumer in beat.consumers), "retries too"
    client.close()
    assert broker.clients.is_empty


def test_s4_09_a_second_consumer_of_a_group_is_refused_with_the_way_out(broker: Broker):
    with make_client(broker) as client:
        first = OrderlyConsumer(client, "g", "T", print)
        first.start()
        broker.advance(0)
        with pytest.raises(ConsumerError) as refused:
            PushConsumer(client, "g", "T", print)
        assert "another group" in refused.value.help
        first.close()
        PushConsumer(client, "g", "T", print).close()


def test_a_consumer_that_closes_leaves_its_group_and_the_client_stays(broker: Broker, link: RecordingLink):
    client = make_client(link)
    Producer(client, "shop").send("T", b"x")
    with OrderlyConsumer(client, "g", "T", print) as consumer:
        consumer.start()
        broker.advance(0)
        assert not_none(broker.clients.consumers("g")).clients
    assert broker.clients.consumers("g") is None
    broker.advance(1_000)
    assert last_beat(link).consumers == ()
    Producer(client, "shop").send("T", b"x")


def test_a_closed_client_refuses_and_a_second_close_does_nothing(broker: Broker):
    client = make_client(broker)
    client.close()
    client.close()
    with pytest.raises(ClientClosedError):
        Producer(client, "shop")


def test_a_broker_that_does_not_know_a_member_hears_of_it_at_once(broker: Broker, link: RecordingLink):
    Producer(broker).send("T", b"x", queue_id=0)
    seen: list[object] = []
    with OrderlyConsumer(link, "g", "T", seen.append) as consumer:
        consumer.run_until_idle()
        broker.disconnect(link._peer)  # as a broker does that was restarted
        Producer(broker).send("T", b"y", queue_id=0)
        broker.advance(2_000)
        assert len(seen) == 2


def test_a_broker_can_ask_how_far_a_consumer_is(broker: Broker):
    producer = Producer(broker)
    for _ in range(3):
        producer.send("T", b"x", queue_id=1)
    with make_client(broker) as client, OrderlyConsumer(client, "g", "T", lambda _message: None) as consumer:
        consumer.run_until_idle()
        header = ConsumerStatusHeader("T", "g")
        asked = broker.answer(Request(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, header))
        broker.advance(0)
        assert isinstance(asked, Deferred)
        ((_client, queues),) = expect_body(asked.result(), ConsumerStatusBody).clients.items()
        assert {queue.queue_id: offset for queue, offset in queues.items()}[1] == 3


def test_what_is_left_open_falls_silent_when_its_broker_is_closed(tmp_path: Path, caplog):
    clock, fired = VirtualClock(), []
    with open_broker(tmp_path / "s", clock) as broker:
        producer = Producer(broker)
        producer.send("T", b"x")
        consumer = OrderlyConsumer(broker, "g", "T", lambda _message: None)
        assert consumer.run_until_idle() == 1
    caplog.clear()
    broker.timers.after(100_000, lambda: fired.append("a timer"))
    for _ in range(600):
        clock.advance(250)
        broker.timers.run()
    assert fired, "timers of the broker's clients are called still"
    assert said(caplog) == []
    consumer.close()
    producer.close()


@pytest.mark.campaign
def test_so_it_does_on_real_time(tmp_path: Path, caplog):
    with Broker.open(tmp_path / "s") as broker:
        producer = Producer(broker)
        producer.send("T", b"x")
        consumer = OrderlyConsumer(broker, "g", "T", lambda _message: None)
        assert until_idle(consumer) == 1
    time.sleep(1.5)
    caplog.clear()
    time.sleep(2.5)  # the times of a heartbeat, a pull, a renewal and a share
    assert said(caplog) == []
    consumer.close()
    producer.close()


@pytest.mark.parametrize("target", [5, None, b"127.0.0.1:9876", object()])
def test_what_is_no_broker_is_refused(target):
    with pytest.raises(InvalidArgumentError, match=r"^target="):
        Producer(target)


def test_a_client_of_a_broker_on_virtual_time_has_no_thread(broker: Broker):
    client = make_client(broker)
    assert isinstance(client, Client)
    assert type(client.home).__name__ == "VirtualHome"
    client.close()


@pytest.mark.parametrize("is_awaited", [False, True])
def test_a_close_in_time_says_what_listeners_are_at(tmp_path: Path, is_awaited: bool):
    entered, leave = threading.Event(), threading.Event()

    def listener(_message: Message) -> None:
        entered.set()
        wait_for_event(leave, idle_s=30)

    async def awaited(broker: Broker) -> None:
        async with make_client(broker, in_loop=True) as client:
            consumer = AsyncPushConsumer(client, "g", "T", listener)
            await consumer.start()
            await asyncio.to_thread(wait_for_event, entered, idle_s=30)
            await client.aclose(0.05)

    def plain(broker: Broker) -> None:
        with make_client(broker) as client:
            PushConsumer(client, "g", "T", listener).start()
            wait_for_event(entered, idle_s=30)
            client.close(0.05)

    with Broker.open(tmp_path / "s") as broker:
        Producer(broker).send("T", b"x", queue_id=0)
        what = "at work still: g: T, queue 0 of broker-a, offsets 0 to 0"
        with pytest.raises(TimeoutError, match=what) as late:
            asyncio.run(awaited(broker)) if is_awaited else plain(broker)
        leave.set()
        assert late.value.__cause__ is not None


def threads_of(group: str) -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith(f"seglog-{group}-")]


@pytest.mark.parametrize("is_in_time", [True, False])
@pytest.mark.parametrize("is_awaited", [False, True])
def test_finding_w2_no_thread_of_its_consumers_outlives_a_client_and_their_listeners(
    tmp_path: Path, is_awaited: bool, is_in_time: bool
):
    group = f"w2-{is_awaited}-{is_in_time}"
    entered, leave = threading.Event(), threading.Event()

    def listener(_message: Message) -> None:
        entered.set()
        assert is_in_time or leave.wait(patience_s(30))

    async def awaited(broker: Broker) -> None:
        client = make_client(broker, in_loop=True)
        consumer = AsyncPushConsumer(client, group, "T", listener)
        await consumer.start()
        await asyncio.to_thread(wait_for_event, entered, idle_s=30)
        await client.aclose(None if is_in_time else 0)

    def plain(broker: Broker) -> None:
        client = make_client(broker)
        PushConsumer(client, group, "T", listener).start()
        wait_for_event(entered, idle_s=30)
        client.close(None if is_in_time else 0)

    with Broker.open(tmp_path / "s") as broker:
        Producer(broker).send("T", b"x", queue_id=0)
        with nullcontext() if is_in_time else pytest.raises(TimeoutError):
            asyncio.run(awaited(broker)) if is_awaited else plain(broker)
        leave.set()
        wait_until(lambda: not threads_of(group), idle_s=30)


def test_a_client_that_was_closed_is_kept_for_a_listener_in_order_that_comes_back_late(tmp_path: Path):
    entered, leave = threading.Event(), threading.Event()

    def listener(_message: Message) -> None:
        entered.set()
        wait_for_event(leave, idle_s=30)

    with Broker.open(tmp_path / "s") as broker:
        Producer(broker).send("T", b"x", queue_id=0)
        client = make_client(broker)
        OrderlyConsumer(client, "late", "T", listener).start()
        wait_for_event(entered, idle_s=30)
        with pytest.raises(TimeoutError, match="at work still"):
            client.close(0)
        wait_until(lambda: [lock.queue.topic for lock in broker.locks.all()] == ["T"], idle_s=30)
        leave.set()
        wait_until(lambda: broker.offsets.query("late", "T", 0) == 1, idle_s=30)
        wait_until(lambda: not broker.locks.all(), idle_s=30)
        wait_until(lambda: client.is_over, idle_s=30)
        wait_until(lambda: not threads_of("late"), idle_s=30)
