"""Days of a broker's life pass in a moment, exactly, and the same each time."""

from __future__ import annotations

import threading
from functools import partial
from itertools import accumulate

import pytest

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.clock import VirtualClock
from seglog.consumer.listener import Consume, ConsumeFrom
from seglog.consumer.orderly import OrderlyConsumer
from seglog.producer.producer import Producer
from seglog.remoting.codes import PullFlag, ResponseCode
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.files.files import DiskUsage
from seglog.testing import ServedBroker, VirtualBroker
from tests.support.brokers import pull, records_body, send_delayed
from tests.support.counted_calls import counted_calls
from tests.support.machine.patience import join_thread, wait_until
from tests.support.material.golden import extract, tree_digest

START_MS = 1_700_000_000_000
LADDER_S = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1_200, 1_800, 3_600, 7_200)
QUEUE = MessageQueue("orders", "broker-a", 0)
HOLD = PullFlag.SUBSCRIPTION | PullFlag.SUSPEND
# About twice what a scene takes: clients beat all the time, a member of a group also asks, shares and locks.
MOST_CALLS = {"retry_ladder": 12_000_000, "lock_expiry": 2_000_000, "idle_hours": 20_000_000}


def retry_ladder(broker):
    """Fails at a message until it is a dead letter; returns when it came each time."""
    broker.producer().send("orders", b"poison")
    (message,) = broker.messages("orders")
    for _ in LADDER_S:
        broker.send_back("billing", message)
        broker.advance("2h")
        message = broker.messages("%RETRY%billing")[-1]
    broker.send_back("billing", message)
    assert [dead.reconsume_times for dead in broker.messages("%DLQ%billing")] == [17]
    return [message.store_timestamp_ms for message in broker.messages("%RETRY%billing")]


def lock_expiry(broker):
    """Has one client lose its queue to another."""
    owners = []
    broker.locks.lock("billing", [QUEUE], "a")
    for step_ms in (60_000, 1):
        broker.advance(step_ms)
        broker.locks.lock("billing", [QUEUE], "b")
        owners.append(broker.locks.owner("billing", QUEUE))
    return owners


def idle_hours(broker):
    """Has a member of a group wait six hours for a message, keeping its lock and its offset all the time."""
    producer, seen = broker.producer(), []

    def listener(message):
        seen.append(message.body)
        return None if len(seen) > 1 else Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT

    producer.send("orders", b"first")
    consumer = broker.consumer("billing", "orders", listener)
    consumer.start()
    broker.advance("6h")
    producer.send("orders", b"second")
    consumer.run_until_idle()
    consumer.close()
    return seen


SCENES = {
    retry_ladder: [START_MS + 7_200_000 * number + wait_s * 1_000 for number, wait_s in enumerate(LADDER_S)],
    lock_expiry: ["a", "b"],
    idle_hours: [b"first", b"first", b"second"],
}


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_scene_is_exact_quick_and_leaves_the_same_bytes_each_time(tmp_path, scene):
    with counted_calls() as calls, VirtualBroker.at(tmp_path / "a") as broker:
        assert scene(broker) == SCENES[scene]
    assert 1_000 < calls[0] < MOST_CALLS[scene.__name__]
    with VirtualBroker.at(tmp_path / "b") as broker:  # to count takes twice as long
        assert scene(broker) == SCENES[scene]
    assert tree_digest(tmp_path / "a") == tree_digest(tmp_path / "b")


def test_one_advance_walks_the_whole_ladder_of_a_consumer_in_the_process(tmp_path):
    tries = []
    with VirtualBroker.at(tmp_path) as broker:

        def fail(message):
            tries.append((message.reconsume_times, (broker.clock.now_ms() - START_MS) // 1_000))
            raise ValueError("poison")

        broker.producer().send("orders", b"poison")
        broker.consumer("billing", "orders", fail, in_order=False).start()
        broker.advance("5h")
        assert [dead.body for dead in broker.messages("%DLQ%billing")] == [b"poison"]
    assert [number for number, _ in tries] == [*range(17)]
    since_s = [at_s - tries[0][1] for _, at_s in tries]
    assert since_s == [0, *accumulate(LADDER_S)]


def test_ids_of_a_broker_that_opens_again_are_new_ones(tmp_path):
    with VirtualBroker.at(tmp_path) as broker:
        send_delayed(broker, 0)
    with VirtualBroker.at(tmp_path) as broker:
        send_delayed(broker, 0)
        ids = [message.unique_key for message in broker.messages("T")]
    assert len(set(ids)) == 2


def test_clients_have_ids_of_their_own(tmp_path):
    with VirtualBroker.at(tmp_path) as broker:
        for _ in range(3):
            broker.producer().send("orders", b"x")
        ids = [message.unique_key for message in broker.messages("orders")]
        assert len(set(ids)) == 3
        assert len({broker.link().client_id for _ in range(3)}) == 3


def test_messages_of_all_queues_are_listed(tmp_path):
    with VirtualBroker.at(tmp_path) as broker:
        producer = broker.producer()
        for number in range(4_200):
            producer.send("orders", b"%d" % number)
        listed = broker.messages("orders")
        assert [message.body for message in listed[:2]] == [b"0", b"4"]
        assert len({message.body for message in listed}) == len(listed) == 4_200
        assert broker.messages("other") == []


def test_a_held_pull_lets_time_pass_until_its_message_comes(tmp_path):
    with VirtualBroker.at(tmp_path) as broker:
        send_delayed(broker, 0)
        send_delayed(broker, 3, b"late")
        answer = pull(broker, "T", 1, flags=HOLD, suspend_timeout_ms=15_000)
        assert answer.code is ResponseCode.SUCCESS
        assert b"late" in bytes(records_body(answer).records[0])
        assert broker.clock.now_ms() == START_MS + 10_000


def test_a_held_pull_lets_its_time_pass_when_nothing_comes(tmp_path):
    with VirtualBroker.at(tmp_path) as broker:
        send_delayed(broker, 0)
        answer = pull(broker, "T", 1, flags=HOLD, suspend_timeout_ms=15_000)
        assert answer.code is ResponseCode.PULL_NOT_FOUND
        assert broker.clock.now_ms() == START_MS + 15_000


def test_a_held_pull_of_another_thread_waits_for_the_one_that_moves_time(tmp_path):
    with VirtualBroker.at(tmp_path) as broker:
        send_delayed(broker, 0)
        answers = []
        ask = partial(pull, broker, "T", 1, flags=HOLD, suspend_timeout_ms=15_000)
        thread = threading.Thread(target=lambda: answers.append(ask()))
        thread.start()
        wait_until(lambda: broker.offsets.pulled("cg", "T", 0) is not None, "the pull is held", look_s=0.001)
        send_delayed(broker, 0, b"soon")
        join_thread(thread)
        assert answers[0].code is ResponseCode.SUCCESS
        assert broker.clock.now_ms() == START_MS


def test_settings_and_time_can_be_others(tmp_path):
    with VirtualBroker.at(tmp_path, config=BrokerConfig(delay_levels="3d")) as broker:
        broker.producer().send("orders", b"x", delay_level=1)
        broker.advance("2d")
        assert broker.messages("orders") == []
        broker.advance("1d")
        assert len(broker.messages("orders")) == 1


@pytest.mark.parametrize("percent", [80, 88, 95])
def test_how_full_the_machines_disk_is_changes_nothing(tmp_path, monkeypatch, percent):
    monkeypatch.setattr(DiskUsage, "of", lambda _folder: DiskUsage(percent, 100 - percent))
    config = BrokerConfig(retention_hours=1, retention_policy="allow")
    with VirtualBroker.at(tmp_path / "s", config=config) as broker:
        broker.producer().send("orders", b"1")
        broker.advance("2m")
        broker.producer().send("orders", b"2")
        assert [message.body for message in broker.messages("orders")] == [b"1", b"2"]


def test_clients_of_a_link_go_by_the_time_of_its_broker(seglog_broker):
    seen = []

    def handle(message):
        seen.append(message.body)
        if seen == [b"1", b"2"]:
            raise RuntimeError("fails once")

    producer = Producer(seglog_broker.link())
    for number in range(1, 4):
        producer.send("orders", b"%d" % number, queue_id=0)
    link = seglog_broker.link()
    with OrderlyConsumer(link, "billing", "orders", handle, consume_from=ConsumeFrom.FIRST) as consumer:
        consumer.run_until_idle()
        assert seen == [b"1", b"2"]
        seglog_broker.advance("1s")
        consumer.run_until_idle()
    assert seen == [b"1", b"2", b"2", b"3"]
    assert {message.born_timestamp_ms for message in seglog_broker.messages("orders")} == {START_MS}


def test_under_virtual_time_only_the_store_has_threads_and_they_end_with_the_broker(
    tmp_path,
):
    before = set(threading.enumerate())

    def names():
        return {thread.name for thread in set(threading.enumerate()) - before}

    with VirtualBroker.at(tmp_path) as broker:
        retry_ladder(broker)
        idle_hours(broker)
        held_pull = pull(broker, "orders", 99, flags=HOLD, suspend_timeout_ms=1_000)
        assert held_pull.code is not ResponseCode.SUCCESS
        of_the_store = {"seglog-flush", "seglog-index", "seglog-point", "seglog-seal"}
        assert names() - {"seglog-ahead"} == of_the_store
    assert names() == set()


def test_brokers_clocks_and_counts_show_what_they_are(tmp_path):
    with VirtualBroker.at(tmp_path / "s") as broker:
        assert repr(broker) == f"<VirtualBroker broker-a over {tmp_path / 's'}, 2023-11-14 22:13:20 UTC>"
        broker.producer().send("orders", b"x")
        with broker.consumer("G", "orders", lambda _message: None) as consumer:
            consumer.run_until_idle()
            assert repr(consumer.counts) == (
                "Counts(delivered=1, expired=0, failed=0, filtered=0, given_up=0, unreadable=0)"
            )
    assert repr(broker) == f"<VirtualBroker broker-a over {tmp_path / 's'} closed, 2023-11-14 22:13:20 UTC>"
    with Broker.open(tmp_path / "s", background=False, clock=VirtualClock()) as plain:
        assert repr(plain) == f"<Broker broker-a over {tmp_path / 's'}>"


def test_a_consumer_that_is_polled_begins_with_the_first_message_and_lets_no_time_pass(seglog_broker):
    for number in range(3):
        seglog_broker.producer().send("orders", b"%d" % number, queue_id=0)
    seglog_broker.advance("4h")  # its queue is young no more for a group that begins at the end
    before_ms = seglog_broker._clock.now_ms()
    with seglog_broker.polled_consumer("ledger", "orders", pull_count=2) as consumer:
        assert [message.body for message in consumer] == [b"0", b"1", b"2"]
        assert consumer.poll() == []
    assert seglog_broker._clock.now_ms() == before_ms
    with seglog_broker.consumer("billing", in_order=False) as listening:
        seen = []
        listening.on("orders")(lambda order: seen.append(order.body))
        assert listening.run_until_idle() == 3
    assert seen == [b"0", b"1", b"2"]


def test_a_store_of_rocketmq_is_served_with_the_lengths_of_its_files(tmp_path):
    root = extract("roll", tmp_path)
    with VirtualBroker.at(root) as broker:
        assert [message.queue_offset for message in broker.messages("TopicB")]
    for clock in ("real", "virtual"):
        with ServedBroker.at(root, clock=clock) as served:
            assert served.broker.store.max_offset("TopicB", 1) > 0
