"""A started consumer works by itself, lets nobody in while a listener is at work, and ends when told to."""

from __future__ import annotations

import threading
import time

import pytest
from typing_extensions import override

from seglog.broker.broker import Broker
from seglog.client.links.local_link import LocalLink
from seglog.consumer.listener import Consume
from seglog.consumer.orderly import OrderlyConsumer
from seglog.errors import ConsumerError
from seglog.producer.producer import Producer
from tests.support.links import LinkOver
from tests.support.machine.patience import patience_s


@pytest.fixture
def broker(tmp_path):
    with Broker.open(tmp_path) as opened:
        yield opened


@pytest.fixture
def link(broker):
    return LocalLink(broker)


def wait_until(condition, timeout_s=30):
    deadline = time.monotonic() + patience_s(timeout_s)
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.002)


def send(link, count, *, topic="T", sharding_key=None):
    producer = Producer(link)
    for number in range(count):
        producer.send(topic, b"%d" % number, sharding_key=sharding_key)


def test_messages_that_are_there_and_that_come_later_are_consumed(link):
    seen = []
    send(link, 10)
    with OrderlyConsumer(link, "g", "T", seen.append) as consumer:
        consumer.start()
        wait_until(lambda: len(seen) == 10)
        send(link, 10)
        wait_until(lambda: len(seen) == 20)


def test_close_commits_and_the_next_consumer_goes_on(broker, link):
    seen = []
    send(link, 10, sharding_key="k")
    with OrderlyConsumer(link, "g", "T", seen.append) as consumer:
        consumer.start()
        wait_until(lambda: len(seen) == 10)
    assert sum(broker.offsets.of_group("g").values()) == 10
    assert broker.locks.all() == []


def test_s2_02_two_consumers_of_a_group_share_and_each_queue_is_consumed_in_order(link):
    order: dict[int, list[int]] = {}
    at_work = set()
    overlaps = []

    def listener(message):
        if message.queue_id in at_work:
            overlaps.append(message)
        at_work.add(message.queue_id)
        order.setdefault(message.queue_id, []).append(message.queue_offset)
        at_work.discard(message.queue_id)

    send(link, 2_000)
    consumers = [
        OrderlyConsumer(link, "g", "T", listener, client_id=name, members=["a", "b"]) for name in "ab"
    ]
    for consumer in consumers:
        consumer.start()
    wait_until(lambda: sum(map(len, order.values())) == 2_000)
    assert [len(consumer.queues) for consumer in consumers] == [2, 2]
    for consumer in consumers:
        consumer.close()
    assert overlaps == []
    for offsets in order.values():
        assert offsets == list(range(len(offsets)))


def test_a_failing_listener_blocks_its_queue_until_it_succeeds(link):
    seen = []

    def listener(message):
        seen.append((message.queue_offset, message.reconsume_times))
        return Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT if len(seen) < 3 else None

    send(link, 2, sharding_key="k")
    with OrderlyConsumer(link, "g", "T", listener, suspend_ms=20) as consumer:
        consumer.start()
        wait_until(lambda: len(seen) == 4)
    assert seen == [(0, 0), (0, 1), (0, 2), (1, 0)]


def test_s2_19_a_queue_is_not_handed_over_while_its_listener_is_at_work(link):
    entered, leave = threading.Event(), threading.Event()
    seen = []

    def slow(message):
        entered.set()
        assert leave.wait(30)
        seen.append(("a", message.queue_offset))

    send(link, 2, sharding_key="k")
    first = OrderlyConsumer(link, "g", "T", slow, client_id="a", members=["a"])
    second = OrderlyConsumer(
        link, "g", "T", lambda message: seen.append(("b", message.queue_offset)), client_id="b", members=["b"]
    )
    first.start()
    assert entered.wait(30)
    first.set_members(["b"])
    second.start()
    time.sleep(0.7)
    assert seen == [], "the first one still has its lock"
    leave.set()
    wait_until(lambda: len(seen) == 2)
    assert seen == [("a", 0), ("b", 1)]
    first.close()
    second.close()


def test_no_thread_outlives_a_consumer(link):
    before = threading.active_count()
    with OrderlyConsumer(link, "g", "T", lambda _message: None) as consumer:
        consumer.start()
        assert threading.active_count() == before + 2
    assert threading.active_count() == before


def test_a_consumer_waits_out_a_broker_that_refuses(link, caplog):
    class Refusing(LinkOver):
        refusals = 2

        @override
        def invoke(self, request, timeout_ms=None, to=None):
            if self.refusals:
                self.refusals -= 1
                raise ConsumerError("not now")
            return link.invoke(request, timeout_ms)

    seen = []
    send(link, 1)
    with OrderlyConsumer(Refusing(link), "g", "T", seen.append) as consumer:
        consumer.start()
        wait_until(lambda: len(seen) == 1)
    assert "not now" in caplog.text


def test_a_thread_that_dies_is_told_at_close(link):
    class Broken(LinkOver):
        @override
        def invoke(self, request, timeout_ms=None, to=None):
            raise ZeroDivisionError("a defect")

    consumer = OrderlyConsumer(Broken(link), "g", "T", lambda _message: None)
    consumer.start()
    wait_until(lambda: any(not thread.is_alive() for thread in consumer._threads))
    with pytest.raises(ConsumerError, match="a defect") as caught:
        consumer.close()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_started_consumer_cannot_be_stepped_or_started_again(link):
    with OrderlyConsumer(link, "g", "T", lambda _message: None) as consumer:
        consumer.start()
        with pytest.raises(ConsumerError):
            consumer.poll()
        with pytest.raises(ConsumerError):
            consumer.start()
