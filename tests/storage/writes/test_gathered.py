"""Puts of one turn of a loop are made together, each as if by itself, and no answer comes too early."""

from __future__ import annotations

import asyncio
import errno
import tempfile
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from seglog.errors import ClosedError, FullError, InvalidNameError, MessageIllegalError, SeglogError
from seglog.storage.files.files import RealFiles
from seglog.storage.files.real_file import RealFile
from seglog.storage.store import MessageStore
from seglog.storage.writes.flush import Durability
from tests.storage.writes.test_fast_path import ordinary_appends
from tests.storage.writes.test_fast_path_alike import PUTS, USUAL
from tests.support.crash.failing_files import FailingFiles, Fault
from tests.support.machine.fast_paths import contents, fast_paths_of
from tests.support.machine.kernels import BOTH
from tests.support.machine.patience import in_time, join_thread
from tests.support.material.stores import SMALL, SMALL_INDEX, new_clock, read_all, writer_of

SYNC, ASYNC = Durability.SYNC, Durability.ASYNC
LIMIT = 600


@pytest.fixture(params=BOTH, autouse=True)
def fast_paths(request):
    with fast_paths_of(request.param):
        yield request.param


@pytest.fixture
def store(tmp_path):
    with MessageStore.open(
        tmp_path / "store", clock=new_clock(), durability=SYNC, segment_size_bytes=1 << 20
    ) as store:
        store.put("T", b"first")
        yield store


def bodies_of(store, topic="T", queue_id=0):
    return [bytes(message.body) for message in read_all(store, topic, queue_id)]


async def called(*puts):
    """Has puts called, each by a task of its own, and returns the tasks before the turn has ended."""
    tasks = [asyncio.ensure_future(put) for put in puts]
    await asyncio.sleep(0)
    return tasks


# --------------------------------------------------------------------------- the same as one by one


def said(result):
    return (type(result), str(result)) if isinstance(result, BaseException) else result


def one_by_one(store, turns):
    found = []
    for turn in turns:
        for values in turn:
            try:
                found.append(store.put(**values))
            except (SeglogError, TypeError, ValueError, AttributeError) as error:
                found.append(error)
    return [said(result) for result in found]


def together(store, turns):
    async def run():
        found = []
        for turn in turns:
            found += await asyncio.gather(
                *(store.put_async(**values) for values in turn), return_exceptions=True
            )
        return [said(result) for result in found]

    return asyncio.run(run())


ANY_PUTS = PUTS.map(lambda values: {name: value for name, value in values.items() if name != "unknown"})


@settings(deadline=None)
@given(
    turns=st.lists(st.lists(USUAL | ANY_PUTS, max_size=12), max_size=4),
    record_crc=st.booleans(),
    usual=st.sampled_from([SYNC, ASYNC]),
)
def test_a_turn_stores_the_bytes_that_the_calls_one_by_one_store(turns, record_crc, usual):
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        found = {}
        for name, drive in (("one by one", one_by_one), ("together", together)):
            with MessageStore.open(
                Path(folder, name),
                clock=new_clock(),
                record_crc=record_crc,
                durability=usual,
                max_message_size_bytes=LIMIT,
                **SMALL,
                **SMALL_INDEX,
            ) as store:
                found[name] = drive(store, turns)
        assert found["together"] == found["one by one"]
        assert contents(Path(folder, "together")) == contents(Path(folder, "one by one"))


def test_a_turn_takes_the_fast_path_over_many_queues(store):
    for queue_id in range(4):
        store.put("T", b"x", queue_id=queue_id)
    made = ordinary_appends(store)

    async def run():
        return await asyncio.gather(
            *(
                store.put_async("T", b"%d" % n, queue_id=n % 4, tags="A", keys="k", properties={"p": "v"})
                for n in range(40)
            )
        )

    puts = asyncio.run(run())
    assert made == []
    assert [put.phy_offset for put in puts] == sorted({put.phy_offset for put in puts})
    assert [store.message_at(put.phy_offset).body for put in puts] == [b"%d" % n for n in range(40)]
    for queue_id in range(4):
        assert bodies_of(store, "T", queue_id)[-10:] == [b"%d" % n for n in range(queue_id, 40, 4)]
    assert {put.durability for put in puts} == {SYNC}


def test_a_turn_may_be_longer_than_one_write_and_roll_files(tmp_path):
    async def run(store):
        return await asyncio.gather(*(store.put_async("T", b"%05d" % n * 200) for n in range(3000)))

    with MessageStore.open(
        tmp_path / "store", clock=new_clock(), durability=SYNC, segment_size_bytes=1 << 21
    ) as store:
        store.put("T", b"first")
        puts = asyncio.run(run(store))
        assert [put.queue_offset for put in puts] == list(range(1, 3001))
        assert writer_of(store).commit.flushed >= puts[-1].phy_offset + puts[-1].size_bytes
        assert bodies_of(store)[1:] == [b"%05d" % n * 200 for n in range(3000)]


# ------------------------------------------------------------------------------ not before the disk's


class SlowDisk(RealFiles):
    """Files whose syncs of the log take a while; ``synced`` is how far the log was as the last began."""

    def __init__(self):
        self.store: MessageStore | None = None
        self.synced = 0
        self.count = 0

    @override
    def open(self, path, *, writable):
        file = SlowFile(path, 2 if writable else 0)
        file.disk = self
        return file


class SlowFile(RealFile):
    __slots__ = ("disk",)
    disk: SlowDisk

    @override
    def sync(self):
        disk = self.disk
        if disk.store is None or "commitlog" not in str(self._path):
            super().sync()
            return
        begun_at = disk.store.max_phy_offset
        time.sleep(0.002 * (disk.count % 3))
        super().sync()
        disk.count += 1
        disk.synced = max(disk.synced, begun_at)


def test_no_put_is_acknowledged_before_a_sync_that_began_after_its_append_has_ended(tmp_path):
    disk = SlowDisk()
    early = []

    async def work(store, number):
        for n in range(8):
            put = await store.put_async("T", b"%d" % n, queue_id=number % 3)
            if disk.synced < put.phy_offset + put.size_bytes:
                early.append(put)
            if number % 5 == 0:
                await asyncio.sleep(0)

    async def run(store):
        await asyncio.gather(*(work(store, number) for number in range(20)))

    with MessageStore.open(
        tmp_path / "store", files=disk, clock=new_clock(), durability=SYNC, segment_size_bytes=1 << 22
    ) as store:
        disk.store = store
        threads = [threading.Thread(target=asyncio.run, args=(run(store),)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            join_thread(thread, idle_s=30)
        assert sum(queue.max_offset for queue in store.queues()) == 2 * 20 * 8
        disk.store = None
    assert early == []
    assert 8 <= disk.count < 2 * 20 * 8 // 2


# ------------------------------------------------------------------------------------------- the order


def test_whatever_appends_next_comes_behind_what_was_gathered(store):
    def in_a_thread(call):
        thread = threading.Thread(target=call)
        thread.start()
        join_thread(thread)

    async def run():
        tasks = await called(store.put_async("T", b"1"))
        assert not writer_of(store).commit._tasks  # the turn has not ended
        store.put("T", b"2", durability=ASYNC)
        tasks += await called(store.put_async("T", b"3"), store.put_async("T", b"4"))
        in_a_thread(lambda: store.put_batch("T", [b"5"]))
        tasks += await called(store.put_async("T", b"6"))
        store.unsynced().append("T", 0, b"7", b"", 0)
        tasks += await called(
            store.put_async("T", b"8"),
            store.put_async("T", b"9", durability=ASYNC),
            store.put_async("T", b"10"),
            store.append_async("T", 0, b"11", b"", 0),
            store.put_async("T", b"12"),
            store.put_batch_async("T", [b"13"]),
            store.put_async("T", b"14"),
            store.put_async("T", memoryview(b"15")),
            store.put_async("T", b"16", keys=["k", "l"]),
            store.put_async("New", b"17"),
            store.put_async("T", b"18"),
        )
        in_a_thread(lambda: asyncio.run(store.put_async("T", b"19")))
        return await asyncio.gather(*tasks)

    puts = asyncio.run(run())
    assert bodies_of(store)[1:] == [b"%d" % n for n in range(1, 20) if n != 17]
    places = [put.phy_offset for put in puts]
    assert places == sorted(places)


def test_a_topic_that_is_dropped_takes_along_what_was_gathered(store):
    async def run():
        tasks = await called(store.put_async("T", b"gone"))
        writer_of(store).drop_topic("T")
        tasks += await called(store.put_async("T", b"new"))
        return [put.queue_offset for put in await asyncio.gather(*tasks)]

    assert asyncio.run(run()) == [1, 0]
    assert bodies_of(store) == [b"new"]


def test_what_was_gathered_cannot_be_changed_any_more(store):
    async def run():
        properties = {"a": "as called"}
        tasks = await called(store.put_async("T", b"x", properties=properties))
        properties["a"] = "later"
        (put,) = await asyncio.gather(*tasks)
        return store.message_at(put.phy_offset).properties["a"]

    assert asyncio.run(run()) == "as called"


# -------------------------------------------------------------------------------- errors of their own


def test_an_error_is_of_its_message_alone(tmp_path):
    async def run(store):
        return await asyncio.gather(
            store.put_async("T", b"1"),
            store.put_async("T", bytes(LIMIT + 1)),
            store.put_async("no/topic", b"x"),
            store.put_async("T", b"2", tags="\x02"),
            store.put_async("T", b"3"),
            store.put_async("T", b"x", queue_id=-1),
            store.put_async("T", b"4"),
            return_exceptions=True,
        )

    with MessageStore.open(
        tmp_path / "store", clock=new_clock(), durability=SYNC, max_message_size_bytes=LIMIT, **SMALL
    ) as store:
        store.put("T", b"first")
        found = asyncio.run(run(store))
        assert isinstance(found[1], MessageIllegalError)
        assert isinstance(found[2], InvalidNameError)
        assert isinstance(found[3], SeglogError)
        assert isinstance(found[5], InvalidNameError)
        assert [found[at].queue_offset for at in (0, 4, 6)] == [1, 2, 3]
        assert bodies_of(store)[1:] == [b"1", b"3", b"4"]


def test_a_full_disk_refuses_only_those_that_need_space(tmp_path):
    fault = Fault(error=errno.ENOSPC, names=frozenset({"reserve", "create"}))

    async def run(store):
        await store.put_async("T", b"x")
        fault.at, fault.sticky = fault.count + 1, True
        found = await asyncio.gather(
            store.put_async("T", b"1"),
            store.put_async("New", b"x"),
            store.put_async("T", b"2"),
            return_exceptions=True,
        )
        fault.at = 0
        return [*found, await store.put_async("New", b"x")]

    with MessageStore.open(
        tmp_path / "store", files=FailingFiles(fault), clock=new_clock(), durability=SYNC, **SMALL
    ) as store:
        one, refused, two, later = asyncio.run(run(store))
        assert isinstance(refused, FullError)
        assert (one.queue_offset, two.queue_offset, later.queue_offset) == (1, 2, 0)


# ----------------------------------------------------------------------------------- ended meanwhile


def test_close_in_the_middle_of_a_turn_answers_all(tmp_path):
    async def run():
        store = MessageStore.open(tmp_path / "store", clock=new_clock(), durability=SYNC, **SMALL)
        store.put("T", b"first")
        tasks = await called(*(store.put_async("T", b"%d" % n) for n in range(5)))
        store.close()
        tasks += await called(*(store.put_async("T", b"late") for _ in range(2)))
        return await in_time(asyncio.gather(*tasks, return_exceptions=True))

    found = asyncio.run(run())
    assert [put.queue_offset for put in found[:5]] == [1, 2, 3, 4, 5]
    assert [type(error) for error in found[5:]] == [ClosedError] * 2
    with MessageStore.open(tmp_path / "store") as store:
        assert store.recovery.mode == "normal"
        assert bodies_of(store)[1:] == [b"%d" % n for n in range(5)]


def test_flush_brings_what_was_gathered_to_the_disk_too(store):
    async def run():
        tasks = await called(store.put_async("T", b"x"))
        store.flush()
        assert bodies_of(store) == [b"first", b"x"]
        assert writer_of(store).commit.flushed == store.max_phy_offset
        await asyncio.gather(*tasks)

    asyncio.run(run())


def test_a_task_that_is_cancelled_before_its_turn_ends_neither_loses_nor_doubles(store):
    async def run():
        tasks = await called(*(store.put_async("T", b"%d" % n) for n in range(10)))
        for task in tasks[::3]:
            task.cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(result) is asyncio.CancelledError for result in found] == [n % 3 == 0 for n in range(10)]
        assert [put.queue_offset for put in found if not isinstance(put, BaseException)] == [
            1 + n for n in range(10) if n % 3
        ]

    asyncio.run(run())
    assert bodies_of(store)[1:] == [b"%d" % n for n in range(10)]


def test_what_a_loop_gathered_that_has_stopped_is_stored_with_the_next_put(store):
    loop = asyncio.new_event_loop()
    coroutine = store.put_async("T", b"left behind")

    async def call():
        task = asyncio.ensure_future(coroutine)
        loop.call_soon(loop.stop)
        await asyncio.sleep(0)
        return task

    outer = loop.create_task(call())
    loop.run_forever()
    store.put("T", b"next")
    assert bodies_of(store) == [b"first", b"left behind", b"next"]
    task = loop.run_until_complete(outer)
    assert loop.run_until_complete(task).queue_offset == 1
    loop.close()


def test_who_waits_for_a_queue_is_woken_without_a_lock(store):
    store.put("T", b"x", queue_id=1)
    others, woken = [], []

    def wake():
        # Another thread gets through although this one has not returned.
        other = threading.Thread(target=lambda: others.append(store.put("T", b"other", queue_id=2)))
        other.start()
        join_thread(other)
        woken.append(other.is_alive())

    async def run():
        return await asyncio.gather(
            *(
                store.put_async(topic, b"x", queue_id=queue_id)
                for topic in ("T", "New")
                for queue_id in (0, 1)
            )
        )

    waiters, queues = writer_of(store).waiters, (("T", 1), ("New", 0))
    for queue in queues:
        waiters.listen(queue, wake)
    asyncio.run(run())
    for queue in queues:
        waiters.unlisten(queue, wake)
    assert woken == [False, False]
    assert len(others) == 2


@pytest.mark.parametrize("odd", ["text", bytearray(b"x"), None])
def test_what_is_no_body_is_refused_at_once_and_hinders_nobody(store, odd):
    async def run():
        good = store.put_async("T", b"1"), store.put_async("T", b"2")
        bad = store.put_async("T", odd)
        return await asyncio.gather(good[0], bad, good[1], return_exceptions=True)

    one, _odd, two = asyncio.run(run())
    assert one.queue_offset < two.queue_offset
