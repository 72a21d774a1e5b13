"""A started consumer works alone, lets no other in while a listener is at work, and ends when told to."""

from __future__ import annotations

import threading
import time

import pytest

from seglog.broker.broker import Broker
from seglog.client.client import Client
from seglog.client.connect import make_client
from seglog.consumer.listener import Consume
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.errors import ConsumerError
from seglog.producer.producer import Producer
from tests.support.consumers import until_idle
from tests.support.machine.patience import patience_s, wait_for_event, wait_until

BOTH = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])


@pytest.fixture
def broker(tmp_path):
    with Broker.open(tmp_path) as opened:
        yield opened


def send(broker, count, *, topic="T", sharding_key=None):
    with Producer(broker) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, sharding_key=sharding_key)


@BOTH
def test_messages_that_are_there_and_that_come_later_are_consumed(broker, kind):
    seen = []
    send(broker, 10)
    with kind(broker, "g", "T", seen.append) as consumer:
        consumer.start()
        wait_until(lambda: len(seen) == 10, idle_s=30)
        send(broker, 10)
        wait_until(lambda: len(seen) == 20, idle_s=30)


@BOTH
def test_run_until_idle_waits_until_all_that_is_stored_is_done(broker, kind):
    seen = []
    send(broker, 100)
    with kind(broker, "g", "T", seen.append) as consumer:
        assert until_idle(consumer) == 100
        send(broker, 1)
        wait_until(lambda: len(seen) == 101, idle_s=30)
    assert sum(broker.offsets.of_group("g").values()) == 101


@BOTH
def test_close_commits_and_the_next_consumer_goes_on(broker, kind):
    seen = []
    send(broker, 10, sharding_key="k")
    with kind(broker, "g", "T", seen.append) as consumer:
        consumer.start()
        wait_until(lambda: len(seen) == 10, idle_s=30)
    assert sum(broker.offsets.of_group("g").values()) == 10
    assert broker.locks.all() == []
    assert broker.clients.consumers("g") is None


def test_s2_02_two_consumers_of_a_group_share_and_each_queue_is_consumed_in_order(broker):
    order: dict[int, list[int]] = {}
    at_work = set()
    overlaps = []

    def listener(message):
        if message.queue_id in at_work:
            overlaps.append(message)
        at_work.add(message.queue_id)
        order.setdefault(message.queue_id, []).append(message.queue_offset)
        at_work.discard(message.queue_id)

    send(broker, 2_000)
    consumers = [OrderlyConsumer(broker, "g", "T", listener) for _ in range(2)]
    for consumer in consumers:
        consumer.start()
    wait_until(lambda: sum(map(len, order.values())) == 2_000, idle_s=30)
    wait_until(lambda: [sum(q.topic == "T" for q in one.queues) for one in consumers] == [2, 2], idle_s=30)
    for consumer in consumers:
        consumer.close()
    assert overlaps == []
    for offsets in order.values():
        assert offsets == list(range(len(offsets)))


def test_a_failing_listener_blocks_its_queue_until_it_succeeds(broker):
    seen = []

    def listener(message):
        seen.append((message.queue_offset, message.reconsume_times))
        return Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT if len(seen) < 3 else None

    send(broker, 2, sharding_key="k")
    with OrderlyConsumer(broker, "g", "T", listener, suspend_ms=20) as consumer:
        consumer.start()
        wait_until(lambda: len(seen) == 4, idle_s=30)
    assert seen == [(0, 0), (0, 1), (0, 2), (1, 0)]


@BOTH
@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, BaseException])
def test_finding_4_an_exception_that_would_end_a_thread_is_a_failure(broker, kind, error):
    """Of consumers and producer: consumption ended, its locks stayed, and close() said nothing."""
    seen = []

    def listener(message):
        seen.append(message.queue_offset)
        if len(seen) == 1:
            raise error("a listener")

    send(broker, 3, sharding_key="k")
    with kind(broker, "g", "T", listener, suspend_ms=20) as consumer:
        consumer.start()
        wait_until(lambda: {1, 2} <= set(seen), idle_s=30)
        if kind is OrderlyConsumer:
            wait_until(lambda: seen == [0, 0, 1, 2], idle_s=30)
        wait_until(lambda: consumer.counts.failed == 1, idle_s=30)


def test_finding_5_a_listener_busy_in_one_queue_delays_no_other(broker):
    """Of consumers and producer: one thread served all queues."""
    entered, leave, seen = threading.Event(), threading.Event(), []

    def listener(message):
        if message.queue_id == 0:
            entered.set()
            wait_for_event(leave, idle_s=30)
        else:
            seen.append(message)

    with Producer(broker) as producer, OrderlyConsumer(broker, "g", "T", listener) as consumer:
        producer.send("T", b"slow", queue_id=0)
        consumer.start()
        wait_for_event(entered, idle_s=30)
        for queue_id in (1, 2, 3):
            producer.send("T", b"quick", queue_id=queue_id)
        wait_until(lambda: len(seen) == 3, idle_s=30)
        leave.set()


def test_s2_19_a_queue_is_not_handed_over_while_its_listener_is_at_work(broker):
    entered, leave = threading.Event(), threading.Event()
    seen = []

    def slow(message):
        entered.set()
        wait_for_event(leave, idle_s=30)
        seen.append(("a", message.queue_offset))

    send(broker, 2, sharding_key="k")
    first = OrderlyConsumer(make_client(broker, client_id="z"), "g", "T", slow)
    first.start()
    wait_for_event(entered, idle_s=30)
    taken = [queue for queue in first.queues if queue.topic == "T"]
    # Of enough members that share the four queues before it in the alphabet, it has none any more.
    others = [
        OrderlyConsumer(
            make_client(broker, client_id=name),
            "g",
            "T",
            lambda message: seen.append(("b", message.queue_offset)),
        )
        for name in "abcd"
    ]
    for other in others:
        other.start()
    wait_until(
        lambda: sum(queue.topic == "T" for queue in first.queues) == 1, "the others' shares", idle_s=30
    )
    time.sleep(0.1)
    assert seen == [], "the first one still has its lock"
    assert len(taken) == 4
    leave.set()
    wait_until(lambda: len(seen) == 2, idle_s=30)
    assert seen == [("a", 0), ("b", 1)]
    for consumer in (first, *others):
        consumer.close()


def test_a_close_that_is_timed_out_names_what_it_waited_for_and_the_message_comes_again(broker):
    entered, leave = threading.Event(), threading.Event()

    def listener(_message):
        entered.set()
        wait_for_event(leave, idle_s=30)

    send(broker, 1)
    consumer = PushConsumer(broker, "g", "T", listener)
    consumer.start()
    wait_for_event(entered, idle_s=30)
    with pytest.raises(TimeoutError):
        consumer.close(0.05)
    seen = []
    with PushConsumer(broker, "g", "T", seen.append) as heir:
        assert until_idle(heir) == 1
        leave.set()


def test_all_clients_of_a_process_share_one_thread(broker):
    names = {thread.name for thread in threading.enumerate()} | {"seglog-client"}
    with OrderlyConsumer(broker, "g", "T", print) as one, PushConsumer(broker, "h", "T", print) as other:
        one.start()
        other.start()
        wait_until(lambda: one.is_idle and other.is_idle, idle_s=30)
        started = {thread.name for thread in threading.enumerate()} - names
        assert {name for name in started if "seglog-g" in name or "seglog-h" in name} == set()


def test_listener_threads_end_with_their_consumer(broker):
    before = set(threading.enumerate())  # listeners of other tests may hang in threads yet

    def has_threads():
        return any(one.name.startswith("seglog-g") for one in set(threading.enumerate()) - before)

    send(broker, 50)
    with PushConsumer(broker, "g", "T", lambda _message: time.sleep(0.001)) as consumer:
        until_idle(consumer)
        assert has_threads()
    wait_until(lambda: not has_threads(), idle_s=30)


def test_s4_09_a_second_consumer_of_a_group_on_one_client_is_refused(broker):
    with make_client(broker) as client:
        with PushConsumer(client, "g", "T", print) as first:
            until_idle(first)
            with pytest.raises(ConsumerError, match="has a consumer of group g already"):
                PushConsumer(client, "g", "U", print)
            PushConsumer(client, "h", "T", print).close()
        assert isinstance(client, Client)
        with PushConsumer(client, "g", "T", print) as again:
            until_idle(again)


def test_a_started_consumer_cannot_be_started_again(broker):
    with OrderlyConsumer(broker, "g", "T", lambda _message: None) as consumer:
        consumer.start()
        with pytest.raises(ConsumerError):
            consumer.start()


def test_listeners_that_wait_for_each_other_meet_though_messages_are_handed_many_at_a_time(broker):
    send(broker, 40, sharding_key="k")  # of one queue
    quick, meeting, met = [], threading.Barrier(20), []

    def listen(message):
        if message.queue_offset < 20:
            quick.append(message.queue_offset)  # so that those behind are handed many at a time
        else:
            meeting.wait(patience_s(30))
            met.append(message.queue_offset)

    with PushConsumer(broker, "g", "T", listen, threads=20) as consumer:
        consumer.start()
        wait_until(lambda: len(met) == 20, idle_s=30)
        assert (sorted(quick), sorted(met)) == (list(range(20)), list(range(20, 40)))
    assert sum(broker.offsets.of_group("g").values()) == 40


def test_what_a_slow_listener_was_handed_and_has_not_begun_is_done_by_others_meanwhile(broker):
    send(broker, 10, sharding_key="k")
    seen, gate = [], threading.Event()

    def listen(message):
        if message.queue_offset == 0:
            wait_for_event(gate, idle_s=60)
        seen.append(message.queue_offset)

    with PushConsumer(broker, "g", "T", listen, threads=2) as consumer:
        consumer.start()
        wait_until(lambda: sorted(seen) == list(range(1, 10)), idle_s=30)
        consumer.commit()
        assert sum(broker.offsets.of_group("g").values()) == 0  # its message is not done
        gate.set()
        wait_until(lambda: len(seen) == 10, idle_s=30)
    assert sum(broker.offsets.of_group("g").values()) == 10
