"""``for`` and ``async for`` over a consumer: a message is done once the loop goes on to the next one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seglog import AsyncLitePullConsumer, AsyncProducer, Broker, ConsumeFrom, LitePullConsumer, Producer
from seglog.errors import ConsumerError
from seglog.testing import VirtualBroker
from tests.support.listening import BrokerServer
from tests.support.machine.patience import join_thread, patience_s, wait_for_event, wait_until_in_loop


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[VirtualBroker]:
    with VirtualBroker.at(tmp_path / "s") as opened:
        for number in range(6):
            opened.producer().send("T", b"%d" % number, queue_id=0)
        yield opened


def committed(broker: Broker, group: str = "g") -> int:
    return broker.offsets.query(group, "T", 0) or 0


def test_each_message_is_done_once_the_loop_goes_on_to_the_next(broker):
    with LitePullConsumer(broker.link(), "g", "T") as consumer:
        for at, message in enumerate(consumer):
            assert (message.queue_offset, message.body) == (at, b"%d" % at)
            broker.advance("10s")
            assert committed(broker) == at
            assert consumer.position(consumer.assignment[0]) == at + 1
        assert consumer.counts.delivered == 6
    assert committed(broker) == 6, "the loop went on from the last one, and ended as no time passes"


def test_the_message_at_which_a_loop_is_left_is_not_committed_and_comes_first_again(broker):
    with LitePullConsumer(broker.link(), "g", "T") as consumer:
        for message in consumer:
            if message.queue_offset == 2:
                break
        broker.advance("10s")
        assert committed(broker) == 2
        assert [message.queue_offset for message in consumer] == [2, 3, 4, 5]
    with pytest.raises(KeyError), LitePullConsumer(broker.link(), "h", "T") as consumer:
        fail_at_the_fourth(consumer)
    assert committed(broker, "h") == 3
    with LitePullConsumer(broker.link(), "h", "T") as consumer:
        assert next(consumer).queue_offset == 3
        assert [message.queue_offset for message in consumer.poll()] == [3, 4, 5], "a poll leaves the loop"


def test_a_loop_that_is_left_at_a_message_begins_there_however_many_queues_there_are(broker):
    for queue_id in (1, 2, 3):
        broker.producer().send("T", b"x", queue_id=queue_id)
    with LitePullConsumer(broker.link(), "g", "T") as consumer:
        places = set()
        for _ in range(5):
            for message in consumer:
                places.add((message.queue_id, message.queue_offset))
                break
        assert len(places) == 1
        first = next(iter(consumer.poll(count=1)))
        assert {(first.queue_id, first.queue_offset)} == places
        assert len(list(consumer)) == 8, "those that are left, once each"


def fail_at_the_fourth(consumer: LitePullConsumer) -> None:
    for message in consumer:
        if message.queue_offset == 3:
            raise KeyError(message.queue_offset)


def test_a_commit_in_a_loop_is_of_the_message_that_it_is_at_and_not_of_those_ahead(broker):
    with LitePullConsumer(broker.link(), "g", "T", auto_commit=False) as consumer:
        for message in consumer:
            if message.queue_offset == 3:
                consumer.commit()
                break
        assert committed(broker) == 4
    assert committed(broker) == 4


def test_a_seek_in_a_loop_goes_on_there(broker):
    seen = []
    with LitePullConsumer(broker.link(), "g", "T") as consumer:
        for message in consumer:
            seen.append(message.queue_offset)
            if len(seen) == 3:
                consumer.seek(consumer.assignment[0], "begin")
            if len(seen) == 5:
                consumer.pause(consumer.assignment)
    assert seen == [0, 1, 2, 0, 1]


@pytest.fixture(params=["in process", "over a socket"])
def place(request: Any, tmp_path: Path):
    """A broker on real time, and what leads to it."""
    if request.param == "in process":
        with Broker.open(tmp_path / "s") as broker:
            yield broker, broker
    else:
        with BrokerServer(tmp_path / "s") as server:
            yield server.broker, server.address


def test_a_loop_waits_for_messages_and_ends_when_another_thread_closes_the_consumer(place):
    broker, target = place
    seen: list[bytes] = []
    has_come = threading.Event()
    consumer = LitePullConsumer(target, "g", "T", consume_from=ConsumeFrom.FIRST)

    def loop() -> None:
        for message in consumer:
            seen.append(message.body)
            has_come.set()

    with Producer(broker) as producer:
        producer.send("T", b"first")
        thread = threading.Thread(target=loop)
        thread.start()
        wait_for_event(has_come, idle_s=30)
        has_come.clear()
        with pytest.raises(ConsumerError, match="another thread or task"):
            consumer.poll()
        producer.send("T", b"second")
        wait_for_event(has_come, idle_s=30)
    consumer.close()
    join_thread(thread, idle_s=30)
    assert seen == [b"first", b"second"]


def test_an_async_loop_does_the_same(place):
    broker, target = place

    async def run() -> list[bytes]:
        seen: list[bytes] = []
        async with AsyncLitePullConsumer(target, "g", "T", consume_from=ConsumeFrom.FIRST) as consumer:

            async def loop() -> None:
                async for message in consumer:
                    seen.append(message.body)  # noqa: PERF401 - others look at it meanwhile

            task = asyncio.create_task(loop())
            async with AsyncProducer(broker) as producer:
                for number in range(50):
                    await producer.send("T", b"%d" % number)
            await wait_until_in_loop(lambda: len(seen) >= 50)
            await consumer.close()
            await task
        return seen

    assert sorted(asyncio.run(run())) == sorted(b"%d" % number for number in range(50))
    assert sum(broker.offsets.query("g", "T", queue_id) or 0 for queue_id in range(4)) >= 46


def test_a_poll_returns_nothing_once_its_time_is_over(place):
    _broker, target = place
    with LitePullConsumer(target, "g", "T", consume_from=ConsumeFrom.FIRST) as consumer:
        began = time.monotonic()
        assert consumer.poll(0.05) == []
        assert consumer.poll(0) == []
        assert 0.05 <= time.monotonic() - began < patience_s(30)
