"""Data derived from a segment of a new log: the units of its queues, in a file beside it.

The task that writes a segment walks its records as they are written, and writes their units, queue by queue.
The tasks that write queues (:mod:`seglog.spark.making.queues`) read their parts. The driver receives a few
numbers for each segment and queue. Keys are passed in the same way
(:mod:`seglog.spark.making.index_files`).
The queues of every rewritten log are made in this way; placeholders are only marked as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from seglog.errors import StoreError
from seglog.spark.making.spills import Key, save_bytes
from seglog.storage.files import RestoringFiles
from seglog.storage.format.index import KEY_ROW, KeyRows
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.record import INNER_BATCH
from seglog.storage.kernels import walk_into
from seglog.storage.kernels.gather import Bytes
from seglog.storage.kernels.queue_units import SPILLED, Spilled, spilled_units, units_by_queue
from seglog.storage.kernels.walk import ROW, QueueTable, Rows, walk
from seglog.storage.splits import RecordNotes

UNITS: Final = ".units"
"""A folder in the new store, which is removed before the store is complete."""
_ROOM: Final = 1 << 14


class QueueSlice(NamedTuple):
    """Units of one queue in the file beside a segment.

    Attributes:
        segment: Physical offset of the segment's first byte.
        start: Number of the first unit in the file.
        units: Number of units.
        first_offset: Queue offset of the first unit.
    """

    segment: int
    topic: str
    queue_id: int
    start: int
    units: int
    first_offset: int


@dataclass(frozen=True, slots=True)
class Derived:
    """The data derived from a segment.

    Attributes:
        records: Number of records.
        last_phy_offset: Physical offset of its last record, -1 without any.
        last_store_ms: Store time of its last record.
        newest_store_ms: The latest store time of all records.
        slices: Its units, by queue.
        says_more: Whether a record belongs to a batch queue or also to further queues (``%LMQ%``).
    """

    records: int
    last_phy_offset: int
    last_store_ms: int
    newest_store_ms: int
    slices: tuple[QueueSlice, ...]
    says_more: bool = False


def units_path(staged: Path, first: int) -> Path:
    """Returns the file with the units of a segment."""
    return staged / UNITS / segment_file_name(first)


def by_queue(slices: Iterable[QueueSlice]) -> dict[Key, list[QueueSlice]]:
    """Returns the units of all segments by queue, in the order of the log."""
    found: dict[Key, list[QueueSlice]] = {}
    for one in sorted(slices):
        found.setdefault((one.topic, one.queue_id), []).append(one)
    return found


@dataclass(slots=True)
class SegmentFollower:
    """Follows the records of a segment as they are written.

    Attributes:
        batch_topics: Topics with batch queues.
        first: Physical offset of the segment's first byte.
        verify: Whether checksums are computed; lengths and places are always checked.
        tags: Whether tags are keys.
        notes: Gets the rows that an audit of the segment need not walk again; None if there is no audit.
        end: Physical offset of the next record.
    """

    batch_topics: frozenset[str]
    first: int
    verify: bool = True
    tags: bool = True
    notes: RecordNotes | None = None
    end: int = 0
    _records: int = 0
    _last: tuple[int, int] = (-1, 0)
    _newest_ms: int = 0
    _queues: QueueTable = field(default_factory=QueueTable)
    _units: list[Spilled] = field(default_factory=list)
    _keys: list[KeyRows] | None = field(default_factory=list)
    _room: tuple[Rows, KeyRows] | None = None
    _says_more: bool = False

    def __post_init__(self) -> None:
        self.end = self.first

    def note(self, records: Bytes) -> None:
        """Walks the next records, which begin at ``end``.

        Raises:
            StoreError: One of them is not valid there.
        """
        view = records.data.cast("B")
        position = self._follow_natively(view, records) if walk_into.native_into is not None else 0
        if position < len(view):
            self._keys = None
            self._drop_notes()
            rest, place, end = view[position:], self.end + position, self.end + len(view)
            result = walk(rest, place, end, self._queues, verify=self.verify)
            self._says_more |= bool(result.saying_more)
            if len(result.rows):
                self._take(result.rows, records)
            position += result.position
        if position < len(view):
            raise StoreError(
                f"the record that was written to {self.end + position} does not prove itself",
                help="no store was changed; run seglog check on the one that the record is of",
            )
        self.end += len(view)

    def save(self, files: RestoringFiles, staged: Path) -> Derived:
        """Writes the units beside the segment, and returns the derived data."""
        units, slices = self._by_queue()
        save_bytes(files, units_path(staged, self.first), units.tobytes())
        if self.notes is not None:
            self.notes.save(self._queues.names)
        return Derived(self._records, *self._last, self._newest_ms, slices, self._says_more)

    def keys(self) -> KeyRows | None:
        """Returns the keys of all records, None if the walk did not find all of them."""
        return None if self._keys is None else np.concatenate([np.zeros(0, KEY_ROW), *self._keys])

    def _follow_natively(self, view: memoryview, records: Bytes) -> int:
        rows, keys = self._room = self._room or (np.empty(_ROOM, ROW), walk_into.new_keys())
        position = 0
        while position < len(view):
            border = len(view) if self.notes is None else self.notes.border(self.end + position) - self.end
            walked = walk_into.walk_into(
                view,
                self.end,
                position,
                min(len(view), border),
                self._queues,
                rows,
                keys,
                verify=self.verify,
                tags=self.tags,
            )
            if not walked.row_count:
                break
            if walked.keys.lost:
                self._keys = None  # the index also has the keys of tombstones
            elif self._keys is not None:
                self._keys.append(walked.keys.rows.copy())
            self._says_more |= bool(walked.saying_more)
            if walked.keys.lost or walked.saying_more:
                self._drop_notes()
            elif self.notes is not None:
                self.notes.note(rows[: walked.row_count], walked.keys)
            self._take(rows[: walked.row_count], records)
            position = walked.position
        return position

    def _drop_notes(self) -> None:
        if self.notes is not None:
            self.notes.drop()
            self.notes = None

    def _take(self, rows: Rows, records: Bytes) -> None:
        are_plain = [topic not in self.batch_topics for topic, _queue in self._queues.names]
        self._says_more |= bool((rows["sys_flag"] & INNER_BATCH).any())
        self._units.append(spilled_units(rows, records, self.end, are_plain))
        self._records += len(rows)
        self._last = int(rows["phy_offset"][-1]), int(rows["store_timestamp_ms"][-1])
        self._newest_ms = max(self._newest_ms, int(rows["store_timestamp_ms"].max()))

    def _by_queue(self) -> tuple[Spilled, tuple[QueueSlice, ...]]:
        """Returns all units sorted by queue, and the slice of each queue."""
        every = np.concatenate([np.zeros(0, SPILLED), *self._units])
        names: Sequence[Key] = self._queues.names
        every, starts = units_by_queue(every, len(names))
        return every, tuple(
            QueueSlice(self.first, *key, start, end - start, int(every["queue_offset"][start]))
            for key, start, end in zip(names, starts[:-1], starts[1:], strict=True)
            if end > start
        )
