"""Listeners that are awaited: tasks on real time, stepped on virtual time, so many at a time as is set."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from seglog import sleep_ms
from seglog.broker.broker import Broker
from seglog.clock import VirtualClock
from seglog.consumer.listener import Consume
from seglog.consumer.orderly import AsyncOrderlyConsumer, OrderlyConsumer
from seglog.consumer.push import AsyncPushConsumer, PushConsumer
from seglog.errors import InvalidArgumentError
from seglog.producer.producer import AsyncProducer, Producer
from seglog.remoting.later import Deferred
from seglog.storage.format.record.message import Message
from tests.support.brokers import open_broker
from tests.support.consumers import Send, until_idle, until_idle_in_loop
from tests.support.machine.patience import in_time, patience_s, wait_for_event, wait_until, wait_until_in_loop

BOTH = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])


# On virtual time


@BOTH
def test_it_sleeps_on_virtual_time(broker: Broker, send: Send, clock: VirtualClock, kind: Any):
    moments: list[tuple[str, int]] = []
    begin_ms = clock.now_ms()

    async def listener(message: Message) -> None:
        moments.append(("in", clock.now_ms() - begin_ms))
        await sleep_ms(90_000)
        moments.append(("out", clock.now_ms() - begin_ms))

    send(1)
    with kind(broker, "g", "T", listener) as consumer:
        consumer.start()
        broker.advance(89_999)
        assert moments == [("in", 0)]
        broker.advance(1)
        assert moments == [("in", 0), ("out", 90_000)]
        consumer.run_until_idle()
        assert broker.offsets.query("g", "T", 0) == 1


def test_s2_06_in_order_the_next_of_a_queue_waits_and_other_queues_do_not(broker: Broker, send: Send):
    seen: list[tuple[str, int, int]] = []

    async def listener(message: Message) -> None:
        seen.append(("in", message.queue_id, message.queue_offset))
        await sleep_ms(1_000)
        seen.append(("out", message.queue_id, message.queue_offset))

    send(2, queue_id=0)
    send(2, queue_id=1)
    with OrderlyConsumer(broker, "g", "T", listener) as consumer:
        consumer.start()
        broker.advance(5_000)
    for queue_id in (0, 1):
        steps = [(step, offset) for step, queue, offset in seen if queue == queue_id]
        assert steps == [("in", 0), ("out", 0), ("in", 1), ("out", 1)]
    assert [step for step, _queue, _offset in seen[:3]] == ["in", "in", "out"]


def test_so_many_are_at_work_at_a_time_as_is_set(broker: Broker, send: Send):
    at_work, most = 0, 0

    async def listener(_message: Message) -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await sleep_ms(100)
        at_work -= 1

    send(40)
    with PushConsumer(broker, "g", "T", listener, threads=3) as consumer:
        consumer.start()
        broker.advance(30_000)
        assert (consumer.counts.delivered, most, at_work) == (40, 3, 0)


@BOTH
def test_it_awaits_a_result_that_comes_from_elsewhere(broker: Broker, send: Send, kind: Any):
    coming: Deferred[str] = Deferred()
    seen: list[str] = []

    async def listener(_message: Message) -> None:
        seen.append(await coming)

    send(1)
    with kind(broker, "g", "T", listener) as consumer:
        consumer.start()
        broker.advance(60_000)
        assert seen == []
        coming.resolve("here")
        broker.advance(0)
        assert seen == ["here"]


@BOTH
def test_it_sends_while_it_consumes(broker: Broker, send: Send, kind: Any):
    producer = AsyncProducer(broker, "shop")

    async def listener(message: Message) -> None:
        await producer.send("U", message.body, queue_id=0)

    send(20)
    with kind(broker, "g", "T", listener) as consumer:
        assert consumer.run_until_idle() == 20
    assert sorted(bytes(each.body) for each in broker.store.get("U", 0, 0, 32).messages) == sorted(
        b"%d" % number for number in range(20)
    )


@BOTH
@pytest.mark.parametrize("delay_s", [0, 1])
def test_what_waits_for_an_event_loop_is_an_error_that_says_so(
    broker: Broker, send: Send, caplog: pytest.LogCaptureFixture, kind: Any, delay_s: int
):
    async def listener(_message: Message) -> None:
        await asyncio.sleep(delay_s)

    send(1)
    with kind(broker, "g", "T", listener) as consumer:
        consumer.run_until_idle()
        assert consumer.counts.failed == 1
    assert "on virtual time" in caplog.text
    assert "sleep_ms" in caplog.text or "NoneType" in caplog.text


def test_inside_a_loop_that_knows_nothing_of_virtual_time_that_holds_too(broker: Broker, send: Send):
    seen: list[str] = []

    async def listener(message: Message) -> None:
        if message.queue_offset == 0:
            await sleep_ms(500)
            seen.append("slept")
            return
        try:
            await asyncio.sleep(0.01)
        except InvalidArgumentError as error:
            seen.append(str(error))

    async def scene() -> None:
        async with AsyncOrderlyConsumer(broker, "g", "T", listener) as consumer:
            await consumer.start()
            broker.advance(499)
            assert seen == []
            broker.advance(1)
            assert seen[0] == "slept"
            assert "Future on virtual time" in seen[1]
            assert await consumer.run_until_idle() == 0

    send(2)
    asyncio.run(scene())


@BOTH
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, BaseException])
def test_what_stops_a_program_comes_to_who_moves_time(broker: Broker, send: Send, kind: Any, error: Any):
    stops = [error]

    async def listener(_message: Message) -> None:
        await sleep_ms(10)
        if stops:
            raise stops.pop()

    send(1)
    consumer = kind(broker, "g", "T", listener)
    consumer.start()
    with pytest.raises(error):
        broker.advance(10)
    broker.advance("1m")
    assert consumer.counts.failed == 1
    assert consumer.counts.delivered + consumer.counts.given_up >= 1
    consumer.close()


@BOTH
def test_a_failure_brings_the_message_again(broker: Broker, send: Send, kind: Any):
    times: list[int] = []

    async def listener(message: Message) -> Consume | None:
        times.append(message.reconsume_times)
        await sleep_ms(5)
        if len(times) == 1:
            raise RuntimeError("the application fails")
        return Consume.RECONSUME_LATER if len(times) == 2 else None

    send(1)
    with kind(broker, "g", "T", listener) as consumer:
        consumer.start()
        broker.advance("2m")
    assert times == [0, 1, 2]


@BOTH
def test_a_close_names_the_listener_that_waits_for_time(broker: Broker, send: Send, kind: Any):
    ends: list[str] = []

    async def listener(_message: Message) -> None:
        try:
            await sleep_ms(60_000)
        finally:
            ends.append("over")

    at_work = "0 to 0" if kind is OrderlyConsumer else "0 to 2"
    send(3)
    consumer = kind(broker, "g", "T", listener)
    consumer.start()
    broker.advance(0)
    with pytest.raises(TimeoutError, match=rf"advance.*g: T, queue 0 of broker-a, offsets {at_work}"):
        consumer.close()
    assert "over" in ends
    seen: list[int] = []
    with kind(broker, "g", "T", lambda message: seen.append(message.queue_offset)) as heir:
        heir.start()
        broker.advance("1m")
    assert sorted(set(seen)) == [0, 1, 2]


def test_the_same_calls_have_the_same_effects_in_the_same_order(tmp_path: Path):
    def life(folder: Path) -> list[tuple[str, int, int, int]]:
        clock = VirtualClock()
        seen: list[tuple[str, int, int, int]] = []

        async def listener(message: Message) -> None:
            for step in ("one", "two", "three"):
                seen.append((step, clock.now_ms(), message.queue_id, message.queue_offset))
                await sleep_ms(7 * (message.queue_id + 1))

        with open_broker(folder, clock) as broker:
            producer = Producer(broker, first_turn=0)
            for number in range(40):
                producer.send("T", b"%d" % number)
            with PushConsumer(broker, "g", "T", listener, threads=5) as consumer:
                consumer.start()
                broker.advance(10_000)
        return seen

    first, second = life(tmp_path / "a"), life(tmp_path / "b")
    assert len(first) == 120
    assert first == second


# On real time, in the thread that clients share


@pytest.fixture
def real_broker(tmp_path: Path):
    with Broker.open(tmp_path / "real") as opened:
        yield opened


def send_to(broker: Broker, count: int, **where: Any) -> None:
    with Producer(broker) as producer:
        for number in range(count):
            producer.send("T", b"%d" % number, **where)


@BOTH
def test_a_plain_consumer_runs_it_in_the_loop_that_clients_share(real_broker: Broker, kind: Any):
    threads: set[str] = set()

    async def listener(_message: Message) -> None:
        await sleep_ms(1)
        await asyncio.sleep(0.001)
        threads.add(threading.current_thread().name)

    send_to(real_broker, 50)
    before = set(threading.enumerate())  # listeners of other tests may hang in threads yet
    with kind(real_broker, "g", "T", listener) as consumer:
        assert until_idle(consumer) == 50
        assert not any(one.name.startswith("seglog-g") for one in set(threading.enumerate()) - before)
    assert threads == {"seglog-client"}


def test_many_wait_at_a_time_without_a_thread(real_broker: Broker):
    at_work, most, are_many = 0, 0, asyncio.Event()

    async def listener(_message: Message) -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        if most == 50:
            are_many.set()
        await in_time(are_many.wait(), "50 listeners at a time")
        at_work -= 1

    send_to(real_broker, 200)
    with PushConsumer(real_broker, "g", "T", listener, threads=50) as consumer:
        before = set(threading.enumerate())
        assert until_idle(consumer) == 200
        started = {thread.name for thread in set(threading.enumerate()) - before}
    assert most == 50
    assert not any("seglog-g" in name for name in started)


@BOTH
@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, BaseException, asyncio.CancelledError])
def test_an_exception_that_would_end_a_loop_is_a_failure(real_broker: Broker, kind: Any, error: Any):
    seen: list[int] = []

    async def listener(message: Message) -> None:
        await asyncio.sleep(0)
        seen.append(message.queue_offset)
        if len(seen) == 1:
            raise error("a listener")

    send_to(real_broker, 3, sharding_key="k")
    with kind(real_broker, "g", "T", listener, suspend_ms=20) as consumer:
        consumer.start()
        wait_until(lambda: consumer.counts.failed and {1, 2} <= set(seen), idle_s=30)
        assert consumer.counts.failed == 1
        if kind is OrderlyConsumer:
            assert seen == [0, 0, 1, 2]


@pytest.mark.parametrize("kind", [AsyncOrderlyConsumer, AsyncPushConsumer])
def test_a_listener_that_is_cancelled_with_its_loop_is_no_alarm(
    real_broker: Broker, kind: Any, caplog: pytest.LogCaptureFixture
):
    async def scene() -> None:
        has_one = asyncio.Event()

        async def listener(_message: Message) -> None:
            has_one.set()
            await asyncio.sleep(3_600)

        consumer = kind(real_broker, "g", "T", listener, suspend_ms=30_000)
        await consumer.start()
        await in_time(has_one.wait())
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()  # as asyncio.run() does at its end
        await wait_until_in_loop(lambda: consumer.counts.failed)
        await consumer.close(patience_s(30))

    send_to(real_broker, 1, queue_id=0)
    asyncio.run(scene())
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR] == []


@BOTH
def test_a_close_in_time_names_what_hangs_and_cancels_it(real_broker: Broker, kind: Any):
    entered, ended = threading.Event(), threading.Event()

    async def listener(_message: Message) -> None:
        entered.set()
        try:
            await asyncio.sleep(3_600)
        finally:
            ended.set()

    send_to(real_broker, 1, queue_id=0)
    consumer = kind(real_broker, "g", "T", listener)
    consumer.start()
    wait_for_event(entered, idle_s=30)
    with pytest.raises(TimeoutError, match="at work still: g: T, queue 0 of broker-a, offsets 0 to 0"):
        consumer.close(0.05)
    wait_for_event(ended, idle_s=30)
    seen: list[int] = []
    with kind(real_broker, "g", "T", lambda message: seen.append(message.queue_offset)) as heir:
        while not seen:
            until_idle(heir)
    assert seen == [0]


# On real time, in the application's loop


def test_in_a_loop_it_is_a_task_there_and_a_plain_one_has_threads(real_broker: Broker):
    ran_by: dict[str, set[str]] = {"plain": set(), "awaited": set()}

    def plain(_message: Message) -> None:
        ran_by["plain"].add(threading.current_thread().name)

    async def awaited(_message: Message) -> None:
        assert asyncio.current_task() is not None
        ran_by["awaited"].add(threading.current_thread().name)

    async def scene() -> None:
        async with (
            AsyncPushConsumer(real_broker, "plain", "T", plain) as one,
            AsyncPushConsumer(real_broker, "awaited", "T", awaited) as other,
        ):
            assert await until_idle_in_loop(one) == 20
            assert await until_idle_in_loop(other) == 20

    send_to(real_broker, 20)
    asyncio.run(scene())
    assert ran_by["awaited"] == {threading.current_thread().name}
    assert ran_by["plain"]
    assert all(name.startswith("seglog-plain") for name in ran_by["plain"])


def test_an_object_and_a_part_of_a_function_may_be_awaited_too(real_broker: Broker):
    import functools

    seen: list[str] = []

    class Handler:
        async def __call__(self, _message: Message) -> None:
            await asyncio.sleep(0)
            seen.append("object")

    async def handle(name: str, _message: Message) -> None:
        await asyncio.sleep(0)
        seen.append(name)

    send_to(real_broker, 1)
    for group, listener in (("a", Handler()), ("b", functools.partial(handle, "part"))):
        with OrderlyConsumer(real_broker, group, "T", listener) as consumer:
            assert until_idle(consumer) == 1
    assert seen == ["object", "part"]


@pytest.mark.parametrize("delay_ms", [-1, float("nan"), "1s", None])
def test_a_sleep_takes_a_number(delay_ms: Any):
    with pytest.raises(InvalidArgumentError, match="delay_ms"):
        asyncio.run(sleep_ms(delay_ms))
