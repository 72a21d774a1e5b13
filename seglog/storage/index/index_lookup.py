"""Finds the entries of a hash in an index file, with ``pread``: by their chain, or by a scan of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from seglog.storage.directory.index_files import (
    Entries,
    IndexFile,
    Numbers,
    entry_at,
    read_entry,
    read_padded,
)
from seglog.storage.files.files import Files, OpenFile
from seglog.storage.format.index.index import INDEX_ENTRY, INDEX_HEADER, INDEX_SLOT, decode_index_header
from seglog.storage.format.layout import I32_ITEMS

PlaceRun: TypeAlias = tuple[int] | Numbers
_SECOND_MS = 1000
_SHORT_CHAIN = 32
"""Entries of a chain that are always followed: few chains have more, unless all entries have one key."""
_DENSE_CHAIN = 256
"""Number of entries that are scanned in about the time of following a chain to the next entry."""
_NO_PLACES = np.empty(0, np.int64)
_FIRST_BLOCK = 8192
_LONGEST_BLOCK = 32768
"""The most entries that are read at a time; the number grows during a scan."""


class EntryScan:
    """Scans the entries of a file for those of one hash and a range of times.

    Args:
        handle: The open file.
        file: Its header and geometry.
        hashed: The hash.
        begin_ms: Earliest store time.
        end_ms: Latest store time.
    """

    def __init__(self, handle: OpenFile, file: IndexFile, hashed: int, begin_ms: int, end_ms: int) -> None:
        self.handle = handle
        self.file = file
        self.hashed = hashed
        self._begin_ms = begin_ms
        self._end_ms = end_ms
        self._buffer = np.empty(0, np.uint8)
        self._block = _FIRST_BLOCK
        self._as_stored = int(np.array(hashed, I32_ITEMS).view(np.int32))

    def block(self, end: int, least: int = 1) -> tuple[int, Numbers, Entries]:
        """Reads entries below ``end``, and not below ``least``, a block of them.

        Returns:
            The first one's number; numbers and content of those of the hash, newest first, behind the last
            one of all, which may have another hash.
        """
        start = max(least, end - self._block)
        self._block = min(2 * self._block, _LONGEST_BLOCK)
        size_bytes = (end - start) * INDEX_ENTRY.size_bytes
        if size_bytes > len(self._buffer):
            self._buffer = np.empty(size_bytes, np.uint8)
        block = self._buffer[:size_bytes]
        block[self.handle.read_into(memoryview(block), entry_at(self.file, start)) :] = 0  # type: ignore[arg-type]
        # Compared in the machine's byte order: otherwise numpy would first swap the bytes of every number.
        hashes: npt.NDArray[np.int32] = np.ndarray(
            end - start, np.int32, block, strides=INDEX_ENTRY.size_bytes
        )
        numbers = np.append(np.flatnonzero(hashes == self._as_stored), end - start - 1)[::-1]
        return start, numbers + start, block.view(INDEX_ENTRY.dtype)[numbers]

    def in_time(self, numbers: Numbers, entries: Entries) -> tuple[Numbers, bool]:
        """Returns where entries lead to, newest first, and whether those before them are too old.

        Args:
            numbers: Theirs, behind that of one that has only the time.
            entries: Their content, and that one's.
        """
        if len(numbers) == 1:
            diff_s = int(entries["time_diff_s"][0])
            time_ms = self.file.header.begin_timestamp_ms + (_SECOND_MS * diff_s if numbers[0] > 1 else 0)
            return _NO_PLACES, diff_s < 0 or time_ms + _SECOND_MS <= self._begin_ms
        diffs_s = entries["time_diff_s"].astype(np.int64)
        # The difference of entry 1 is relative to the end of the file before, but its time is the file's
        # begin.
        times = self.file.header.begin_timestamp_ms + _SECOND_MS * np.where(numbers > 1, diffs_s, 0)
        too_old = np.flatnonzero((diffs_s < 0) | (times + _SECOND_MS <= self._begin_ms))
        taken = slice(1, int(too_old[0]) if len(too_old) else None)
        found = entries["phy_offset"][taken][times[taken] <= self._end_ms].astype(np.int64)
        return found, len(too_old) > 0


def iter_places(files: Files, file: IndexFile, hashed: int, begin_ms: int, end_ms: int) -> Iterator[int]:
    """Yields the physical offsets of a hash's entries in a range of times, newest first."""
    for run in iter_place_runs(files, file, hashed, begin_ms, end_ms):
        yield from run.tolist() if isinstance(run, np.ndarray) else run


def iter_place_runs(
    files: Files,
    file: IndexFile,
    hashed: int,
    begin_ms: int,
    end_ms: int,
    beyond: Callable[[EntryScan, int], Iterator[Numbers] | None] | None = None,
) -> Iterator[PlaceRun]:
    """Yields places as :func:`iter_places` does, one or many at a time.

    A chain that is long and dense, as keys chosen for one slot make it, is not followed entry by entry: the
    rest of the file is scanned for the hash. So is that of a damaged chain, which does not lead backwards, so
    that its time is linear for any bytes.

    Args:
        files: The file layer of the store.
        file: One of its files.
        hashed: The hash.
        begin_ms: Earliest store time.
        end_ms: Latest store time.
        beyond: Asked before each block of a scan for the rest, with the entry that it comes before; None
            from it for going on.
    """
    with closing(files.open(file.path, writable=False)) as handle:
        slot_at = INDEX_HEADER.size_bytes + hashed % file.geometry.slot_count * INDEX_SLOT.size_bytes
        entry = int(INDEX_SLOT.struct.unpack(read_padded(handle, slot_at, INDEX_SLOT.size_bytes))[0])
        header = decode_index_header(read_padded(handle, 0, INDEX_HEADER.size_bytes))
        below = min(header.index_count, file.geometry.entry_count)
        newest, walked = entry, 0
        while entry != 0:
            if not 0 < entry < below:  # no writer leads a chain forward: it is damaged
                yield from _iter_scanned(EntryScan(handle, file, hashed, begin_ms, end_ms), below, beyond)
                return
            if walked >= _SHORT_CHAIN and newest - entry < walked * _DENSE_CHAIN:
                yield from _iter_scanned(EntryScan(handle, file, hashed, begin_ms, end_ms), entry + 1, beyond)
                return
            below = entry
            its_hash, phy_offset, diff_s, entry = INDEX_ENTRY.struct.unpack(read_entry(handle, file, entry))
            # The difference of entry 1 is relative to the end of the file before, but its time is the file's
            # begin.
            time_ms = file.header.begin_timestamp_ms + (_SECOND_MS * diff_s if below > 1 else 0)
            if diff_s < 0 or time_ms + _SECOND_MS <= begin_ms:
                return
            if its_hash == hashed and time_ms <= end_ms:
                yield (phy_offset,)
            walked += 1


def _iter_scanned(
    scan: EntryScan, end: int, beyond: Callable[[EntryScan, int], Iterator[Numbers] | None] | None
) -> Iterator[Numbers]:
    """Yields the physical offsets of entries below ``end`` that have the hash, a block at a time."""
    while end > 1:
        rest = None if beyond is None else beyond(scan, end)
        if rest is not None:
            yield from rest
            return
        end, numbers, entries = scan.block(end)
        found, is_over = scan.in_time(numbers, entries)
        if len(found):
            yield found
        if is_over:
            return
