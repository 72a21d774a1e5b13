"""The changed pages of a draft: their numbers as runs, and their contents in memory and a temporary file.

Runs are used because one stretch of zeros may be as long as a file; a temporary file, because a repair may
rewrite every queue of a store.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from seglog.storage.segments import Scratch

PAGE_BYTES: Final = 4096
ZEROS: Final = -1
"""The slot of pages that are all zeros."""
_IN_MEMORY_BYTES: Final = 8 << 20
_FIRST_IN_FILE: Final = _IN_MEMORY_BYTES // PAGE_BYTES + 1
"""One slot after those in memory is unused, so that no run is in both."""


class Run(NamedTuple):
    """Consecutive pages.

    Attributes:
        first: Number of the first page in its file.
        pages: Number of pages.
        slot: Slot of the first page in the pool, the others follow it; :data:`ZEROS` if all are zeros.
    """

    first: int
    pages: int
    slot: int

    @property
    def end(self) -> int:
        """Number of the page after them."""
        return self.first + self.pages

    def between(self, first: int, end: int) -> Run:
        """Returns the part of the run within ``[first, end)``, which must not be empty."""
        low, high = max(first, self.first), min(end, self.end)
        return Run(low, high - low, self.slot if self.slot == ZEROS else self.slot + low - self.first)

    def is_continued_by(self, later: Run) -> bool:
        """Returns whether both runs can be joined."""
        slot = ZEROS if self.slot == ZEROS else self.slot + self.pages
        return self.end == later.first and slot == later.slot


class PageRuns:
    """The changed pages of one file, in order."""

    def __init__(self) -> None:
        self._runs: list[Run] = []

    def __bool__(self) -> bool:
        return bool(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def between(self, first: int, end: int) -> Iterator[Run]:
        """Yields the parts of runs within ``[first, end)``."""
        for at in range(self._at(first), len(self._runs)):
            if self._runs[at].first >= end:
                return
            yield self._runs[at].between(first, end)

    def put(self, run: Run) -> None:
        """Adds a run, which replaces pages that it overlaps."""
        self.remove(run.first, run.end)
        at = self._at(run.first)
        if at and self._runs[at - 1].is_continued_by(run):
            at -= 1
            before = self._runs.pop(at)
            run = Run(before.first, before.pages + run.pages, before.slot)
        if at < len(self._runs) and run.is_continued_by(self._runs[at]):
            run = Run(run.first, run.pages + self._runs.pop(at).pages, run.slot)
        self._runs.insert(at, run)

    def remove(self, first: int, end: int) -> None:
        """Discards the pages of ``[first, end)``."""
        at = self._at(first)
        stop = at
        left: list[Run] = []
        while stop < len(self._runs) and self._runs[stop].first < end:
            run = self._runs[stop]
            left += [
                run.between(low, high) for low, high in ((run.first, first), (end, run.end)) if low < high
            ]
            stop += 1
        self._runs[at:stop] = left

    def page_count(self) -> int:
        """Returns the number of pages in all runs."""
        return sum(run.pages for run in self._runs)

    def _at(self, page: int) -> int:
        """Returns the index of the first run that ends after a page."""
        at = bisect_right(self._runs, page, key=lambda run: run.first)
        return at - 1 if at and self._runs[at - 1].end > page else at


class PagePool:
    """The contents of the changed pages of all files of a draft: the first in memory, others in a file."""

    def __init__(self) -> None:
        self._memory = bytearray()
        self._scratch: Scratch | None = None
        self._end = _FIRST_IN_FILE  # the slot after the last one in the file

    def add(self, pages: bytes | memoryview) -> int:
        """Stores whole pages; returns the slot of the first.

        Raises:
            FullError: There is no space for them.
        """
        if len(self._memory) + len(pages) <= _IN_MEMORY_BYTES:
            slot = len(self._memory) // PAGE_BYTES
            self._memory += pages
            return slot
        self._scratch = self._scratch or Scratch()
        slot, self._end = self._end, self._end + len(pages) // PAGE_BYTES
        self.write(pages, slot, 0)
        return slot

    def write(self, data: bytes | memoryview, slot: int, position: int) -> None:
        """Overwrites bytes of a page, or of several consecutive pages.

        Raises:
            FullError: There is no space for them.
        """
        at = slot * PAGE_BYTES + position
        if slot < _FIRST_IN_FILE or self._scratch is None:
            self._memory[at : at + len(data)] = data
        else:
            self._scratch.write_at(data, at)

    def read(self, slot: int, position: int, size_bytes: int) -> bytes:
        """Returns bytes of a page, or of several consecutive pages."""
        at = slot * PAGE_BYTES + position
        if slot < _FIRST_IN_FILE or self._scratch is None:
            return bytes(self._memory[at : at + size_bytes])
        return self._scratch.read(at, size_bytes)
