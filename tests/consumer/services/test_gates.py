"""A queue in order is consumed by one thread, under its lock, and goes on when Java's client would."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from seglog import sleep_ms
from seglog.broker.broker import Broker
from seglog.client.connect import make_client
from seglog.clock import VirtualClock
from seglog.consumer.lease import WORK_MS
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.shares.sharing import MIN_SHARE_INTERVAL_MS
from seglog.producer.producer import Producer
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import expect_header
from seglog.remoting.headers import PullMessageHeader
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record.message import Message
from tests.support.consumers import NewConsumer, Send, until_idle
from tests.support.machine.patience import patience_s
from tests.support.recording import RecordingLink, recording

LOCK = RequestCode.LOCK_BATCH_MQ
QUEUE = MessageQueue("T", "broker-a", 0)


def owner(broker: Broker) -> str | None:
    return broker.locks.owner("g", QUEUE)


def test_s2_09_a_queue_is_taken_once_its_lock_is_got(
    broker: Broker, link: RecordingLink, send: Send, consume: NewConsumer
):
    send(1)
    link.refused = {LOCK}
    consumer, seen = consume(via=link)
    consumer.start()
    broker.advance(0)
    assert (seen, consumer.queues) == ([], ())
    broker.advance(MIN_SHARE_INTERVAL_MS - 1)
    link.refused = set()
    assert consumer.queues == ()
    broker.advance(1)
    assert (seen, QUEUE in consumer.queues) == ([(0, 0)], True), (
        "with the next round, and locked from then on"
    )
    assert owner(broker) == link.client_id


def test_s2_09_of_two_that_want_a_queue_one_gets_it(broker: Broker, link: RecordingLink, send: Send):
    """The other one asks again with each round until the first one gives it back."""
    send(1)
    first = OrderlyConsumer(link, "g", "T", lambda _message: None)
    first.start()
    broker.advance(0)
    with recording(broker, "127.0.0.1@1#other") as other_link:
        other_link.cut = {RequestCode.GET_CONSUMER_LIST_BY_GROUP}
        other = OrderlyConsumer(other_link, "g", "T", lambda _message: None)
        other.start()
        broker.advance("3s")
        assert sum(queue.topic == "T" for queue in first.queues) == 2
        assert other.queues == ()
        other_link.cut = set()
        broker.advance("2s")
        mine, its = set(first.queues), set(other.queues)
        assert not mine & its
        assert {queue.queue_id for queue in mine | its if queue.topic == "T"} == {0, 1, 2, 3}
        other.close()
    first.close()


def test_s2_11_a_pull_that_waits_for_the_lock_looks_every_second(
    broker: Broker, link: RecordingLink, send: Send
):
    """By a lease that is renewed without a word to what pulls."""
    consumer = OrderlyConsumer(link, "g", "T", lambda _message: None)
    send(1)
    consumer.start()
    broker.advance("500ms")
    link.cut = {LOCK}
    broker.advance(WORK_MS - 500 + 1)
    send(1)  # which ends the pull that is held; the next one waits, from 30.001 s on
    broker.advance("2s")
    held = consumer._member.held(QUEUE)
    link.asked.clear()
    broker.advance("500ms")
    held.lease.renew(broker.clock.monotonic_ms())
    broker.advance("499ms")
    asked = [expect_header(one, PullMessageHeader) for one in link.pulls]
    assert [one for one in asked if (one.topic, one.queue_id) == ("T", 0)] == []
    broker.advance(1)
    asked = [expect_header(one, PullMessageHeader) for one in link.pulls]
    assert [one.queue_offset for one in asked if (one.topic, one.queue_id) == ("T", 0)] == [2]
    link.cut = set()
    broker.advance("1m")
    consumer.close()


def test_s2_13_while_a_listener_is_at_work_pulls_send_no_other_worker(broker: Broker, send: Send):
    """What comes meanwhile waits in the queue, from where the worker takes it."""
    steps: list[tuple[str, int]] = []

    async def listener(message: Message) -> None:
        steps.append(("in", message.queue_offset))
        await sleep_ms(1_000)
        steps.append(("out", message.queue_offset))

    send(1)
    with OrderlyConsumer(broker, "g", "T", listener, pull_count=1, threads=20) as consumer:
        consumer.start()
        broker.advance(0)
        for _ in range(5):
            send(1)
            broker.advance(10)
        assert steps == [("in", 0)]
        broker.advance("10s")
    assert steps == [step for offset in range(6) for step in (("in", offset), ("out", offset))]


def test_s2_14_of_twenty_threads_one_is_at_a_queue_at_a_time(tmp_path: Path):
    lock = threading.Lock()
    at_work, most, most_in_all = dict.fromkeys(range(4), 0), 0, 0
    meeting = threading.Barrier(4)

    def listener(message: Message) -> None:
        nonlocal most, most_in_all
        with lock:
            at_work[message.queue_id] += 1
            most = max(most, at_work[message.queue_id])
            most_in_all = max(most_in_all, sum(at_work.values()))
        if message.queue_offset == 0:
            meeting.wait(patience_s(30))  # the four queues are worked at side by side
        time.sleep(0.0002)
        with lock:
            at_work[message.queue_id] -= 1

    with Broker.open(tmp_path / "s") as broker, Producer(broker) as producer:
        for queue_id in range(4):
            producer.send_batch("T", [b"x"] * 100, queue_id=queue_id)
        with OrderlyConsumer(broker, "g", "T", listener, threads=20, pull_count=7) as consumer:
            assert until_idle(consumer, idle_s=60) == 400
    assert (most, most_in_all) == (1, 4)


def test_s2_15_without_a_live_lock_nothing_is_consumed_though_it_was_pulled(
    broker: Broker, link: RecordingLink, send: Send
):
    seen: list[int] = []

    async def listener(message: Message) -> None:
        seen.append(message.queue_offset)
        await sleep_ms(20_000)

    send(5)
    consumer = OrderlyConsumer(link, "g", "T", listener)
    consumer.start()
    broker.advance("1500ms")  # the locks were renewed after a second
    link.cut = {LOCK}
    broker.advance(WORK_MS + 30_000)
    assert seen == [0, 1], "the third would begin at 40 s, and the lock was over at 31 s"
    link.cut = set()
    broker.advance("4s")
    assert seen[:3] == [0, 1, 2]
    consumer.commit()
    assert broker.offsets.query("g", "T", 0) == 2


def test_s2_16_after_a_minute_without_a_pause_a_queue_pauses_for_10_ms(
    broker: Broker, send: Send, clock: VirtualClock
):
    moments: list[int] = []
    began_ms = clock.now_ms()

    async def listener(_message: Message) -> None:
        moments.append(clock.now_ms() - began_ms)
        await sleep_ms(700)

    send(200)
    with OrderlyConsumer(broker, "g", "T", listener) as consumer:
        consumer.start()
        broker.advance("130s")
        waits = [later - earlier for earlier, later in pairwise(moments)]
        pauses = [number for number, wait_ms in enumerate(waits) if wait_ms != 700]
        assert {waits[number] for number in pauses} == {710}
        assert [moments[number + 1] for number in pauses] == [60_210, 120_420]
        broker.advance("30s")


def test_s2_16_a_lock_that_ends_while_a_queue_is_consumed_is_asked_for_in_10_ms(
    broker: Broker, link: RecordingLink, send: Send
):
    moments: list[float] = []

    async def listener(_message: Message) -> None:
        moments.append((broker.clock.now_ms() - began_ms) / 1_000)
        await sleep_ms(8_000)

    began_ms = broker.clock.now_ms()
    send(9)
    consumer = OrderlyConsumer(link, "g", "T", listener)
    consumer.start()
    broker.advance("2s")
    link.cut = {LOCK}
    broker.advance("29900ms")
    assert moments == [0, 8, 16, 24]
    link.cut = set()
    link.asked.clear()
    broker.advance("500ms")
    assert link.moments(LOCK) == [32.01], "at 32 s a listener ended, behind the end of the lock at 31 s"
    assert moments == [0, 8, 16, 24, 32.02], "and 10 ms later it goes on"
    broker.advance("1m")
    consumer.close()


def test_s2_16_a_queue_that_is_dropped_is_left_after_the_message_at_work(broker: Broker, send: Send):
    seen: list[int] = []

    async def listener(message: Message) -> None:
        seen.append(message.queue_offset)
        await sleep_ms(1_000)

    send(5)
    consumer = OrderlyConsumer(broker, "g", "T", listener)
    consumer.start()
    broker.advance(500)
    consumer._member._begin_to_leave()
    broker.advance("5s")
    assert seen == [0]
    assert broker.offsets.query("g", "T", 0) == 1


def test_s2_19_a_slow_listener_holds_its_queue_until_it_ends_and_then_it_is_handed_over_at_once(
    broker: Broker, link: RecordingLink, send: Send
):
    steps: list[tuple[str, str, int]] = []

    def listener_of(name: str) -> Any:
        async def listener(message: Message) -> None:
            steps.append((name, "in", message.queue_offset))
            await sleep_ms(10_000)
            steps.append((name, "out", message.queue_offset))

        return listener

    send(2)
    first = OrderlyConsumer(make_client(broker, client_id="z"), "g", "T", listener_of("z"))
    first.start()
    broker.advance("2s")
    others = [
        OrderlyConsumer(make_client(broker, client_id=name), "g", "T", listener_of(name)) for name in "abcd"
    ]
    for other in others:
        other.start()
    broker.advance("7s")
    assert steps == [("z", "in", 0)]
    assert owner(broker) == "z"
    broker.advance("3s")
    assert steps[:3] == [("z", "in", 0), ("z", "out", 0), ("a", "in", 1)]
    assert broker.offsets.query("g", "T", 0) == 1
    broker.advance("1m")
    for consumer in (first, *others):
        consumer.close()


@pytest.mark.parametrize("takes_ms", [100, 499, 501, 3_000])
def test_s2_19_what_a_listener_has_is_waited_for_and_what_it_has_not_is_the_next_owners(
    broker: Broker, link: RecordingLink, send: Send, takes_ms: int
):
    """Java tries for 500 ms, and then in each round; here the end of the listener gives the queue back.

    That it is dropped is seen before each message, so the one behind goes to the next owner.
    """
    moments: list[tuple[str, int, int]] = []
    began_ms = broker.clock.now_ms()

    def listener_of(name: str) -> Any:
        async def listener(message: Message) -> None:
            await sleep_ms(takes_ms)
            moments.append((name, message.queue_offset, broker.clock.now_ms() - began_ms))

        return listener

    first = OrderlyConsumer(make_client(link), "g", "T", listener_of("first"))
    send(3, queue_id=3)
    first.start()
    broker.advance(0)
    queue = MessageQueue("T", "broker-a", 3)
    heir = OrderlyConsumer(make_client(broker, client_id="z"), "g", "T", listener_of("z"))
    link.asked.clear()
    began_ms = broker.clock.now_ms()
    # As a round does that finds it to be another's share.
    first._member._held.begin_to_let_go(first._member.held(queue))
    heir.start()
    broker.advance(takes_ms - 1)
    assert (moments, broker.locks.owner("g", queue)) == ([], link.client_id), "it is waited for"

    def unlocked() -> list[float]:
        return [
            moment * 1_000
            for moment, one in link.asked
            if one.code == RequestCode.UNLOCK_BATCH_MQ and queue in getattr(one.body, "queues", ())
        ]

    assert unlocked() == []
    broker.advance(1)
    assert moments == [("first", 0, takes_ms)]
    assert unlocked() == [takes_ms], "at once"
    broker.advance("30s")
    assert [(name, offset) for name, offset, _moment in moments] == [("first", 0), ("z", 1), ("z", 2)]
    for consumer in (first, heir):
        consumer.close()


def test_s2_19_20_s_after_its_last_renewal_a_dropped_queue_is_handed_over_in_any_case(
    broker: Broker, send: Send, caplog: pytest.LogCaptureFixture
):
    seen: list[tuple[str, int]] = []

    async def very_slow(message: Message) -> None:
        seen.append(("z", message.queue_offset))
        await sleep_ms(100_000)

    send(2)
    first = OrderlyConsumer(make_client(broker, client_id="z"), "g", "T", very_slow)
    first.start()
    broker.advance("2s")
    others = [
        OrderlyConsumer(
            make_client(broker, client_id=name),
            "g",
            "T",
            lambda message: seen.append(("a", message.queue_offset)),
        )
        for name in "abcd"
    ]
    for other in others:
        other.start()
    broker.advance("18s")
    assert (seen, owner(broker)) == ([("z", 0)], "z")
    broker.advance("4s")
    assert seen == [("z", 0), ("a", 0), ("a", 1)], "its lock was renewed at 1 s"
    assert "gives back the lock of queue 0 of T at broker-a" in caplog.text
    for other in others:
        other.commit()
    assert broker.offsets.query("g", "T", 0) == 2
    broker.advance("100s")
    for consumer in (first, *others):
        consumer.close()
    assert broker.offsets.query("g", "T", 0) == 2, "what came back late is not committed"


@pytest.mark.parametrize("error", [RuntimeError, BaseException])
def test_s2_22_a_queue_is_free_again_whatever_the_listener_raises(broker: Broker, send: Send, error: Any):
    def listener(_message: Message) -> None:
        raise error("the application fails")

    send(1)
    first = OrderlyConsumer(broker, "g", "T", listener)
    first.start()
    if error is RuntimeError:
        broker.advance(0)
    else:
        with pytest.raises(BaseException, match="the application fails"):
            broker.advance(0)
    assert first.counts.failed == 1
    first.close()
    seen: list[int] = []
    with OrderlyConsumer(broker, "g", "T", lambda message: seen.append(message.queue_offset)) as heir:
        heir.run_until_idle()
    assert seen == [0]
