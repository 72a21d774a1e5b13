"""A push consumer begins the messages of each queue in their order, however long the listener takes."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

from seglog import AsyncPushConsumer, Broker, ConsumeFrom, Producer, PushConsumer
from tests.support.faces import driven
from tests.support.machine.patience import patience_s, wait_until

COUNT = 300
QUEUES = 2


@pytest.fixture
def broker(tmp_path: Path):
    with Broker.open(tmp_path / "s", small=True) as opened:
        with Producer(opened) as producer:
            for queue_id in range(QUEUES):
                producer.send_batch("T", [b"x"] * COUNT, queue_id=queue_id)
        yield opened


def furthest(begun: list[int]) -> int:
    """Returns by how many places a message began too early or late at most."""
    return max(abs(place - offset) for place, offset in enumerate(begun))


@pytest.mark.parametrize("took_ms", [0, 1, 3])
@pytest.mark.parametrize("kind", [PushConsumer, AsyncPushConsumer])
def test_a_backlog_begins_in_the_order_of_each_queue(broker, kind, took_ms):
    begun: list[list[int]] = [[] for _ in range(QUEUES)]
    lock = threading.Lock()

    def plain(message) -> None:
        with lock:
            begun[message.queue_id].append(message.queue_offset)
        time.sleep(took_ms / 1000)

    async def awaited(message) -> None:
        begun[message.queue_id].append(message.queue_offset)
        await asyncio.sleep(took_ms / 1000)

    listener = plain if kind is PushConsumer else awaited
    with driven(kind, broker, "g", "T", listener, consume_from=ConsumeFrom.FIRST, threads=8) as consumer:
        assert consumer.run_until_idle(timeout_s=patience_s(120)) == COUNT * QUEUES
    for of_queue in begun:
        assert sorted(of_queue) == list(range(COUNT))
        # Threads that are given neighbours may begin in any order; tasks of a loop do not.
        assert furthest(of_queue) <= (8 if kind is PushConsumer else 0)


def test_a_listener_that_is_slow_now_and_then_keeps_no_later_message_waiting_behind_it(broker):
    """Of many that a quick listener was given, those behind a slow one go to other threads."""
    begun: list[int] = []
    is_slow = threading.Event()

    def listener(message) -> None:
        begun.append(message.queue_offset)
        if message.queue_offset == 150:
            wait_until(is_slow.is_set, "the others are begun", idle_s=60)

    with PushConsumer(broker, "g", "T", listener, consume_from=ConsumeFrom.FIRST, threads=4) as consumer:
        consumer.start()
        wait_until(lambda: len(begun) == COUNT * QUEUES, "all others are begun", idle_s=30)
        is_slow.set()
        consumer.run_until_idle(timeout_s=patience_s(60))
    assert len(begun) == COUNT * QUEUES
