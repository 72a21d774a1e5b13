"""A new queue costs its first message little: one page of its file, and no wait for the disk."""

from __future__ import annotations

import ctypes
import mmap
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from typing_extensions import override

from seglog.storage.files.files import RealFiles
from seglog.storage.format.names import CONSUME_QUEUE
from seglog.storage.store import MessageStore
from seglog.storage.writes.flush import Durability
from tests.crash.test_power_loss import IdleKernel, killed, open_store
from tests.support.material.stores import SMALL_INDEX

QUEUES = 12
NEVER_MS = 3_600_000
MOST_CACHED_BYTES = 64 << 10


class CountingFiles(RealFiles):
    """Counts which folders are synced."""

    def __init__(self):
        self.synced = Counter()

    @override
    def sync_dir(self, path):
        self.synced[path] += 1
        super().sync_dir(path)


def cached_bytes(path: Path) -> int:
    """Returns how much of a file is in the page cache."""
    with path.open("rb") as file:
        view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    size = len(view)
    memory = np.frombuffer(view, np.uint8)
    pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
    address = ctypes.c_void_p(memory.ctypes.data)
    assert ctypes.CDLL(None).mincore(address, ctypes.c_size_t(size), pages) == 0
    return sum(page & 1 for page in pages) * mmap.PAGESIZE


def is_read_ahead(path: Path) -> bool:
    """Returns whether this process has a file mapped as one that is read in order."""
    flags, found = [], False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if "-" in words[0]:
            found = line.endswith(str(path))
        elif words[0] == "VmFlags:" and found:
            flags.append("rr" not in words)
    assert flags, f"{path} is not mapped"
    return all(flags)


def test_first_messages_of_queues_take_little_of_the_page_cache(tmp_path):
    with MessageStore.open(tmp_path / "store", flush_interval_ms=NEVER_MS, **SMALL_INDEX) as store:
        for number in range(QUEUES):
            store.put("T", b"first", queue_id=number)
            assert [message.body for message in store.get("T", number, 0)] == [b"first"]
            store.put("T", b"second", queue_id=number)
    files = sorted((tmp_path / "store" / CONSUME_QUEUE).glob("T/*/0*"))
    assert len(files) == QUEUES
    with MessageStore.open(tmp_path / "store", **SMALL_INDEX) as store:
        for number in range(QUEUES):
            assert len(store.get("T", number, 0)) == 2
    assert max(cached_bytes(path) for path in files) <= MOST_CACHED_BYTES


@pytest.mark.parametrize("count", [1, 5_000])
def test_a_queue_file_is_read_ahead_once_it_is_long(tmp_path, count):
    with MessageStore.open(tmp_path / "store", flush_interval_ms=NEVER_MS, **SMALL_INDEX) as store:
        for _ in range(count):
            store.put("T", b"")
        path = tmp_path / "store" / CONSUME_QUEUE / "T" / "0" / ("0" * 20)
        assert is_read_ahead(path) == (count > 1)
    with MessageStore.open(tmp_path / "store", **SMALL_INDEX) as store:
        store.put("T", b"")
        assert is_read_ahead(path) == (count > 1)


def test_names_of_new_queues_are_synced_once_a_flush(tmp_path):
    root = tmp_path / "store"
    files = CountingFiles()
    with MessageStore.open(root, files=files, flush_interval_ms=NEVER_MS, **SMALL_INDEX) as store:
        store.put("T0", b"the log has its file", durability=Durability.SYNC)
        store.flush()
        for _round in range(2):
            files.synced.clear()
            queue_id = _round * QUEUES
            for number in range(QUEUES):
                store.put(f"T{number % 2}", b"x", queue_id=1 + queue_id + number, durability=Durability.SYNC)
            assert files.synced == {}
            store.flush()
            queues = [root / CONSUME_QUEUE / "T0", root / CONSUME_QUEUE / "T1", root / CONSUME_QUEUE]
            assert {path: files.synced[path] for path in queues[:2]} == dict.fromkeys(queues[:2], 1)
            assert files.synced[queues[2]] == (1 if _round == 0 else 0)
            assert set(files.synced.values()) == {1}
        files.synced.clear()
        store.flush()
        assert files.synced == {}


def test_an_acknowledged_message_outlives_the_names_of_its_queue():
    files = IdleKernel()
    store = open_store(files)
    for number in range(5):
        store.put(f"T{number}", b"%d" % number, durability=Durability.SYNC)
    files.die()
    are_gone = []
    for _ in range(20):
        image = IdleKernel(files.chance, files.disk.image(files.chance))
        are_gone.append(not image.is_dir(store.path / CONSUME_QUEUE))
        found = open_store(image)
        bodies = [next(iter(found.get(f"T{number}", 0, 0))).body for number in range(5)]
        assert bodies == [b"0", b"1", b"2", b"3", b"4"]
        killed(image, found)
    assert any(are_gone)


def test_folders_that_a_killed_process_made_are_synced_by_the_next():
    files = IdleKernel()
    store = open_store(files)
    store.put("T", b"x")
    files = killed(files, store)
    store = open_store(files)
    store.flush()
    files = files.after_power_loss()
    assert [entry.name for entry in files.list_dir(store.path / CONSUME_QUEUE / "T")] == ["0"]


def test_folders_of_a_topic_that_was_deleted_are_synced_no_more(tmp_path):
    with MessageStore.open(tmp_path / "store", flush_interval_ms=NEVER_MS, **SMALL_INDEX) as store:
        store.put("T", b"x")
        assert store.retention.delete_topic("T") == 1
        store.put("U", b"y")
        store.flush()
