"""One file of a draft: the bytes of a real file, with changes on top.

Changes are kept by page of 4 KiB, in runs, so that filling a lost segment of 1 GiB takes little memory. A
file that is mapped for reading is the real file's own map; the changed pages are written over it in a private
mapping. A file that is mapped for writing is copied into a temporary file first, because writes through a map
cannot be observed. No memory use here depends on the length of a file.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from seglog.doctor.draft.draft_pages import PAGE_BYTES, ZEROS, PagePool, PageRuns, Run
from seglog.storage.files import Files, OpenFile
from seglog.storage.segments import Scratch

_COPIED_BYTES: Final = 1 << 20
_MAX_LAID_PAGES: Final = 1024
"""Pages written over a private map take memory; a file with more changed pages is read without a map."""


class DraftNode:
    """The contents of a file, independent of its name.

    Attributes:
        base: The real file that it began as, None for a file that the draft created.
        size_bytes: Its length.
        base_bytes: Length of the real file's part that is visible where no page covers it.
        was_bytes: The length of the real file.
        runs: Changed pages.
        pool: The contents of the changed pages.
        mapped: The whole contents, once it was mapped for writing.
    """

    __slots__ = (
        "base",
        "base_bytes",
        "mapped",
        "pool",
        "reserved_bytes",
        "runs",
        "scratch",
        "size_bytes",
        "was_bytes",
    )

    def __init__(self, base: Path | None, size_bytes: int, pool: PagePool) -> None:
        self.base = base
        self.size_bytes = size_bytes
        self.base_bytes = self.was_bytes = 0 if base is None else size_bytes
        self.runs = PageRuns()
        self.pool = pool
        self.reserved_bytes = 0
        self.scratch: Scratch | None = None
        self.mapped: memoryview | None = None

    @property
    def is_touched(self) -> bool:
        """Whether the file was written, or may have been."""
        is_whole = self.base_bytes == self.size_bytes == self.was_bytes
        return bool(self.runs) or self.mapped is not None or not is_whole

    def resize(self, size_bytes: int) -> None:
        """Cuts the file, or extends it by zeros."""
        if not size_bytes:
            self.mapped = self.scratch = None  # no memory area is empty
        elif self.scratch is not None and self.mapped is not None:
            # A new memory area, because the old one may still be in use.
            before, self.scratch = self.scratch, Scratch(size_bytes)
            _copy_scratch(before, self.scratch, min(size_bytes, self.size_bytes))
            self.mapped = memoryview(self.scratch.map())
        if size_bytes < self.size_bytes:
            self.base_bytes = min(self.base_bytes, size_bytes)
            last, rest = divmod(size_bytes, PAGE_BYTES)
            for run in self.runs.between(last, last + 1):
                if rest and run.slot != ZEROS:
                    self.pool.write(bytes(PAGE_BYTES - rest), run.slot, rest)
            self.runs.remove(last + bool(rest), self.size_bytes // PAGE_BYTES + 1)
            self.reserved_bytes = min(self.reserved_bytes, size_bytes)
        self.size_bytes = size_bytes

    def empty(self) -> None:
        """Discards all contents."""
        self.mapped = self.scratch = None
        self.runs = PageRuns()
        self.size_bytes = self.base_bytes = self.reserved_bytes = 0

    def changed_stretches(self) -> Iterator[tuple[int, int]]:
        """Yields start and end of stretches that may differ from the real file, in order."""
        if self.mapped is None:
            for run in self.runs:
                yield run.first * PAGE_BYTES, min(run.end * PAGE_BYTES, self.size_bytes)
        else:
            yield 0, self.size_bytes


class DraftFile:
    """An open file of a draft.

    Args:
        node: Its contents.
        files: Access to the real file.
        writable: Whether writes through its map count.
        is_copied: Whether it may be copied to map it for reading. Log files are long, so they are not copied;
            they are read if they cannot be mapped.
    """

    def __init__(
        self, node: DraftNode, files: Files, *, writable: bool = True, is_copied: bool = True
    ) -> None:
        self._node = node
        self._writable = writable
        self._is_copied = is_copied
        self._base: OpenFile | None = None if node.base is None else files.open(node.base, writable=False)

    @property
    def size_bytes(self) -> int:
        """Length of the file now."""
        return self._node.size_bytes

    @property
    def descriptor(self) -> int:
        """None: a draft has no file descriptor that others could write to."""
        return -1

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Reads the real file, and the pages over it."""
        node = self._node
        count = max(0, min(len(buffer), node.size_bytes - position))
        if node.mapped is not None:
            buffer[:count] = node.mapped[position : position + count]
            return count
        from_base = max(0, min(count, node.base_bytes - position))
        if from_base and self._base is not None:
            from_base = self._base.read_into(buffer[:from_base], position)
        else:
            from_base = 0
        buffer[from_base:count] = bytes(count - from_base)
        if node.runs:
            self._lay_pages(buffer[:count], position)
        return count

    def write_at(self, data: bytes | bytearray | memoryview, position: int) -> None:
        """Writes into pages of the draft."""
        node = self._node
        end = position + len(data)
        if node.mapped is not None:
            if end > node.size_bytes:
                node.resize(end)
            self.reserve(position, len(data))
            node.mapped[position:end] = data
            return
        view = memoryview(data)
        whole = -(-position // PAGE_BYTES) * PAGE_BYTES, end // PAGE_BYTES * PAGE_BYTES
        if whole[0] > whole[1]:
            self._write_part(view, position)
        else:
            if position < whole[0]:
                self._write_part(view[: whole[0] - position], position)
            self._write_pages(view[whole[0] - position : whole[1] - position], whole[0] // PAGE_BYTES)
            if whole[1] < end:
                self._write_part(view[whole[1] - position :], whole[1])
        node.size_bytes = max(node.size_bytes, end)

    def next_data(self, position: int) -> int | None:
        """Returns the next position at which the real file or a page has data."""
        node = self._node
        if node.scratch is not None and node.mapped is not None:
            return node.scratch.next_data(position)
        at: int | None = position
        while at is not None and at < node.size_bytes:
            base = self._next_of_base(at)
            run = next(node.runs.between(at // PAGE_BYTES, node.size_bytes // PAGE_BYTES + 1), None)
            if run is None or (base is not None and base < run.first * PAGE_BYTES):
                return base
            if run.slot != ZEROS:
                return max(at, run.first * PAGE_BYTES)
            at = run.end * PAGE_BYTES
        return None

    def set_size(self, size_bytes: int) -> None:
        """Cuts the file or extends it."""
        self._node.resize(size_bytes)

    def reserve(self, position: int, size_bytes: int) -> None:
        """Extends the file if it is shorter, as reserving space on a disk does."""
        node = self._node
        end = position + size_bytes
        if end > node.size_bytes:
            node.resize(end)
        if node.scratch is not None:
            node.scratch.reserve(position, size_bytes)
        else:
            node.reserved_bytes = max(node.reserved_bytes, end)

    def map(self) -> memoryview:
        """Returns the file as memory.

        Raises:
            OSError: It cannot be mapped without being copied, and must not be.
            FullError: There is no space for a copy.
        """
        node = self._node
        if node.mapped is not None:
            return node.mapped
        memory = None if self._writable or self._base is None else self._map_over(self._base)
        if memory is not None:
            return memory
        if not self._writable and not self._is_copied:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        scratch = Scratch(node.size_bytes)
        scratch.reserve(0, node.reserved_bytes)
        memory = memoryview(scratch.map())
        at = self.next_data(0)
        while at is not None:
            end = min(at + _COPIED_BYTES, node.size_bytes)
            scratch.reserve(at, end - at)
            self.read_into(memory[at:end], at)
            at = self.next_data(end) if end < node.size_bytes else None
        node.scratch, node.mapped = scratch, memory
        node.runs = PageRuns()
        return memory

    def sync(self) -> None:
        """Does nothing: a draft has nothing on a disk."""

    def close(self) -> None:
        """Closes the real file."""
        if self._base is not None:
            self._base.close()
            self._base = None

    def _map_over(self, base: OpenFile) -> memoryview | None:
        """Returns a private map of the real file, with the changed pages written over it.

        None if the real file has another length, or too many pages were changed.
        """
        node = self._node
        if node.base_bytes != node.size_bytes or node.runs.page_count() > _MAX_LAID_PAGES:
            return None
        if not node.runs:
            return base.map()[: node.size_bytes]
        if base.descriptor < 0:
            return None
        memory = memoryview(mmap.mmap(base.descriptor, node.size_bytes, access=mmap.ACCESS_COPY))
        for run in node.runs:
            start, end = run.first * PAGE_BYTES, min(run.end * PAGE_BYTES, node.size_bytes)
            memory[start:end] = self._content(run, 0, end - start)
        return memory.toreadonly()

    def _next_of_base(self, position: int) -> int | None:
        node = self._node
        if self._base is None or position >= node.base_bytes:
            return None
        found = self._base.next_data(position)
        return None if found is None or found >= node.base_bytes else found

    def _write_pages(self, view: memoryview, first: int) -> None:
        """Writes whole pages."""
        node = self._node
        if not len(view):
            return
        has_data = np.frombuffer(view, np.uint64).reshape(-1, PAGE_BYTES // 8).max(axis=1) > 0
        edges = [0, *(np.flatnonzero(has_data[1:] != has_data[:-1]) + 1).tolist(), len(has_data)]
        for start, end in pairwise(edges):
            slot = ZEROS
            if has_data[start]:
                slot = node.pool.add(view[start * PAGE_BYTES : end * PAGE_BYTES])
            node.runs.put(Run(first + start, end - start, slot))

    def _write_part(self, view: memoryview, position: int) -> None:
        """Writes less than a page, within one page."""
        number, at = divmod(position, PAGE_BYTES)
        page = bytearray(PAGE_BYTES)
        self.read_into(memoryview(page), number * PAGE_BYTES)
        page[at : at + len(view)] = view
        known = next(self._node.runs.between(number, number + 1), None)
        if known is not None and known.slot != ZEROS:
            self._node.pool.write(bytes(page), known.slot, 0)
        else:
            self._write_pages(memoryview(page), number)

    def _lay_pages(self, buffer: memoryview, position: int) -> None:
        end = position + len(buffer)
        for run in self._node.runs.between(position // PAGE_BYTES, -(-end // PAGE_BYTES)):
            start = run.first * PAGE_BYTES
            low, high = max(start, position), min(run.end * PAGE_BYTES, end)
            buffer[low - position : high - position] = self._content(run, low - start, high - low)

    def _content(self, run: Run, position: int, size_bytes: int) -> bytes:
        return (
            bytes(size_bytes) if run.slot == ZEROS else self._node.pool.read(run.slot, position, size_bytes)
        )


def _copy_scratch(source: Scratch, target: Scratch, size_bytes: int) -> None:
    held, memory = memoryview(source.map()), memoryview(target.map())
    at = source.next_data(0)
    while at is not None and at < size_bytes:
        end = min(at + _COPIED_BYTES, size_bytes)
        target.reserve(at, end - at)
        memory[at:end] = held[at:end]
        at = source.next_data(end)
