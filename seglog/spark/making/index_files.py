"""The files of the key index of a new log, made in tasks: equal to those of the engine, file for file.

The keys in a file follow from their number alone: each file takes as many as it has room for, in log order.
So the task that writes a segment writes its keys beside it, and the task that writes an index file reads its
range of keys, from one or more segments. An index file that was begun before is continued as a copy.

Source: as :mod:`seglog.storage.index.key_index`, which does the same behind a writer.
"""

from __future__ import annotations

import mmap
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from seglog.spark.making.derived import SegmentFollower
from seglog.spark.making.spills import ATTEMPT, load_part, save_bytes
from seglog.storage.directory import IndexFile, LogReader
from seglog.storage.files import Files, RestoringFiles, copy_tree
from seglog.storage.format.index import (
    INDEX_ENTRY,
    KEY_ROW,
    IndexGeometry,
    IndexHeader,
    KeyRows,
    begin_index_file,
    decode_index_header,
)
from seglog.storage.format.names import INDEX, segment_file_name
from seglog.storage.index import next_index_name
from seglog.storage.kernels.index_keys import native_key_rows, put_keys
from seglog.storage.segments import MappedFile, MapPool
from seglog.storage.walk import LogWindows, iter_key_rows

KEYS: Final = ".keys"
"""A folder in the new store, which is removed before the store is complete."""
_ROWS_AT_ONCE: Final = 1 << 18
_STEP_BYTES: Final = 1 << 20


class KeySlice(NamedTuple):
    """Keys in the file beside a segment.

    Attributes:
        segment: Physical offset of the segment's first byte.
        start: Number of the first key in the file.
        keys: Number of keys.
    """

    segment: int
    start: int
    keys: int


class IndexFilePlan(NamedTuple):
    """A file of the index.

    Attributes:
        geometry: Its division.
        name: Its name.
        slices: Its keys, in log order.
        before: The key before the first, in the previous file; or the header of that; None for the first
            file.
        begun: The file that it continues, which is not changed; None for a new file.
    """

    geometry: IndexGeometry
    name: str
    slices: tuple[KeySlice, ...]
    before: KeySlice | IndexHeader | None
    begun: Path | None = None


def spill_keys(
    files: RestoringFiles, staged: Path, first: int, follower: SegmentFollower, segment_bytes: int
) -> int:
    """Writes the keys of a segment beside it; returns their number.

    Args:
        files: Access to the new store.
        staged: The new store.
        first: Physical offset of the segment's first byte.
        follower: The walk over its records, which may have their keys.
        segment_bytes: Its length.
    """
    known = follower.keys()
    if known is not None:
        save_bytes(files, _path(staged, first), known.tobytes())
        return len(known)
    path = _path(staged, first)
    attempt = path.with_name(f"{path.name}{ATTEMPT}-{uuid.uuid4().hex}")
    count = 0
    with (
        closing(LogReader(files, staged, segment_bytes)) as reader,
        closing(files.create(attempt, 0)) as file,
    ):
        windows = LogWindows(reader, segment_bytes, first, follower.end, mapped=native_key_rows is not None)
        for rows, _end in iter_key_rows(windows, tags=follower.tags):
            file.write_at(rows.tobytes(), count * KEY_ROW.itemsize)
            count += len(rows)
    files.rename(attempt, path)
    return count


def plan_index(
    files: Files,
    staged: Path,
    counts: Sequence[tuple[int, int]],
    geometry: IndexGeometry | None,
    now_ms: int,
    newest: IndexFile | None = None,
) -> list[IndexFilePlan]:
    """Returns the files of the new index.

    Args:
        files: Access to the new store.
        staged: The new store.
        counts: First byte and number of keys of each segment, in the order of the log.
        geometry: Division of the files; None, where nothing shows it, makes none.
        now_ms: The time: files are named by their first message, but never later than now.
        newest: The last existing file, of the same sizes; None without any.
    """
    found: list[IndexFilePlan] = []
    left = list(counts)
    name, start = "", 0
    before: KeySlice | IndexHeader | None = None
    begun = newest
    if newest is not None and newest.is_full:
        name, before, begun = newest.path.name, newest.header, None
    while left and geometry is not None:
        taken_up = 1 if begun is None else begun.header.index_count
        room, slices = geometry.entry_count - taken_up, list[KeySlice]()
        while left and room:
            segment, keys = left[0]
            taken = min(room, keys - start)
            if taken:
                slices.append(KeySlice(segment, start, taken))
            room, start = room - taken, start + taken
            if start == keys:
                left, start = left[1:], 0
        if slices:
            if begun is None:
                first_ms = int(_rows(files, staged, slices[0]._replace(keys=1))["store_timestamp_ms"][0])
                name = next_index_name(first_ms, now_ms, name)
                found.append(IndexFilePlan(geometry, name, tuple(slices), before))
            else:
                name = begun.path.name
                found.append(IndexFilePlan(geometry, name, tuple(slices), None, begun.path))
            last, begun = slices[-1], None
            before = KeySlice(last.segment, last.start + last.keys - 1, 1)
    return found


def write_index_file(files: RestoringFiles, staged: Path, plan: IndexFilePlan) -> int:
    """Writes a file of the index, durably; returns the end time of its entries, 0 if it is not full."""
    geometry, path = plan.geometry, staged / INDEX / plan.name
    attempt = staged / f"{ATTEMPT}-{uuid.uuid4().hex}"
    size = geometry.file_size_bytes
    shape = attempt, 0, size, MapPool(), min(_STEP_BYTES, size)
    if plan.begun is not None:
        copy_tree(files, plan.begun, attempt, is_dir=False)
    file = MappedFile.create(files, *shape) if plan.begun is None else MappedFile(files, *shape)
    last_ms = 0
    with closing(file):
        file.read_no_further()
        if plan.begun is None:
            begin_index_file(file.view, _header(files, staged, plan.before))
        count = decode_index_header(file.view).index_count
        keys = sum(one.keys for one in plan.slices)
        used_bytes = geometry.entries_at + INDEX_ENTRY.size_bytes * (keys + count)
        file.reserve(0, used_bytes)
        if keys * mmap.PAGESIZE > geometry.entries_at:  # the slots of the keys are in most pages
            file.warm(0, used_bytes)
        for rows in _batches(files, staged, plan.slices):
            count += put_keys(file.view, geometry, rows)
            last_ms = int(rows["store_timestamp_ms"][-1])
        file.sync()
    files.rename(attempt, path)
    return last_ms if count == geometry.entry_count else 0


def _header(files: Files, staged: Path, before: KeySlice | IndexHeader | None) -> IndexHeader | None:
    """Returns the header of the previous file, from which a new file takes over fields."""
    if before is None or isinstance(before, IndexHeader):
        return before
    (row,) = _rows(files, staged, before)
    stored_ms, place = int(row["store_timestamp_ms"]), int(row["phy_offset"])
    return IndexHeader(stored_ms, stored_ms, place, place)


def _batches(files: Files, staged: Path, slices: Sequence[KeySlice]) -> Iterator[KeyRows]:
    for one in slices:
        for start in range(one.start, one.start + one.keys, _ROWS_AT_ONCE):
            keys = min(_ROWS_AT_ONCE, one.start + one.keys - start)
            yield _rows(files, staged, KeySlice(one.segment, start, keys))


def _rows(files: Files, staged: Path, part: KeySlice) -> KeyRows:
    return load_part(files, _path(staged, part.segment), KEY_ROW, part.start, part.keys)


def _path(staged: Path, segment: int) -> Path:
    return staged / KEYS / segment_file_name(segment)
