"""What ``seglog bench`` measures: a store is filled, synced and read, and the disk below it is asked alone.

All work is real: what is counted was done, and the store is asked at the end whether it has all of it. Reads
are of what was written just now, so they come from the page cache as far as that has it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.errors import StoreError
from seglog.storage.store import MessageStore
from seglog.storage.writes import Durability

LEAST_SPACE_BYTES: Final = 64 << 20
PULL_MESSAGES: Final = 32
_TOPIC: Final = "bench"
_TAG: Final = "bench"
_LOOK_EVERY: Final = 64
"""Quick operations between two looks at the clock, as long as they are of few bytes."""
_LOOK_EVERY_BYTES: Final = 1 << 20
_PARTS: Final = 4
"""The log has files of this part of the space: what is written, what is left of a file, and the next one."""
_QUEUE_FILE_BYTES: Final = 6_000_000
_PAGE_BYTES: Final = 4096
_SYNCED_PAGES: Final = 256

Clock = Callable[[], float]
"""Seconds from any moment on."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What was done, and how long it took.

    Attributes:
        name: For programs.
        title: For people.
        operations: How many puts, syncs, messages read or gets.
        size_bytes: Of bodies, or of pages that were synced.
        took_s: All of them together.
        each_s: Each of them, in order of length; empty where they are too quick to be timed by themselves.
    """

    name: str
    title: str
    operations: int
    size_bytes: int
    took_s: float
    each_s: tuple[float, ...] = ()

    @property
    def per_second(self) -> float:
        """Operations a second."""
        return self.operations / self.took_s

    @property
    def bytes_per_second(self) -> float:
        """Bytes a second."""
        return self.size_bytes / self.took_s

    def within_s(self, share: float) -> float | None:
        """Returns what a share of the operations took at most, in seconds; None where none was timed.

        Args:
            share: From 0 to 1.
        """
        if not self.each_s:
            return None
        return self.each_s[min(len(self.each_s) - 1, int(share * len(self.each_s)))]


def measures(
    folder: Path, seconds: float, space_bytes: int, body_bytes: int, clock: Clock
) -> Iterator[Measure]:
    """Yields one measure after another, each once it is taken.

    Args:
        folder: Empty, and used by no other; what is made there stays.
        seconds: How long each measure lasts, at most and about.
        space_bytes: What the store takes at most, from :data:`LEAST_SPACE_BYTES` on.
        body_bytes: Of each message.
        clock: That times are taken of.

    Raises:
        StoreError: The store does not have what was put.
    """
    with MessageStore.open(
        folder / "store",
        small=True,
        segment_size_bytes=space_bytes // _PARTS,
        queue_file_size_bytes=_QUEUE_FILE_BYTES,
    ) as store:
        bench = _Bench(store, seconds, os.urandom(body_bytes), clock)
        yield bench.put_async(space_bytes * 3 // 8)
        yield bench.put_sync(space_bytes // 2)
        yield bench.sync_pages(folder / "pages")
        yield bench.read_in_order()
        yield bench.read_anywhere()
        bench.check()


class _Bench:
    def __init__(self, store: MessageStore, seconds: float, body: bytes, clock: Clock) -> None:
        self._store = store
        self._seconds = seconds
        self._body = body
        self._clock = clock
        self._stored = 0

    def put_async(self, end_phy_offset: int) -> Measure:
        """Puts that are in the page cache when they return; the store brings them to the disk meanwhile."""
        store, body, clock = self._store, self._body, self._clock
        at_once = max(1, min(_LOOK_EVERY, _LOOK_EVERY_BYTES // len(body)))
        count, began_s = 0, clock()
        while (took_s := clock() - began_s) < self._seconds and store.max_phy_offset < end_phy_offset:
            for _ in range(at_once):
                store.put(_TOPIC, body, tags=_TAG, durability=Durability.ASYNC)
            count += at_once
        self._stored += count
        return Measure("put-async", "put, ASYNC", count, count * len(body), took_s)

    def put_sync(self, end_phy_offset: int) -> Measure:
        """Puts of one thread, each on the disk when it returns; what was put before is there already."""
        store, body = self._store, self._body
        store.flush()

        def put() -> bool:
            store.put(_TOPIC, body, tags=_TAG, durability=Durability.SYNC)
            return store.max_phy_offset < end_phy_offset

        each_s = self._each(put)
        self._stored += len(each_s)
        return self._timed("put-sync", "put, SYNC", each_s, len(body))

    def sync_pages(self, file: Path) -> Measure:
        """The disk by itself: a page is written and synced again and again, where space is there for it."""
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.pwrite(descriptor, bytes(_PAGE_BYTES * _SYNCED_PAGES), 0)
            os.fsync(descriptor)
            page, number = os.urandom(_PAGE_BYTES), 0

            def sync() -> bool:
                nonlocal number
                os.pwrite(descriptor, page, number % _SYNCED_PAGES * _PAGE_BYTES)
                os.fdatasync(descriptor)
                number += 1
                return True

            return self._timed("fdatasync", "fdatasync of a page", self._each(sync), _PAGE_BYTES)
        finally:
            os.close(descriptor)

    def read_in_order(self) -> Measure:
        """All messages in order, 32 a pull, and the body of each; again and again."""
        store, clock = self._store, self._clock
        count, size_bytes, at, began_s = 0, 0, 0, clock()
        while (took_s := clock() - began_s) < self._seconds:
            found = store.get(_TOPIC, 0, at, PULL_MESSAGES)
            for message in found:
                size_bytes += len(message.body)
                count += 1
            at = found.next_offset if found.next_offset < self._stored else 0
        return Measure("read-in-order", "read in order", count, size_bytes, took_s)

    def read_anywhere(self) -> Measure:
        """One message anywhere, and its body."""
        store, clock, choose = self._store, self._clock, random.Random(1).randrange  # noqa: S311 - no secret
        count, size_bytes, began_s = 0, 0, clock()
        while (took_s := clock() - began_s) < self._seconds:
            for _ in range(_LOOK_EVERY):
                for message in store.get(_TOPIC, 0, choose(self._stored), 1):
                    size_bytes += len(message.body)
                    count += 1
        return Measure("get-anywhere", "get of one anywhere", count, size_bytes, took_s)

    def check(self) -> None:
        """Asks the store for its messages.

        Raises:
            StoreError: It has others.
        """
        found = self._store.max_offset(_TOPIC, 0)
        if found != self._stored:
            raise StoreError(f"the store has {found} messages, expected {self._stored}")

    def _each(self, step: Callable[[], bool]) -> list[float]:
        """Does a step until time is up or it says that there is no room; returns how long each took."""
        clock, each_s = self._clock, []
        last_s = clock()
        end_s, goes_on = last_s + self._seconds, True
        while goes_on and last_s < end_s:
            goes_on = step()
            now_s = clock()
            each_s.append(now_s - last_s)
            last_s = now_s
        return each_s

    def _timed(self, name: str, title: str, each_s: list[float], one_bytes: int) -> Measure:
        count = len(each_s)
        return Measure(name, title, count, count * one_bytes, sum(each_s), tuple(sorted(each_s)))
