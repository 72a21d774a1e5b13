"""No thread of a writer takes a lock out of order, nor has the append lock while it waits for the disk."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from pathlib import Path
from typing import Final

import pytest
from typing_extensions import override

from seglog.storage.format.queue.compaction import compaction_sizes
from seglog.storage.format.record.properties import encode_properties
from seglog.storage.store import MessageStore
from seglog.storage.writes import lock_order
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.growth import Need
from seglog.storage.writes.lock_order import LockRank
from seglog.storage.writes.values import NewMessage
from tests.support.crash.failing_files import FailingFiles, Fault
from tests.support.material.stores import SMALL_INDEX, writer_of

SEGMENT_BYTES: Final = 1 << 20
"""From this length on files of the log are made ahead."""
SLOW: Final = frozenset(
    {"create", "reserve", "sync", "set_size", "write_file", "make_dirs", "rename", "remove", "sync_dir"}
)
"""Calls that may wait for the disk."""


class OrderError(AssertionError):
    """A lock was taken out of order, or held too long."""


class Watch:
    """Which ranks each thread holds, which were seen held together, and what was done wrong."""

    def __init__(self) -> None:
        self._held = threading.local()
        self.taken: set[LockRank] = set()
        self.pairs: set[tuple[LockRank, LockRank]] = set()
        self.wrong: list[str] = []

    @property
    def held(self) -> list[LockRank]:
        ranks: list[LockRank] = vars(self._held).setdefault("ranks", [])
        return ranks

    def blame(self, text: str) -> None:
        self.wrong.append(text)  # a thread of the background has no caller to raise it to
        raise OrderError(text)

    def lock(self, rank: LockRank) -> WatchedLock:
        return WatchedLock(self, rank)


class WatchedLock:
    def __init__(self, watch: Watch, rank: LockRank) -> None:
        self._watch = watch
        self._rank = rank
        self._lock = threading.Lock()

    def __enter__(self) -> bool:
        held = self._watch.held
        if held and held[-1] >= self._rank:
            self._watch.blame(f"{self._rank.name} taken by who holds {held[-1].name}")
        self._watch.taken.add(self._rank)
        self._watch.pairs.update((outer, self._rank) for outer in held)
        self._lock.acquire()
        held.append(self._rank)
        return True

    def __exit__(self, *_error: object) -> None:
        self._watch.held.remove(self._rank)
        self._lock.release()


class DiskWatch(Fault):
    """Fails no call of the disk, but for those of who holds the append lock."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    @override
    def check(self, name: str, path: Path) -> None:
        if name in SLOW and LockRank.APPEND in self._watch.held:
            self._watch.blame(f"{name} of {path.name} with the append lock held")


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    watch, new_lock = Watch(), lock_order.new_lock
    for module in list(sys.modules.values()):
        if getattr(module, "new_lock", None) is new_lock:
            monkeypatch.setattr(module, "new_lock", watch.lock)
    return watch


def open_store(root: Path, watch: Watch, flush_interval_ms: int = 1) -> MessageStore:
    return MessageStore.open(
        root,
        segment_size_bytes=SEGMENT_BYTES,
        queue_file_size_bytes=2000,
        flush_interval_ms=flush_interval_ms,
        recovery_step_bytes=64 << 10,
        compaction_sizes=compaction_sizes(1 << 14, 1 << 12),
        files=FailingFiles(DiskWatch(watch)),
        **SMALL_INDEX,
    )


def declare_kinds(root: Path) -> None:
    (root / "config").mkdir(parents=True)
    table = {
        "Comp": {"topicName": "Comp", "attributes": {"cleanup.policy": "COMPACTION"}},
        "Batch": {"topicName": "Batch", "attributes": {"queue.type": "BatchCQ"}},
    }
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}))


def fill(store: MessageStore, number: int) -> None:
    """Puts what goes each of the ways that an append can go."""
    for n in range(60):
        store.put("T", b"x" * 900, queue_id=n % 3, keys=f"k{n}", properties={"n": str(number)})
        store.put("Comp", b"c" * 700, keys=f"k{n % 7}")
    store.put_batch("T", [b"a", NewMessage(b"b", keys="k")] * 40, queue_id=3)
    store.put_batch("Batch", [b"a" * 50] * 3)
    store.append("T", 4, b"m", encode_properties({"INNER_MULTI_DISPATCH": "%LMQ%a,%LMQ%b"}), 0)
    store.put("T", b"s", durability=Durability.SYNC)


async def fill_by_tasks(store: MessageStore) -> None:
    puts = (store.put_async("A", b"x" * 900, queue_id=n % 5, durability=Durability.SYNC) for n in range(200))
    await asyncio.gather(*puts)


def test_whatever_a_store_does_takes_its_locks_in_order(tmp_path: Path, watch: Watch) -> None:
    root = tmp_path / "s"
    declare_kinds(root)
    with open_store(root, watch) as store:

        def work(number: int) -> None:
            for _ in range(12):
                fill(store, number)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            store.flush()
            store.query("T", "k7")
            store.reload_topics()
            time.sleep(0.01)
        asyncio.run(fill_by_tasks(store))
        for thread in threads:
            thread.join()
        store.retention.delete_before(2 * SEGMENT_BYTES)
        assert store.retention.delete_topic("T") == 5
        fill(store, 9)
        store.flush()
    assert watch.wrong == []
    assert watch.taken == set(LockRank)
    assert watch.pairs == {
        (LockRank.TRIM, LockRank.FLUSH),
        (LockRank.TRIM, LockRank.GROW),
        (LockRank.TRIM, LockRank.LOG),
        (LockRank.FLUSH, LockRank.GROW),
        (LockRank.FLUSH, LockRank.APPEND),
        (LockRank.GROW, LockRank.LOG),
        (LockRank.GROW, LockRank.APPEND),
        (LockRank.LOG, LockRank.APPEND),
    }
    with MessageStore.open(root, read_only=True) as reader:
        assert reader.max_offset("Comp", 0) == 3 * 12 * 60 + 60


def test_an_append_that_makes_a_file_itself_breaks_the_order(tmp_path: Path, watch: Watch) -> None:
    with open_store(tmp_path / "s", watch) as store:
        writer = writer_of(store)
        with writer.appends.append_lock, pytest.raises(OrderError, match="GROW taken by who holds APPEND"):
            writer._growth.make(Need((("T", 0),), 100, 1))


def test_a_flush_within_growth_breaks_the_order(tmp_path: Path, watch: Watch) -> None:
    with open_store(tmp_path / "s", watch) as store:
        writer = writer_of(store)
        with writer._growth.grow_lock, pytest.raises(OrderError, match="FLUSH taken by who holds GROW"):
            store.flush()


def test_whoever_calls_the_disk_with_the_append_lock_is_seen(tmp_path: Path, watch: Watch) -> None:
    with open_store(tmp_path / "s", watch, flush_interval_ms=3_600_000) as store:
        store.put("T", b"x")
        writer = writer_of(store)
        with writer.appends.append_lock, pytest.raises(OrderError, match="with the append lock held"):
            writer.commit.ensure(store.max_phy_offset)
