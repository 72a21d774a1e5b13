"""Tasks put, wait for the disk together, and are told the truth, for any fate of disk, task or store."""

from __future__ import annotations

import asyncio
import errno
import gc
import threading

import pytest
from typing_extensions import override

from seglog.errors import ClosedError, FullError, InvalidNameError, ReadOnlyError, StoreFailedError
from seglog.storage.files.files import RealFiles
from seglog.storage.files.real_file import RealFile
from seglog.storage.store import MessageStore
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import NewMessage, RawMessage
from tests.support.crash.failing_files import FailingFiles, Fault
from tests.support.machine.patience import in_time, join_thread, wait_for_event, wait_until
from tests.support.material.stores import SMALL, OpenStore, new_clock, read_all, writer_of

SYNC = Durability.SYNC


class Gate:
    """Syncs of the log that can be held back, counted."""

    def __init__(self):
        self.open = threading.Event()
        self.open.set()
        self.count = 0
        self.entered = threading.Event()


class GatedFile(RealFile):
    __slots__ = ("gate",)
    gate: Gate

    @override
    def sync(self):
        if "commitlog" in str(self._path):
            self.gate.count += 1
            self.gate.entered.set()
            wait_for_event(self.gate.open)
        super().sync()


class GatedFiles(RealFiles):
    """The real files, but for a gate before each sync of the log."""

    def __init__(self, gate):
        self._gate = gate

    @override
    def open(self, path, *, writable):
        file = GatedFile(path, 2 if writable else 0)
        file.gate = self._gate
        return file


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture
def store(tmp_path, gate):
    with MessageStore.open(
        tmp_path / "store",
        files=GatedFiles(gate),
        segment_size_bytes=1 << 20,
        clock=new_clock(),
        durability=SYNC,
    ) as store:
        store.put("T", b"first")
        yield store


def hold(gate):
    gate.entered.clear()
    gate.open.clear()


async def entered(gate):
    await asyncio.to_thread(wait_for_event, gate.entered)


# ------------------------------------------------------------------------------------- what is stored


def test_each_call_stores_what_its_sync_form_stores(tmp_path):
    new = [b"one", NewMessage(b"two", tags="t", keys="k", properties={"p": "q"})]
    raw = [RawMessage(b"three", b"KEYS\x01k\x02", 7)]

    def store_at(name):
        return MessageStore.open(tmp_path / name, clock=new_clock(), **SMALL)

    with store_at("sync") as store:
        expected = [
            store.put("T", b"zero", queue_id=1, tags="t", keys=["a", "b"], properties={"x": "y"}, flag=3),
            store.append("T", 1, b"raw", b"KEYS\x01z\x02", 5, reconsume_times=2, born_timestamp_ms=9),
            store.put_batch("T", new),
            store.append_batch("T", 1, raw, reconsume_times=4),
        ]
        stored = [read_all(store, "T", queue_id) for queue_id in (0, 1)]

    async def put_all(store):
        return [
            await store.put_async(
                "T", b"zero", queue_id=1, tags="t", keys=["a", "b"], properties={"x": "y"}, flag=3
            ),
            await store.append_async(
                "T", 1, b"raw", b"KEYS\x01z\x02", 5, reconsume_times=2, born_timestamp_ms=9
            ),
            await store.put_batch_async("T", new),
            await store.append_batch_async("T", 1, raw, reconsume_times=4),
        ]

    with store_at("async") as store:
        assert asyncio.run(put_all(store)) == expected
        assert [read_all(store, "T", queue_id) for queue_id in (0, 1)] == stored


def test_puts_of_one_loop_are_stored_in_the_order_of_the_calls_over_every_kind_of_new_file(tmp_path):
    async def put_all(store):
        return await asyncio.gather(
            *(
                store.put_async(f"T{n % 7}", b"%d" % n + bytes(n % 5 * 200), durability=SYNC)
                for n in range(700)
            )
        )

    with MessageStore.open(tmp_path / "store", **SMALL) as store:
        results = asyncio.run(put_all(store))
        assert [result.phy_offset for result in results] == sorted(result.phy_offset for result in results)
        for topic in range(7):
            bodies = [int(message.body.rstrip(b"\0")) for message in read_all(store, f"T{topic}", 0)]
            assert bodies == list(range(topic, 700, 7))


def test_arguments_are_refused_as_in_the_sync_form(store):
    with pytest.raises(InvalidNameError):
        asyncio.run(store.put_async("no/topic", b""))
    with pytest.raises(InvalidNameError):
        asyncio.run(store.put_batch_async("T", [b""], queue_id=-1))


def test_reader_refuses_puts_of_tasks(tmp_path):
    MessageStore.open(tmp_path / "store", **SMALL).close()
    with MessageStore.open(tmp_path / "store", read_only=True) as reader, pytest.raises(ReadOnlyError):
        asyncio.run(reader.put_async("T", b""))


# ---------------------------------------------------------------------------------- one sync for all


def test_hundreds_of_puts_in_flight_share_a_few_syncs(store, gate):
    # The file of a young queue gets its room in short steps, by a thread; then puts stand in line for it.
    store.put_batch("T", [b"x"] * 900)
    store.put("T", b"x")

    async def put_all():
        hold(gate)
        leader = asyncio.create_task(store.put_async("T", b"x"))
        await entered(gate)
        followers = [asyncio.create_task(store.put_async("T", b"x")) for _ in range(500)]
        await asyncio.sleep(0.01)
        assert not leader.done()
        assert not any(task.done() for task in followers)
        gate.count = 0
        gate.open.set()
        await asyncio.gather(leader, *followers)

    asyncio.run(put_all())
    assert gate.count == 1  # the first sync had begun before the others came; one more was enough for them
    assert store.max_offset("T", 0) == 502 + 901


def test_threads_and_tasks_of_several_loops_share_syncs(store, gate):
    def by_loop():
        async def put_all():
            await asyncio.gather(*(store.put_async("T", b"x") for _ in range(50)))

        asyncio.run(put_all())

    def by_thread():
        for _ in range(20):
            store.put("T", b"x")

    threads = [threading.Thread(target=work) for work in (by_loop, by_loop, by_loop, by_thread, by_thread)]
    for thread in threads:
        thread.start()
    for thread in threads:
        join_thread(thread)
    assert store.max_offset("T", 0) == 1 + 3 * 50 + 2 * 20
    assert gate.count < 100


def test_loop_goes_on_while_the_disk_works(store, gate):
    async def tick_while_waiting():
        hold(gate)
        put = asyncio.create_task(store.put_async("T", b"x"))
        await entered(gate)
        ticks = 0
        while ticks < 100:
            await asyncio.sleep(0)
            ticks += 1
        assert not put.done()
        gate.open.set()
        await put

    asyncio.run(tick_while_waiting())


def test_loop_goes_on_while_a_file_is_made(store, gate):
    async def tick_while_rolling():
        await store.put_async("T", bytes(1_000_000))  # what follows goes to the next file, which is synced
        hold(gate)
        put = asyncio.create_task(store.put_async("T", bytes(100_000), durability=Durability.ASYNC))
        await entered(gate)
        for _ in range(100):
            await asyncio.sleep(0)
        assert not put.done()
        gate.open.set()
        assert (await put).phy_offset == 1 << 20

    store._core._growth.stop()
    asyncio.run(tick_while_rolling())


def test_async_put_waits_for_no_sync(store, gate):
    async def put():
        hold(gate)
        await store.put_async("T", b"x", durability=Durability.ASYNC)
        gate.open.set()

    asyncio.run(put())
    assert store.max_offset("T", 0) == 2


def test_flush_of_a_task_brings_everything_to_the_disk(tmp_path):
    async def put_and_flush(store):
        await store.put_async("T", b"x")
        await store.flush_async()

    with MessageStore.open(tmp_path / "store", clock=new_clock(), **SMALL) as store:
        asyncio.run(put_and_flush(store))
        assert writer_of(store).commit.flushed == store.max_phy_offset


# ------------------------------------------------------------------------------- cancelled and closed


def test_cancelled_tasks_break_nothing_for_the_others(store, gate):
    async def put_and_cancel():
        hold(gate)
        tasks = [asyncio.create_task(store.put_async("T", b"%d" % n)) for n in range(20)]
        await entered(gate)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.sleep(0)
        gate.open.set()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(result, asyncio.CancelledError) for result in done] == [True, False] * 10
        await store.put_async("T", b"20")

    asyncio.run(put_and_cancel())
    assert [message.body for message in read_all(store, "T", 0)][1:] == [b"%d" % n for n in range(21)]
    assert not store._core.commit._tasks


def test_loop_that_ended_while_its_tasks_waited_hinders_nobody(store, gate):
    async def give_up():
        hold(gate)
        tasks = [asyncio.create_task(store.put_async("T", b"x")) for _ in range(3)]
        await entered(gate)
        return tasks

    asyncio.run(give_up())
    gate.open.set()
    store.put("T", b"y")
    assert store.max_offset("T", 0) == 5
    gc.collect()


def test_close_while_tasks_wait_tells_them_the_truth(tmp_path, gate):
    async def put_and_close():
        store = MessageStore.open(
            tmp_path / "store", files=GatedFiles(gate), clock=new_clock(), durability=SYNC
        )
        await store.put_async("T", b"x")
        hold(gate)
        tasks = [asyncio.create_task(store.put_async("T", b"%d" % n)) for n in range(5)]
        tasks += [asyncio.create_task(store.put_async(f"New{n}", b"x")) for n in range(5)]
        await entered(gate)
        closing = asyncio.create_task(asyncio.to_thread(store.close))
        await asyncio.sleep(0.01)
        gate.open.set()
        await closing
        results = await in_time(asyncio.gather(*tasks, return_exceptions=True))
        with pytest.raises(ClosedError):
            await store.put_async("T", b"late")
        return results

    results = asyncio.run(put_and_close())
    assert not any(isinstance(result, BaseException) for result in results[:5])
    assert all(isinstance(result, ClosedError) for result in results[5:] if isinstance(result, BaseException))
    with MessageStore.open(tmp_path / "store") as again:
        assert again.recovery.mode == "normal"
        acknowledged = sum(not isinstance(result, BaseException) for result in results)
        assert sum(queue.max_offset for queue in again.queues()) == 1 + acknowledged


def test_close_within_the_loop_ends_all_waiting(tmp_path):
    async def put_and_close():
        store = MessageStore.open(tmp_path / "store", clock=new_clock(), durability=SYNC, **SMALL)
        tasks = [asyncio.create_task(store.put_async("T", b"x")) for _ in range(100)]
        await asyncio.sleep(0)
        store.close()
        return await in_time(asyncio.gather(*tasks, return_exceptions=True))

    results = asyncio.run(put_and_close())
    assert {type(result) for result in results if isinstance(result, BaseException)} <= {ClosedError}


# --------------------------------------------------------------------------------------- a failing disk


def test_failed_sync_reaches_every_task_and_no_later_put_is_acknowledged(tmp_path):
    fault = Fault(names=frozenset({"sync"}))

    async def put_all(store):
        await store.put_async("T", b"kept")
        fault.at, fault.count = 1, 0
        results = await asyncio.gather(
            *(store.put_async("T", b"x") for _ in range(50)), return_exceptions=True
        )
        later = await asyncio.gather(
            store.put_async("T", b"x", durability=Durability.ASYNC),
            store.put_async("New", b"x"),
            store.flush_async(),
            return_exceptions=True,
        )
        return [*results, *later]

    store = MessageStore.open(
        tmp_path / "store", files=FailingFiles(fault), clock=new_clock(), durability=SYNC, **SMALL
    )
    results = asyncio.run(put_all(store))
    assert [type(result) for result in results] == [StoreFailedError] * 53
    assert len(fault.fired) == 1
    assert "commitlog/" in str(results[0])
    assert f"seglog verify {store.path}" in results[0].help
    assert read_all(store, "T", 0)[0].body == b"kept"
    with pytest.raises(StoreFailedError):
        store.close()


def test_full_disk_refuses_tasks_too_and_lets_them_in_again(tmp_path):
    fault = Fault(error=errno.ENOSPC, names=frozenset({"reserve", "create"}))

    async def put_all(store):
        await store.put_async("T", b"x")
        fault.at, fault.sticky = fault.count + 1, True
        with pytest.raises(FullError):
            await store.put_async("New", b"x")
        fault.at = 0
        return await store.put_async("New", b"x")

    with MessageStore.open(
        tmp_path / "store", files=FailingFiles(fault), clock=new_clock(), durability=SYNC, **SMALL
    ) as store:
        assert asyncio.run(put_all(store)).queue_offset == 0


# -------------------------------------------------------------------------------------------- waiting


def test_task_waits_for_a_message(store):
    async def wait():
        waiting = asyncio.create_task(store.wait_for_async("T", 0, 1, 60_000))
        await asyncio.sleep(0)
        assert not waiting.done()
        await store.put_async("T", b"x")
        return await in_time(waiting)

    assert asyncio.run(wait()) is True
    assert not store._core.waiters.waiting


def test_task_waits_for_any_of_many_queues_that_a_thread_puts_to(store):
    async def wait():
        wanted = {("T", 0): 1, ("T", 1): 0, ("U", 5): 0}
        waiting = asyncio.create_task(store.wait_for_any_async(wanted, 60_000))
        await asyncio.sleep(0)
        await asyncio.to_thread(store.put, "T", b"x", queue_id=2)
        assert not waiting.done()
        await asyncio.to_thread(store.put, "U", b"x", queue_id=5)
        return await in_time(waiting)

    assert asyncio.run(wait()) is True


def test_thread_waits_for_any_of_many_queues(store):
    found = []
    waiting = threading.Thread(
        target=lambda: found.append(store.wait_for_any({("T", 7): 0, ("U", 5): 0}, 60_000))
    )
    waiting.start()
    wait_until(lambda: len(store._core.waiters.waiting) == 2)
    store.put("U", b"x", queue_id=5)
    join_thread(waiting)
    assert found == [True]
    assert not store._core.waiters.waiting


def test_task_of_a_reader_sees_what_a_writer_puts(store):
    async def wait(reader):
        waiting = asyncio.create_task(reader.wait_for_async("T", 0, 1, 60_000))
        await asyncio.sleep(0.02)
        await store.put_async("T", b"x")
        return await in_time(waiting)

    with MessageStore.open(store.path, read_only=True) as reader:
        assert asyncio.run(wait(reader)) is True


def test_waiting_ends_with_its_time_and_with_the_store(tmp_path):
    async def wait(store):
        assert await store.wait_for_async("T", 0, 0, 1) is False
        waiting = asyncio.create_task(store.wait_for_async("T", 0, 0, 60_000))
        await asyncio.sleep(0)
        store.close()
        return await in_time(waiting)

    assert asyncio.run(wait(MessageStore.open(tmp_path / "store", **SMALL))) is False


def test_a_task_says_how_long_a_delayed_message_waits(open_store: OpenStore):
    store = open_store()

    async def work():
        return await store.append_async("SCHEDULE_TOPIC_XXXX", 2, b"x", b"DELAY\x013\x02", 0, delay_ms=77)

    put = asyncio.run(work())
    (unit,) = store.queue("SCHEDULE_TOPIC_XXXX", 2).units()
    assert unit["tags_code"] == put.store_timestamp_ms + 77
