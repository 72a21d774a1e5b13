"""The measures of ``seglog bench``: a store is filled, synced and read; the disk is also measured alone.

All measured work is done by a real store, and a check at the end compares its messages with the number of
puts. Reads are of messages that were written just before, so they come from the page cache if it holds them.
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
"""Number of quick operations between two looks at the clock, if they have few bytes."""
_LOOK_EVERY_BYTES: Final = 1 << 20
_PARTS: Final = 4
"""A log file has this part of the space: for written data, the unused rest of a file, and the next file."""
_QUEUE_FILE_BYTES: Final = 6_000_000
_PAGE_BYTES: Final = 4096
_SYNCED_PAGES: Final = 256

Clock = Callable[[], float]
"""Returns seconds since some fixed moment."""


@dataclass(frozen=True, slots=True)
class Measure:
    """The result of one measure.

    Attributes:
        name: Name for programs.
        title: Name for people.
        operations: Number of puts, syncs, messages read or gets.
        size_bytes: Bytes of message bodies, or of pages that were synced.
        took_s: Duration of all operations together.
        each_s: Duration of each operation, sorted; empty if they are too quick to be timed singly.
    """

    name: str
    title: str
    operations: int
    size_bytes: int
    took_s: float
    each_s: tuple[float, ...] = ()

    @property
    def per_second(self) -> float:
        """Operations per second."""
        return self.operations / self.took_s

    @property
    def bytes_per_second(self) -> float:
        """Bytes per second."""
        return self.size_bytes / self.took_s

    def within_s(self, share: float) -> float | None:
        """Returns the duration within which a share of the operations ended, in seconds; None if not timed.

        Args:
            share: The share, from 0 to 1.
        """
        if not self.each_s:
            return None
        return self.each_s[min(len(self.each_s) - 1, int(share * len(self.each_s)))]


def measures(
    folder: Path, seconds: float, space_bytes: int, body_bytes: int, clock: Clock
) -> Iterator[Measure]:
    """Yields the measures, each when it is done.

    Args:
        folder: An empty folder that only this call uses; its files are not removed.
        seconds: Approximate longest duration of each measure.
        space_bytes: Most space that the store takes, at least :data:`LEAST_SPACE_BYTES`.
        body_bytes: Length of each message body.
        clock: The clock for all times.

    Raises:
        StoreError: The store does not hold the messages that were put.
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
        """Measures puts that return when they are in the page cache; the store flushes them meanwhile."""
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
        """Measures puts of one thread, each on the disk when it returns; earlier puts are there already."""
        store, body = self._store, self._body
        store.flush()

        def put() -> bool:
            store.put(_TOPIC, body, tags=_TAG, durability=Durability.SYNC)
            return store.max_phy_offset < end_phy_offset

        each_s = self._each(put)
        self._stored += len(each_s)
        return self._timed("put-sync", "put, SYNC", each_s, len(body))

    def sync_pages(self, file: Path) -> Measure:
        """Measures the disk without a store: writes and syncs one page repeatedly, in allocated space."""
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
        """Measures reads of all messages in order, 32 for each pull, with their bodies, repeatedly."""
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
        """Measures reads of single messages at random places, with their bodies."""
        store, clock, choose = self._store, self._clock, random.Random(1).randrange  # noqa: S311 - no secret
        count, size_bytes, began_s = 0, 0, clock()
        while (took_s := clock() - began_s) < self._seconds:
            for _ in range(_LOOK_EVERY):
                for message in store.get(_TOPIC, 0, choose(self._stored), 1):
                    size_bytes += len(message.body)
                    count += 1
        return Measure("get-anywhere", "get of one anywhere", count, size_bytes, took_s)

    def check(self) -> None:
        """Checks that the store holds the messages that were put.

        Raises:
            StoreError: It holds others.
        """
        found = self._store.max_offset(_TOPIC, 0)
        if found != self._stored:
            raise StoreError(f"the store has {found} messages, expected {self._stored}")

    def _each(self, step: Callable[[], bool]) -> list[float]:
        """Repeats a step until time is up or the step finds no more space; returns the durations."""
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
