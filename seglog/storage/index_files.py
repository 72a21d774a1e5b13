"""The key-index files of a store as they lie there, and lookups in them through ``pread``.

Truth: none. A file that does not explain itself counts as absent; what it should have covered is looked up
in the log instead.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from seglog.arguments import as_int
from seglog.errors import CorruptError, InvalidArgumentError
from seglog.storage.files import Files, OpenFile
from seglog.storage.format.index import (
    INDEX_ENTRY,
    INDEX_HEADER,
    INDEX_SLOT,
    IndexGeometry,
    IndexHeader,
    decode_index_header,
    is_index_file_name,
)
from seglog.storage.format.index_geometry import infer_index_geometry
from seglog.storage.format.names import INDEX

Numbers: TypeAlias = npt.NDArray[np.int64]
Entries: TypeAlias = npt.NDArray[np.void]
PlaceRun: TypeAlias = tuple[int] | Numbers
_SECOND_MS = 1000
_DEFAULT_RATIO = 4
_CHUNK_BYTES = 4 << 20
_SHORT_CHAIN = 32
"""So many entries of a chain are followed in any case: hardly any chain has more, unless all have one key."""
_DENSE_CHAIN = 256
"""Scanning so many entries takes about as long as following a chain to the next one."""
_BLOCK_ENTRIES = 8192
MAX_INDEX_FILE_BYTES = 1 << 30
"""More than twice RocketMQ's default division; a longer file is not read."""
_LEAST_ENTRIES = 2
"""The first entry of a file is never used."""


@dataclass(frozen=True, slots=True)
class IndexFile:
    """One file of the index, as it was when it was looked at."""

    path: Path
    header: IndexHeader
    geometry: IndexGeometry

    @property
    def is_full(self) -> bool:
        """Whether the next entry needs another file."""
        return self.header.index_count >= self.geometry.entry_count


def list_index_files(
    files: Files, root: Path, likely: IndexGeometry | None = None
) -> tuple[list[IndexFile], list[Path]]:
    """Returns the files of the index in order, and those that cannot be understood.

    Args:
        files: Where the store is.
        root: The store directory.
        likely: Division that they had when they were looked at before.
    """
    folder = root / INDEX
    named = [
        (folder / entry.name, entry.size_bytes)
        for entry in files.list_dir(folder)
        if not entry.is_dir and is_index_file_name(entry.name)
    ]
    return understood(files, named, likely)


def understood(
    files: Files, named: Iterable[tuple[Path, int]], likely: IndexGeometry | None = None
) -> tuple[list[IndexFile], list[Path]]:
    """Returns index files as they are, and those that cannot be understood.

    Args:
        files: Where they are.
        named: Path and length of each, in order.
        likely: Division that is tried first.
    """
    found: list[IndexFile] = []
    damaged: list[Path] = []
    for path, size_bytes in named:
        try:
            file = _look(files, path, size_bytes, likely)
        except FileNotFoundError:  # retention took it while we looked
            continue
        except CorruptError:
            damaged.append(path)
        else:
            likely = file.geometry
            found.append(file)
    return found, damaged


def iter_places(files: Files, file: IndexFile, hashed: int, begin_ms: int, end_ms: int) -> Iterator[int]:
    """Yields the places that a hash's entries of some time lead to, newest first."""
    for run in iter_place_runs(files, file, hashed, begin_ms, end_ms):
        yield from run.tolist() if isinstance(run, np.ndarray) else run


def iter_place_runs(
    files: Files, file: IndexFile, hashed: int, begin_ms: int, end_ms: int
) -> Iterator[PlaceRun]:
    """Yields places as :func:`iter_places` does, one or many at a time.

    Ends where a damaged chain stops leading backwards, so it is linear whatever the bytes are. A chain that
    is long and dense, as keys of one slot make it that somebody chose, is not followed entry by entry: what
    is left of the file is scanned for the hash.
    """
    handle = files.open(file.path, writable=False)
    try:
        slot_at = INDEX_HEADER.size_bytes + hashed % file.geometry.slot_count * INDEX_SLOT.size_bytes
        entry = int(INDEX_SLOT.struct.unpack(_read(handle, slot_at, INDEX_SLOT.size_bytes))[0])
        header = decode_index_header(_read(handle, 0, INDEX_HEADER.size_bytes))
        below = min(header.index_count, file.geometry.entry_count)
        newest, walked = entry, 0
        while 0 < entry < below:
            if walked >= _SHORT_CHAIN and newest - entry < walked * _DENSE_CHAIN:
                yield from _iter_scanned(handle, file, hashed, entry + 1, (begin_ms, end_ms))
                return
            below = entry
            its_hash, phy_offset, diff_s, entry = INDEX_ENTRY.struct.unpack(_read_entry(handle, file, entry))
            # The difference of entry 1 counts from the end of the file before, but its time is known.
            time_ms = file.header.begin_timestamp_ms + (_SECOND_MS * diff_s if below > 1 else 0)
            if diff_s < 0 or time_ms + _SECOND_MS <= begin_ms:
                return
            if its_hash == hashed and time_ms <= end_ms:
                yield (phy_offset,)
            walked += 1
    finally:
        handle.close()


def _iter_scanned(
    handle: OpenFile, file: IndexFile, hashed: int, end: int, times_ms: tuple[int, int]
) -> Iterator[Numbers]:
    """Yields the places of entries below ``end`` that have the hash, a block at a time."""
    begin_ms, end_ms = times_ms
    buffer = np.empty(_BLOCK_ENTRIES * INDEX_ENTRY.size_bytes, np.uint8)
    as_stored = int.from_bytes(hashed.to_bytes(4, "big"), sys.byteorder, signed=True)
    while end > 1:
        start = max(1, end - _BLOCK_ENTRIES)
        block = buffer[: (end - start) * INDEX_ENTRY.size_bytes]
        block[handle.read_into(memoryview(block), _entry_at(file, start)) :] = 0  # type: ignore[arg-type]
        # Compared as the machine's numbers: numpy would turn every one around first.
        hashes: npt.NDArray[np.int32] = np.ndarray(
            end - start, np.int32, block, strides=INDEX_ENTRY.size_bytes
        )
        numbers = np.append(np.flatnonzero(hashes == as_stored), end - start - 1)[::-1]
        entries = block.view(INDEX_ENTRY.dtype)[numbers]
        diffs_s = entries["time_diff_s"].astype(np.int64)
        times = file.header.begin_timestamp_ms + _SECOND_MS * np.where(numbers + start > 1, diffs_s, 0)
        too_old = np.flatnonzero((diffs_s < 0) | (times + _SECOND_MS <= begin_ms))
        taken = slice(1, int(too_old[0]) if len(too_old) else None)  # the first one is the block's last
        found = entries["phy_offset"][taken][times[taken] <= end_ms].astype(np.int64)
        if len(found):
            yield found
        if len(too_old):
            return
        end = start


def count_last(files: Files, file: IndexFile, phy_offset: int) -> int:
    """Returns how many of the last entries are of the record at ``phy_offset``."""
    handle = files.open(file.path, writable=False)
    try:
        entry = file.header.index_count - 1
        while entry > 0 and INDEX_ENTRY.struct.unpack(_read_entry(handle, file, entry))[1] == phy_offset:
            entry -= 1
    finally:
        handle.close()
    return file.header.index_count - 1 - entry


def read_entries(files: Files, file: IndexFile, numbers: range) -> Entries:
    """Returns entries of a file, one behind the other; zeros where it is shorter."""
    handle = files.open(file.path, writable=False)
    try:
        size_bytes = len(numbers) * INDEX_ENTRY.size_bytes
        return np.frombuffer(_read(handle, _entry_at(file, numbers.start), size_bytes), INDEX_ENTRY.dtype)
    finally:
        handle.close()


def hashes_at(files: Files, file: IndexFile, phy_offset: int, store_ms: int | None = None) -> set[int]:
    """Returns the key hashes of the entries that lead to a record, found by its place.

    Entries lie in the order of the log; where damage broke that order, some may not be found.

    Args:
        files: Where the index is.
        file: One of its files.
        phy_offset: Where the record starts.
        store_ms: Its time: entries of another time, as of an older life of the log, are left out.
    """
    numbers = range(1, min(file.header.index_count, file.geometry.entry_count))
    found: set[int] = set()
    handle = files.open(file.path, writable=False)
    try:

        def place_of(entry: int) -> int:
            return int(INDEX_ENTRY.struct.unpack(_read_entry(handle, file, entry))[1])

        for entry in numbers[bisect_left(numbers, phy_offset, key=place_of) :]:
            hashed, place, diff_s, _next = INDEX_ENTRY.struct.unpack(_read_entry(handle, file, entry))
            if place != phy_offset:
                break
            # The difference of entry 1 counts from the end of the file before.
            seconds = None if store_ms is None or entry == 1 else store_ms - file.header.begin_timestamp_ms
            if seconds is None or diff_s == max(0, seconds // _SECOND_MS):
                found.add(hashed)
    finally:
        handle.close()
    return found


def load_index_file(files: Files, path: Path) -> memoryview:
    """Returns a whole file; pages that were never written take no memory."""
    handle = files.open(path, writable=False)
    try:
        buffer = memoryview(np.zeros(handle.size_bytes, np.uint8))  # type: ignore[arg-type]  # numpy is a buffer
        at = handle.next_data(0)
        while at is not None:
            at += handle.read_into(buffer[at : at + _CHUNK_BYTES], at)
            at = handle.next_data(at)
    finally:
        handle.close()
    return buffer


def _look(files: Files, path: Path, size_bytes: int, likely: IndexGeometry | None) -> IndexFile:
    if size_bytes > MAX_INDEX_FILE_BYTES:
        raise CorruptError("index-size", expected=f"at most {MAX_INDEX_FILE_BYTES} bytes", found=size_bytes)
    handle = files.open(path, writable=False)
    try:
        header = decode_index_header(_read(handle, 0, INDEX_HEADER.size_bytes))
        for geometry in _likely(size_bytes, likely):
            if _ends_fit(handle, IndexFile(path, header, geometry)):
                return IndexFile(path, header, geometry)
    finally:
        handle.close()
    return IndexFile(path, header, infer_index_geometry(load_index_file(files, path), likely))


def _likely(size_bytes: int, likely: IndexGeometry | None) -> Iterator[IndexGeometry]:
    if likely is not None and likely.file_size_bytes == size_bytes:
        yield likely
    per_slot = INDEX_SLOT.size_bytes + _DEFAULT_RATIO * INDEX_ENTRY.size_bytes
    slots, rest = divmod(size_bytes - INDEX_HEADER.size_bytes, per_slot)
    if rest == 0 and slots > 0:
        yield IndexGeometry(slots, _DEFAULT_RATIO * slots)


def _ends_fit(handle: OpenFile, file: IndexFile) -> bool:
    """Returns whether the first and last entry are of the records that the header names."""
    last = file.header.index_count - 1
    if last < 1:
        return last == 0
    if last >= file.geometry.entry_count:
        return False
    first, newest = (INDEX_ENTRY.struct.unpack(_read_entry(handle, file, entry)) for entry in (1, last))
    return bool(first[1] == file.header.begin_phy_offset and newest[1] == file.header.end_phy_offset)


def _read_entry(handle: OpenFile, file: IndexFile, entry: int) -> bytearray:
    return _read(handle, _entry_at(file, entry), INDEX_ENTRY.size_bytes)


def _entry_at(file: IndexFile, entry: int) -> int:
    return file.geometry.entries_at + INDEX_ENTRY.size_bytes * entry


def _read(handle: OpenFile, position: int, size_bytes: int) -> bytearray:
    """Returns bytes; zeros where the file is shorter, which no chain survives."""
    buffer = bytearray(size_bytes)
    handle.read_into(memoryview(buffer), position)
    return buffer


def checked_division(name: str, slot_count: int, entry_count: int) -> IndexGeometry:
    """Returns a division that an index file can have.

    Args:
        name: What the caller calls it, for the error.
        slot_count: ``maxHashSlotNum``.
        entry_count: ``maxIndexNum``.

    Raises:
        InvalidArgumentError: A file could not hold an entry, or would be too long.
    """
    found = IndexGeometry(
        as_int(f"{name} slot_count", slot_count), as_int(f"{name} entry_count", entry_count)
    )
    is_long = found.file_size_bytes > MAX_INDEX_FILE_BYTES
    if found.slot_count < 1 or found.entry_count < _LEAST_ENTRIES or is_long:
        raise InvalidArgumentError(
            f"{name} {found.slot_count} {found.entry_count}: no index file of up to"
            f" {MAX_INDEX_FILE_BYTES} bytes"
        )
    return found
