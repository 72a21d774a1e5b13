"""The key-index files of a store as they are on the disk, and lookups in them through ``pread``.

Truth: none. A file that does not explain itself counts as absent; what it should have covered is looked up
in the log instead.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from seglog.arguments import as_int
from seglog.errors import CorruptError, InvalidArgumentError
from seglog.storage.directory.geometry import DEFAULT_SEGMENT_BYTES
from seglog.storage.directory.log_files import has_data
from seglog.storage.files.files import Files, OpenFile
from seglog.storage.format.index.index import (
    DEFAULT_INDEX_GEOMETRY,
    INDEX_ENTRY,
    INDEX_HEADER,
    IndexGeometry,
    IndexHeader,
    decode_index_header,
    is_index_file_name,
)
from seglog.storage.format.index.index_geometry import infer_index_geometry, likely_geometries
from seglog.storage.format.layout import I32
from seglog.storage.format.names import INDEX

Numbers: TypeAlias = npt.NDArray[np.int64]
Entries: TypeAlias = npt.NDArray[np.void]
_SECOND_MS = 1000
_CHUNK_BYTES = 4 << 20
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


def is_begun(files: Files, path: Path) -> bool:
    """Returns whether an index file holds no entry yet: its writer had created it, and no more.

    Its header is zeros, or repeats the one of the file before it with a count of 1 (``IndexFile.java``).
    """
    try:
        handle = files.open(path, writable=False)
    except FileNotFoundError:
        return False
    with closing(handle):
        header = read_padded(handle, 0, INDEX_HEADER.size_bytes)
        at = INDEX_HEADER.size_bytes
        while at := handle.next_data(at) or 0:
            chunk = bytearray(_CHUNK_BYTES)
            count = handle.read_into(memoryview(chunk), at)
            if not count or has_data(memoryview(chunk)[:count]):
                return not count
            at += count
    count_at = INDEX_HEADER.offsets["index_count"]
    return 0 <= int(I32.unpack_from(header, count_at)[0]) < _LEAST_ENTRIES


def index_division(
    files: Files, root: Path, written: IndexGeometry | None, segment_size_bytes: int
) -> IndexGeometry | None:
    """Returns slots and entries of a store's index files, from all evidence in it; None if there is none.

    A file of another division is worse than none: RocketMQ opens it by the numbers of its configuration, and
    finds no key. So where nothing shows the division, no file is made, and queries read the log.

    Args:
        files: Where the store is.
        root: The store directory.
        written: What was written down when the files were made.
        segment_size_bytes: Length of its log files.
    """
    known, damaged = list_index_files(files, root)
    if known:
        return known[-1].geometry
    if written is not None:
        return written
    # Who runs with RocketMQ's log files runs with its index files.
    is_usual = segment_size_bytes == DEFAULT_SEGMENT_BYTES
    if damaged and not is_usual:
        lengths = {entry.size_bytes for entry in files.list_dir(root / INDEX) if not entry.is_dir}
        is_usual = DEFAULT_INDEX_GEOMETRY.file_size_bytes in lengths
    return DEFAULT_INDEX_GEOMETRY if is_usual else None


def last_hashes(files: Files, index: Sequence[IndexFile], phy_offset: int) -> list[int]:
    """Returns the key hashes of the last entries of an index, in order, as far as they are of one record."""
    found: list[int] = []
    for file in reversed(index):
        before = len(found)
        with closing(files.open(file.path, writable=False)) as handle:
            for entry in range(file.header.index_count - 1, 0, -1):
                hashed, place, _diff_s, _next = INDEX_ENTRY.struct.unpack(read_entry(handle, file, entry))
                if place != phy_offset:
                    break
                found.append(hashed)
        if len(found) - before < file.header.index_count - 1:
            break
    return found[::-1]


def read_entries(files: Files, file: IndexFile, numbers: range) -> Entries:
    """Returns entries of a file, one behind the other; zeros where it is shorter."""
    with closing(files.open(file.path, writable=False)) as handle:
        size_bytes = len(numbers) * INDEX_ENTRY.size_bytes
        return np.frombuffer(
            read_padded(handle, entry_at(file, numbers.start), size_bytes), INDEX_ENTRY.dtype
        )


def known_hashes(files: Files, index: Iterable[IndexFile], phy_offset: int, store_ms: int) -> set[int]:
    """Returns the key hashes that all files of an index have of a record; see :func:`hashes_at`."""
    return set().union(*(hashes_at(files, file, phy_offset, store_ms) for file in index))


def hashes_at(files: Files, file: IndexFile, phy_offset: int, store_ms: int | None = None) -> set[int]:
    """Returns the key hashes of the entries that lead to a record, found by its place.

    Entries are in the order of the log; where damage broke that order, some may not be found.

    Args:
        files: Where the index is.
        file: One of its files.
        phy_offset: Where the record starts.
        store_ms: Its time: entries of another time, as of an older life of the log, are left out.
    """
    numbers = range(1, min(file.header.index_count, file.geometry.entry_count))
    found: set[int] = set()
    with closing(files.open(file.path, writable=False)) as handle:

        def place_of(entry: int) -> int:
            return int(INDEX_ENTRY.struct.unpack(read_entry(handle, file, entry))[1])

        for entry in numbers[bisect_left(numbers, phy_offset, key=place_of) :]:
            hashed, place, diff_s, _next = INDEX_ENTRY.struct.unpack(read_entry(handle, file, entry))
            if place != phy_offset:
                break
            # The difference of entry 1 counts from the end of the file before.
            seconds = None if store_ms is None or entry == 1 else store_ms - file.header.begin_timestamp_ms
            if seconds is None or diff_s == max(0, seconds // _SECOND_MS):
                found.add(hashed)
    return found


def load_index_file(files: Files, path: Path) -> memoryview:
    """Returns a whole file; pages that were never written take no memory."""
    with closing(files.open(path, writable=False)) as handle:
        buffer = memoryview(np.zeros(handle.size_bytes, np.uint8))  # type: ignore[arg-type]  # numpy is a buffer
        at = handle.next_data(0)
        while at is not None:
            at += handle.read_into(buffer[at : at + _CHUNK_BYTES], at)
            at = handle.next_data(at)
    return buffer


def _look(files: Files, path: Path, size_bytes: int, likely: IndexGeometry | None) -> IndexFile:
    if size_bytes > MAX_INDEX_FILE_BYTES:
        raise CorruptError("index-size", expected=f"at most {MAX_INDEX_FILE_BYTES} bytes", found=size_bytes)
    with closing(files.open(path, writable=False)) as handle:
        header = decode_index_header(read_padded(handle, 0, INDEX_HEADER.size_bytes))
        for geometry in likely_geometries(size_bytes, likely):
            if _ends_fit(handle, IndexFile(path, header, geometry)):
                return IndexFile(path, header, geometry)
    return IndexFile(path, header, infer_index_geometry(load_index_file(files, path), likely))


def _ends_fit(handle: OpenFile, file: IndexFile) -> bool:
    """Returns whether the first and last entry are of the records that the header names."""
    last = file.header.index_count - 1
    if last < 1:
        return last == 0
    if last >= file.geometry.entry_count:
        return False
    first, newest = (INDEX_ENTRY.struct.unpack(read_entry(handle, file, entry)) for entry in (1, last))
    return bool(first[1] == file.header.begin_phy_offset and newest[1] == file.header.end_phy_offset)


def read_entry(handle: OpenFile, file: IndexFile, entry: int) -> bytearray:
    """Returns an entry of an open file."""
    return read_padded(handle, entry_at(file, entry), INDEX_ENTRY.size_bytes)


def entry_at(file: IndexFile, entry: int) -> int:
    """Returns where in a file an entry is."""
    return file.geometry.entries_at + INDEX_ENTRY.size_bytes * entry


def read_padded(handle: OpenFile, position: int, size_bytes: int) -> bytearray:
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
            f"{name} {found.slot_count} {found.entry_count}: an index file has 1 slot or more,"
            f" {_LEAST_ENTRIES} entries or more, and up to {MAX_INDEX_FILE_BYTES} bytes"
        )
    return found
