"""Records on their way into a restored log: tasks that read them pack chunks, which are then placed.

A chunk holds records one after the other, and is at most a fraction of a segment long, so that whole chunks
fill segments well. One file holds the records, a second one their lengths.

Checksums are not verified here: archived records were compared with their ``recordCrc`` before, and the
restored store is audited as a whole.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from seglog.errors import StoreError
from seglog.spark.compact.placeholders import MARK
from seglog.spark.making.derived import Derived, SegmentFollower
from seglog.spark.making.index_files import spill_keys
from seglog.spark.source.values.strings import bytes_of
from seglog.storage.files import RestoringFiles, read_all
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.format.record import FILLER, FILLER_BYTES, MAGIC_BLANK
from seglog.storage.kernels.gather import Bytes, Ints, copy_ranges
from seglog.storage.kernels.record_moves import move_records

CHUNKS: Final = ".chunks"
_SHARE: Final = 16


class Chunk(NamedTuple):
    """A chunk.

    Attributes:
        partition: Number of its share of the archive; shares are in log order.
        number: Its number in the share.
        name: Name of its files.
        size_bytes: Bytes of its records.
        records: Number of its records.
    """

    partition: int
    number: int
    name: str
    size_bytes: int
    records: int


class PlacedSegment(NamedTuple):
    """A segment and the chunks in it.

    Attributes:
        first: Physical offset of its first byte.
        chunks: Its chunks in order.
        is_last: Whether the log continues after them in this segment.
    """

    first: int
    chunks: tuple[Chunk, ...]
    is_last: bool


class RestoredSegment(NamedTuple):
    """The result of writing a segment.

    Attributes:
        first: Physical offset of its first byte.
        derived: Data derived from its records.
        keys: Number of keys for the index.
    """

    first: int
    derived: Derived
    keys: int


def write_chunks(
    files: RestoringFiles,
    staged: Path,
    partition: int,
    batches: Iterator[pa.RecordBatch],
    segment_bytes: int,
) -> Iterator[Chunk]:
    """Writes the records of a share of the archive; yields the chunks.

    Args:
        files: Access to the new store.
        staged: The new store.
        partition: Number of the share.
        batches: Records in log order, in the only column.
        segment_bytes: Length of a segment.

    Raises:
        StoreError: A record does not fit into a segment.
    """
    limit = max(1, segment_bytes // _SHARE)
    number = 0
    for batch in batches:
        data, starts, sizes = bytes_of(batch.column(0))
        if len(sizes) and int(sizes.max()) > segment_bytes - FILLER_BYTES:
            raise StoreError(
                f"a record of {sizes.max()} bytes does not fit into a segment of {segment_bytes}",
                help="restore with larger segments",
            )
        begin = 0
        while begin < len(sizes):
            ends = np.cumsum(sizes[begin:])
            end = begin + max(1, int(np.searchsorted(ends, limit, "right")))
            yield _write(files, staged, (partition, number), data, starts[begin:end], sizes[begin:end])
            begin, number = end, number + 1


def place_chunks(chunks: Sequence[Chunk], first: int, segment_bytes: int) -> list[PlacedSegment]:
    """Returns the chunks of each segment; the first segment begins at ``first``."""
    groups: list[tuple[list[Chunk], int]] = [([], 0)]
    for chunk in sorted(chunks):
        if groups[-1][1] + chunk.size_bytes > segment_bytes - FILLER_BYTES:
            groups.append(([], 0))
        taken, used = groups[-1]
        groups[-1] = ([*taken, chunk], used + chunk.size_bytes)
    return [
        PlacedSegment(first + number * segment_bytes, tuple(taken), number == len(groups) - 1)
        for number, (taken, _used) in enumerate(groups)
    ]


def write_placed(
    files: RestoringFiles, staged: Path, segment: PlacedSegment, segment_bytes: int, *, tags: bool
) -> RestoredSegment:
    """Writes a segment of the restored log, durably, and beside it its queue units and keys.

    Args:
        files: Access to the new store.
        staged: The new store.
        segment: The segment.
        segment_bytes: Its length.
        tags: Whether tags are keys.

    Raises:
        StoreError: An archived row is no record.
    """
    path = staged / COMMIT_LOG / segment_file_name(segment.first)
    attempt = staged / CHUNKS / f"{path.name}-{uuid.uuid4().hex}"
    follower = SegmentFollower(frozenset(), segment.first, verify=False, tags=tags)
    with closing(files.create(attempt, segment_bytes)) as file:
        for chunk in segment.chunks:
            data = memoryview(read_all(files, staged / CHUNKS / chunk.name))
            raw = read_all(files, staged / CHUNKS / f"{chunk.name}.sizes")
            sizes = np.frombuffer(raw, np.int64)
            starts, replaced = np.cumsum(sizes) - sizes, np.zeros(len(sizes), np.bool_)
            moved = move_records(data, 0, starts, sizes, replaced, MARK, follower.end)
            file.write_at(moved.data, follower.end - segment.first)
            follower.note(moved)
        position = follower.end - segment.first
        if not segment.is_last:
            file.write_at(FILLER.struct.pack(segment_bytes - position, MAGIC_BLANK), position)
        file.sync()
    files.rename(attempt, path)
    derived = follower.save(files, staged)
    keys = spill_keys(files, staged, segment.first, follower, segment_bytes)
    return RestoredSegment(segment.first, derived, keys)


def _write(
    files: RestoringFiles, staged: Path, place: tuple[int, int], data: Bytes, starts: Ints, sizes: Ints
) -> Chunk:
    total = int(sizes.sum())
    out = np.zeros(total, np.uint8)
    copy_ranges(data, starts, sizes, out, np.cumsum(sizes) - sizes)
    name = f"{place[0]}-{place[1]}-{uuid.uuid4().hex}"
    files.write_file(staged / CHUNKS / name, out.tobytes(), sync=False)
    files.write_file(staged / CHUNKS / f"{name}.sizes", sizes.astype(np.int64).tobytes(), sync=False)
    return Chunk(*place, name, total, len(sizes))
