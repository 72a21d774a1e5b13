"""Appends do not wait behind each other's files, and the log's next file is there before it is needed."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Unpack

import pytest
from typing_extensions import override

from seglog.errors import FullError, StoreFailedError
from seglog.storage.files.files import RealFiles
from seglog.storage.format.names import segment_file_name
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.crash.failing_files import FailingFiles, Fault
from tests.support.machine.patience import join_thread, wait_for_event, wait_until
from tests.support.material.stores import SMALL, OpenOptions, new_clock, read_all, writer_of

SEGMENT_BYTES = 1 << 20


class SlowFiles(RealFiles):
    """Files of which the next one to be made, or folder to be synced, takes as long as a test likes."""

    def __init__(self):
        self.go_on = threading.Event()
        self.go_on.set()
        self.waiting = threading.Event()

    @override
    def create(self, path, size_bytes):
        self._wait()
        return super().create(path, size_bytes)

    @override
    def sync_dir(self, path):
        self._wait()
        super().sync_dir(path)

    def _wait(self):
        if not self.go_on.is_set():
            self.waiting.set()
            wait_for_event(self.go_on)


def open_big(path: Path, **options: Unpack[OpenOptions]) -> MessageStore:
    chosen: OpenOptions = {"segment_size_bytes": SEGMENT_BYTES, "clock": new_clock(), **options}
    return MessageStore.open(path, **chosen)


def come_near_the_end(store):
    """Puts so much that the next put is to find that the log needs another file soon."""
    near = SEGMENT_BYTES // 2
    store.put("T", b"x")
    store.put("T", b"x")
    wait_until(lambda: store._core.log.tail.wake_allocator_at == near)
    store.put("T", bytes(900_000))
    assert len(log_files(store)) == 1


def until_made_ahead(store):
    wait_until(lambda: store._core.log._segments.find(SEGMENT_BYTES) is not None)


def log_files(store):
    return sorted(path.name for path in (store.path / "commitlog").iterdir())


def test_put_of_a_new_queue_holds_up_nobody_else(tmp_path):
    files = SlowFiles()
    with open_big(tmp_path / "store", files=files) as store:
        store.put("T", b"x")
        files.go_on.clear()
        slow = threading.Thread(target=store.put, args=("New", b"x"))
        slow.start()
        wait_for_event(files.waiting)
        for _ in range(100):
            store.put("T", b"x")
        assert store.max_offset("New", 0) == 0
        files.go_on.set()
        join_thread(slow)
        assert store.max_offset("New", 0) == 1


def test_put_that_fits_goes_ahead_of_one_that_needs_a_new_file(tmp_path):
    files = SlowFiles()
    with open_big(tmp_path / "store", files=files) as store:
        writer_of(store)._growth.stop()
        store.put("T", bytes(1_000_000))
        files.go_on.clear()
        slow = threading.Thread(target=store.put, args=("T", bytes(100_000)))
        slow.start()
        wait_for_event(files.waiting)
        small = store.put("T", b"small")
        assert small.phy_offset < SEGMENT_BYTES
        files.go_on.set()
        join_thread(slow)
        assert [len(message.body) for message in read_all(store, "T", 0)] == [1_000_000, 5, 100_000]


def test_next_file_of_the_log_is_made_ahead_and_used(tmp_path):
    with open_big(tmp_path / "store") as store:
        come_near_the_end(store)
        store.put("T", b"x")
        until_made_ahead(store)
        grown = []
        writer_of(store)._growth.make = lambda *_needs: grown.append(1)
        store.put("T", bytes(300_000))
        assert store.max_phy_offset > SEGMENT_BYTES
        assert not grown


def test_file_that_was_made_for_nothing_is_gone_after_a_clean_close(tmp_path):
    with open_big(tmp_path / "store") as store:
        come_near_the_end(store)
        store.put("T", b"x")
        until_made_ahead(store)
    assert log_files(store) == [segment_file_name(0)]
    found = survey(tmp_path / "store", RealFiles())
    assert (found.mode, found.findings) == ("normal", [])


def test_file_that_was_made_for_nothing_is_told_and_dropped_after_a_crash(tmp_path):
    with open_big(tmp_path / "store") as store:
        come_near_the_end(store)
        store.put("T", b"x")
        until_made_ahead(store)
        store.flush()
        shutil.copytree(store.path, tmp_path / "crashed")
        with MessageStore.open(store.path, read_only=True) as reader:
            assert [finding.code for finding in reader.recovery.findings] == ["log-spare"]
            assert len(read_all(reader, "T", 0)) == 4
    with open_big(tmp_path / "crashed") as again:
        assert [finding.code for finding in again.recovery.findings] == ["log-spare"]
        assert log_files(again) == [segment_file_name(0)]
        assert again.put("T", bytes(300_000)).phy_offset == SEGMENT_BYTES
        assert len(read_all(again, "T", 0)) == 5


def test_short_files_are_not_made_ahead(tmp_path):
    with MessageStore.open(tmp_path / "store", clock=new_clock(), **SMALL) as store:
        store.put("T", bytes(3500))
        store.put("T", b"x")
        assert log_files(store) == [segment_file_name(0)]


def test_no_space_ahead_is_nothing_that_a_put_hears_of(tmp_path):
    fault = Fault(error=28, names=frozenset({"create"}))
    with open_big(tmp_path / "store", files=FailingFiles(fault)) as store:
        come_near_the_end(store)
        fault.at, fault.sticky, fault.count = 1, True, 0
        store.put("T", b"x")
        wait_until(lambda: fault.fired)
        assert store.put("T", b"x").queue_offset == 4
        with pytest.raises(FullError):
            store.put("T", bytes(300_000))
        fault.at = 0
        assert store.put("T", bytes(300_000)).phy_offset == SEGMENT_BYTES


def test_failed_sync_of_the_file_ahead_closes_the_latch(tmp_path):
    fault = Fault(names=frozenset({"sync"}))
    store = open_big(tmp_path / "store", files=FailingFiles(fault))
    come_near_the_end(store)
    fault.at, fault.count = 1, 0
    store.put("T", b"x")
    wait_until(lambda: writer_of(store)._latch.is_closed)
    with pytest.raises(StoreFailedError):
        store.put("T", b"x")
    with pytest.raises(StoreFailedError):
        store.close()
    assert len(fault.fired) == 1


def test_queue_files_get_their_names_while_flushes_go_on(tmp_path):
    with MessageStore.open(
        tmp_path / "store", segment_size_bytes=SEGMENT_BYTES, queue_file_size_bytes=200, flush_interval_ms=1
    ) as store:
        stop = threading.Event()

        def flush():
            while not stop.is_set():
                store.flush()

        flusher = threading.Thread(target=flush)
        flusher.start()
        for number in range(1500):
            store.put(f"T{number % 3}", b"x")
        stop.set()
        join_thread(flusher)
        names = [path.name for path in (store.path / "consumequeue").rglob("*") if path.is_file()]
        assert sorted(names) == sorted([segment_file_name(at) for at in range(0, 10_000, 200)] * 3)


def test_threads_that_all_need_new_queues_and_files_lose_nothing(tmp_path):
    with MessageStore.open(tmp_path / "store", clock=new_clock(), **SMALL) as store:

        def put(number):
            for each in range(60):
                store.put("Shared", b"%d" % number + bytes(700), queue_id=each % 3)
                store.put(f"Own{number}", b"%d" % each)

        threads = [threading.Thread(target=put, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            join_thread(thread)
        for number in range(6):
            assert [m.body for m in read_all(store, f"Own{number}", 0)] == [
                b"%d" % each for each in range(60)
            ]
        shared = [m.body[:1] for queue_id in range(3) for m in read_all(store, "Shared", queue_id)]
        assert sorted(shared) == sorted([b"%d" % number for number in range(6)] * 60)
    found = survey(tmp_path / "store", RealFiles())
    assert (found.mode, found.findings) == ("normal", [])


def queue_files(store):
    return sorted(path.name for path in (store.path / "consumequeue" / "T" / "0").iterdir())


def test_next_file_of_a_fast_queue_is_made_ahead_and_named_once_it_has_a_unit(tmp_path):
    units = 20_000
    with open_big(tmp_path / "store", segment_size_bytes=64 << 20, queue_file_size_bytes=20 * units) as store:
        store.put_batch("T", [b"x"] * 17_000)
        store.put_batch("T", [b"x"] * 1000)  # asks for room, and is fast by now
        wait_until(lambda: ("T", 0) in writer_of(store)._growth._fast_queues)
        writer_of(store)._growth._grow_ahead()
        assert len(list((store.path / "consumequeue" / "T").glob("*.new"))) == 1
        grown = []
        writer_of(store)._growth.make = lambda *_needs: grown.append(1)
        store.put_batch("T", [b"x"] * 4000)
        wait_until(lambda: len(queue_files(store)) == 2)
        assert not grown
        assert store.max_offset("T", 0) == 22_000
        assert len(store.get("T", 0, units, 3)) == 3


def test_a_queue_that_is_not_fast_has_no_file_made_ahead(tmp_path):
    with open_big(tmp_path / "store", queue_file_size_bytes=2000) as store:
        for _ in range(90):
            store.put("T", b"x")
        writer_of(store)._growth._grow_ahead()
        assert not writer_of(store)._growth._fast_queues
        assert list((store.path / "consumequeue" / "T").glob("*.new")) == []


class SlowFolderSyncs(RealFiles):
    """Holds syncs of folders up while it is told to."""

    def __init__(self):
        self.waiting, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    @override
    def sync_dir(self, path):
        if not self.go_on.is_set():
            self.waiting.set()
            wait_for_event(self.go_on)
        super().sync_dir(path)


def test_a_queue_goes_on_in_its_next_file_while_the_disk_writes_the_name_of_the_last(tmp_path):
    files = SlowFolderSyncs()
    with open_big(
        tmp_path / "store", files=files, queue_file_size_bytes=2000, flush_interval_ms=10**9
    ) as store:
        store.put("T", b"x")
        files.go_on.clear()
        flush = threading.Thread(target=store.flush)
        flush.start()
        wait_for_event(files.waiting)
        for _ in range(250):
            store.put("T", b"x")
        assert len(queue_files(store)) == 3
        files.go_on.set()
        join_thread(flush)
