"""A reader waits for a queue to grow, in the same process, beside a writer, and no longer than it wants."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from seglog.clock import SystemClock, VirtualClock
from tests.support.crash.child import Child
from tests.support.machine.patience import patience_s, wait_until
from tests.support.material.stores import SMALL, OpenStore, writer_of

BACKGROUND_THREADS = 4


def result_of(future):
    wait_until(future.done)
    return future.result()


@pytest.fixture
def threads():
    with ThreadPoolExecutor(8) as pool:
        yield pool


def test_message_that_is_there_needs_no_waiting(open_store: OpenStore):
    store = open_store()
    store.put("T", b"x")
    assert store.wait_for("T", 0, 0, 0) is True


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_no_time_to_wait_is_an_answer_at_once(open_store: OpenStore, timeout_ms):
    store = open_store()
    assert store.wait_for("T", 0, 0, timeout_ms) is False


def test_put_of_another_thread_ends_the_wait(open_store: OpenStore, clock: VirtualClock, threads):
    store = open_store()
    waiting = threads.submit(store.wait_for, "T", 0, 0, 60_000)
    wait_until(lambda: writer_of(store).waiters.waiting)
    store.put("T", b"x")
    assert result_of(waiting) is True


def test_put_to_another_queue_does_not_end_the_wait(open_store: OpenStore, clock: VirtualClock, threads):
    store = open_store()
    waiting = threads.submit(store.wait_for, "T", 0, 0, 60_000)
    wait_until(lambda: sum(clock._waiting.values()) == BACKGROUND_THREADS + 1)
    store.put("T", b"x", queue_id=1)
    store.put("U", b"x")
    clock.advance(60_000)
    assert result_of(waiting) is False


def test_wait_for_a_later_offset_outlasts_earlier_messages(
    open_store: OpenStore, clock: VirtualClock, threads
):
    store = open_store()
    waiting = threads.submit(store.wait_for, "T", 0, 2, 60_000)
    wait_until(lambda: writer_of(store).waiters.waiting)
    store.put("T", b"0")
    store.put_batch("T", [b"1", b"2"])
    assert result_of(waiting) is True


def test_wait_ends_when_virtual_time_is_over_and_not_before(
    open_store: OpenStore, clock: VirtualClock, threads
):
    store = open_store()
    waiting = threads.submit(store.wait_for, "T", 0, 0, 60_000)
    wait_until(lambda: sum(clock._waiting.values()) == BACKGROUND_THREADS + 1)
    clock.advance(59_999)
    time.sleep(0.02)
    assert not waiting.done()
    clock.advance(1)
    assert result_of(waiting) is False


def test_wait_ends_when_real_time_is_over(open_store: OpenStore):
    store = open_store(clock=SystemClock())
    begun = time.monotonic()
    assert store.wait_for("T", 0, 0, 30) is False
    assert 0.03 <= time.monotonic() - begun < patience_s(20)


def test_many_waiters_of_many_queues_all_wake(open_store: OpenStore, threads):
    store = open_store()
    waiting = [threads.submit(store.wait_for, "T", number % 3, 0, 60_000) for number in range(8)]
    wait_until(lambda: sum(map(len, writer_of(store).waiters.waiting.values())) == 8)
    for queue_id in range(3):
        store.put("T", b"x", queue_id=queue_id)
    assert [result_of(future) for future in waiting] == [True] * 8
    assert writer_of(store).waiters.waiting == {}


def test_closing_the_store_ends_the_wait_without_a_message(open_store: OpenStore, threads):
    store = open_store()
    waiting = threads.submit(store.wait_for, "T", 0, 0, 60_000)
    wait_until(lambda: writer_of(store).waiters.waiting)
    store.close()
    assert result_of(waiting) is False


def test_closing_a_reader_ends_its_wait(open_store: OpenStore, clock: VirtualClock, threads):
    open_store().close()
    reader = open_store(read_only=True)
    waiting = threads.submit(reader.wait_for, "T", 0, 0, 60_000)
    wait_until(lambda: sum(clock._waiting.values()) == 1)
    reader.close()
    assert result_of(waiting) is False


def test_producers_and_waiting_consumers_meet_for_every_message(open_store: OpenStore, threads):
    store = open_store(clock=SystemClock())
    seen: list[int] = []

    def consume() -> None:
        at = 0
        while at < 300:
            if store.wait_for("T", 0, at, 1000):
                result = store.get("T", 0, at)
                seen.extend(message.queue_offset for message in result)
                at = result.next_offset

    def produce() -> None:
        for _ in range(100):
            store.put("T", b"x")

    consumer = threads.submit(consume)
    for producer in [threads.submit(produce) for _ in range(3)]:
        result_of(producer)
    result_of(consumer)
    assert seen == list(range(300))


def test_reader_beside_another_process_waits_for_its_message(tmp_path, open_store: OpenStore):
    with Child(tmp_path / "store", **SMALL) as writer:
        reader = open_store(read_only=True, clock=SystemClock())
        assert reader.wait_for("T", 0, 0, 30) is False
        timer = threading.Timer(0.05, lambda: writer.ask("put", topic="T"))
        timer.start()
        assert reader.wait_for("T", 0, 0, patience_s(20) * 1000) is True
        timer.join()
        assert reader.max_offset("T", 0) == 1
