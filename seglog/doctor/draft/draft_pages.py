"""The changed pages of a draft: which pages of a file, as runs, and what they hold, in a temporary file.

Runs, because one stretch of zeros may be as long as a file; a temporary file, because a repair may write
every queue of a store anew.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from seglog.storage.segments import Scratch

PAGE_BYTES: Final = 4096
ZEROS: Final = -1
"""The slot of pages that hold nothing."""
_IN_MEMORY_BYTES: Final = 8 << 20
_FIRST_IN_FILE: Final = _IN_MEMORY_BYTES // PAGE_BYTES + 1
"""Not the one behind those in memory: no run is in both."""


class Run(NamedTuple):
    """Pages behind each other.

    Attributes:
        first: Number of the first in its file.
        pages: How many.
        slot: Where the first is in the pool, the others behind it; :data:`ZEROS` if they hold nothing.
    """

    first: int
    pages: int
    slot: int

    @property
    def end(self) -> int:
        """Number of the page behind them."""
        return self.first + self.pages

    def between(self, first: int, end: int) -> Run:
        """Returns the part of it within ``[first, end)``, which has some."""
        low, high = max(first, self.first), min(end, self.end)
        return Run(low, high - low, self.slot if self.slot == ZEROS else self.slot + low - self.first)

    def is_continued_by(self, later: Run) -> bool:
        """Whether both are one."""
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
        """Yields what is within ``[first, end)``."""
        for at in range(self._at(first), len(self._runs)):
            if self._runs[at].first >= end:
                return
            yield self._runs[at].between(first, end)

    def put(self, run: Run) -> None:
        """Lays a run over what is there."""
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
        """Forgets the pages of ``[first, end)``."""
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
        """Returns how many pages there are in them."""
        return sum(run.pages for run in self._runs)

    def _at(self, page: int) -> int:
        """Returns the index of the first run that ends behind a page."""
        at = bisect_right(self._runs, page, key=lambda run: run.first)
        return at - 1 if at and self._runs[at - 1].end > page else at


class PagePool:
    """What the changed pages of all files of a draft hold: the first in memory, the others in a file."""

    def __init__(self) -> None:
        self._memory = bytearray()
        self._scratch: Scratch | None = None
        self._end = _FIRST_IN_FILE  # slot behind the last in the file

    def add(self, pages: bytes | memoryview) -> int:
        """Keeps whole pages; returns the slot of the first.

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
        """Writes over bytes of a page, or of several in a row.

        Raises:
            FullError: There is no space for them.
        """
        at = slot * PAGE_BYTES + position
        if slot < _FIRST_IN_FILE or self._scratch is None:
            self._memory[at : at + len(data)] = data
        else:
            self._scratch.write_at(data, at)

    def read(self, slot: int, position: int, size_bytes: int) -> bytes:
        """Returns bytes of a page, or of several in a row."""
        at = slot * PAGE_BYTES + position
        if slot < _FIRST_IN_FILE or self._scratch is None:
            return bytes(self._memory[at : at + size_bytes])
        return self._scratch.read(at, size_bytes)
