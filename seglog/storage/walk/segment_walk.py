"""Walks a range of one segment: the one loop over records that every walk uses.

Native kernels walk valid records in the map of the file. From the first other bytes on, the range is read in
windows and walked by :func:`~seglog.storage.kernels.walk.walk`, which describes every damage. A range may
begin in the middle of a record; its last record may end behind the range, but never behind the segment.

Memory is bounded by the read window, or by the longest record if that is longer.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from seglog.errors import TruncatedError
from seglog.storage.directory.log_files import LogReader
from seglog.storage.format.record.record import (
    FILLER,
    FILLER_BYTES,
    MAGIC_AT,
    MAGIC_BLANK,
    RECORD_MAGIC,
    Damage,
    RecordRow,
    examine,
)
from seglog.storage.kernels.index_keys import RecordKeys
from seglog.storage.kernels.walk import QueueTable, Rows, Stop, next_record, walk
from seglog.storage.walk.inner_records import InnerRecords

WINDOW_BYTES: Final = 8 << 20
_SMALL_WINDOW_BYTES: Final = 64 << 10
_FIRST_READ_ON_BYTES: Final = 4096
_OVERLAP_BYTES: Final = 8 << 20
"""Windows overlap by more than the longest record with default limits, so that none is missed at an edge."""
_PROBED_BYTES: Final = 256 << 10
_LISTED_BYTES: Final = 64 << 20
"""Bytes for which data and holes are listed at a time, before any of them is read."""
_RECORD_ZEROS_BYTES: Final = 4096
"""A record may end with zeros behind the last data."""

MISSING: Final = Damage("missing-file", "a commit-log file", "none")
ZERO: Final = Damage("zero", "a record", "zeros")
SHORT: Final = Damage("short", "a whole record", "the end of the file")


class Stopped(enum.IntEnum):
    """The reason why a walk over a range stopped."""

    SPLIT_END = 0
    """The next record belongs to a later range of the segment."""
    SEGMENT_END = 1
    """The segment is full: its last record or its filler ends with it."""
    DAMAGE = 2
    """No record follows."""


@dataclass(frozen=True, slots=True)
class Split:
    """A range of one commit-log file, which owns the records that begin in it.

    Attributes:
        number: Place among the splits of the log, in log order.
        start: Physical offset of its first byte.
        end: Physical offset behind its last byte.
        segment_end: Physical offset at which its file ends.
    """

    number: int
    start: int
    end: int
    segment_end: int


class Walked(NamedTuple):
    """Neighbouring records.

    Attributes:
        rows: ``(n,) ROW``, n > 0, valid until the next ones.
        keys: Their keys, if native kernels read them during the walk.
        window: Bytes of the log that begin with them; None if native kernels read the map.
    """

    rows: Rows
    keys: RecordKeys | None
    window: memoryview | None


class NativeStep(NamedTuple):
    """The result of a native walk.

    Attributes:
        rows: ``(n,) ROW``.
        keys: Their keys, if these were wanted.
        saying_more: Positions in the memory of records whose properties name further queues or messages.
        position: Position in the memory at which the next record may start.
        goes_on: Whether the next step may find more; False if there is no whole record at the position.
    """

    rows: Rows
    keys: RecordKeys | None
    saying_more: list[int]
    position: int
    goes_on: bool


Native: TypeAlias = Callable[[memoryview, int, int, int], NativeStep]
"""Walks a part of a segment's map: its memory, its first physical offset, start and end position in it."""


class SegmentWalk:
    """Walks ranges of the segments of one log, one at a time.

    Args:
        reader: The log.
        segment_size_bytes: Length of its files.
        queues: Numbers queues; new ones are added.
        verify: Whether to compute checksums; everything else is always checked.
        native: Walks maps of segments; None to read windows only.
        read: Reads windows; None for :meth:`~seglog.storage.directory.log_files.LogReader.read`.

    Attributes:
        position: Position of the walk: where the next record may start.
        stopped: Why it stopped there.
        damage: The damage there, for :attr:`Stopped.DAMAGE`.
        window_bytes: Bytes that are read at a time.
    """

    def __init__(
        self,
        reader: LogReader,
        segment_size_bytes: int,
        queues: QueueTable,
        *,
        verify: bool = True,
        native: Native | None = None,
        read: Callable[[int, int], memoryview] | None = None,
    ) -> None:
        self._reader = reader
        self._segment_size_bytes = segment_size_bytes
        self._queues = queues
        self._verify = verify
        self._native = native
        self._read = read or reader.read
        self.window_bytes = WINDOW_BYTES if native is None else _SMALL_WINDOW_BYTES
        self.position = 0
        self.stopped = Stopped.SPLIT_END
        self.damage: Damage | None = None

    def run(self, of: Split, position: int, inner: InnerRecords | None = None) -> Iterator[Walked]:
        """Yields the records of a range, from ``position`` on, up to its end or to damage.

        Args:
            of: The range.
            position: Physical offset of the first record.
            inner: Gets the facts about queues in the properties of records, before the records are yielded.
        """
        self.position, self.stopped, self.damage, need = position, Stopped.SPLIT_END, None, 0
        while self.position < of.end:
            begun = self.position
            yield from self._ahead(of, inner)
            start = self.position
            if start >= of.end:
                break
            if start > begun:
                need = _SMALL_WINDOW_BYTES  # for the bytes that the native walk left
            need = max(need, min(self.window_bytes, of.end - start))
            window = self._read(start, min(need, of.segment_end - start))
            result = walk(window, start, of.segment_end, self._queues, verify=self._verify)
            rows = result.rows
            owned = int(np.searchsorted(rows["phy_offset"], of.end)) if of.end < of.segment_end else len(rows)
            is_beyond = owned < len(rows)
            self.position = int(rows["phy_offset"][owned]) if is_beyond else start + result.position
            if inner is not None:
                places = [at for at in result.saying_more if start + at < of.end]
                inner.note(window, start, places, self._queues)
            if owned:
                yield Walked(rows[:owned], None, window)
            if is_beyond:
                return
            room = len(window) - result.position
            if result.stop in (Stop.END, Stop.BLANK):
                self.position, self.stopped = of.segment_end, Stopped.SEGMENT_END
                return
            if result.stop is Stop.MORE and room < self._reader.available(self.position):
                need = 0 if result.position else max(2 * room, _FIRST_READ_ON_BYTES)
            elif self.position < of.end:
                rest = window[result.position :][:FILLER_BYTES]
                self.stopped, self.damage = Stopped.DAMAGE, result.damage or (SHORT if any(rest) else ZERO)
                return
        if self.position == of.segment_end or self._is_filled(self.position, of):
            self.position, self.stopped = of.segment_end, Stopped.SEGMENT_END

    def proven(self, of: Split, start: int) -> Iterator[tuple[int, RecordRow]]:
        """Yields the records of a range that prove themselves at or behind a place, with their places.

        A record proves itself by its magic, its physical offset, consistent lengths, and its checksums.
        """
        for at, covered, limit in self._data(start, of):
            for place in self._places(at, covered, limit):
                row = examine(self._read_record(place, of), 0, place)
                if not isinstance(row, Damage):
                    yield place, row
            if self._reader.available(at) < covered:
                return

    def _data(self, start: int, of: Split) -> Iterator[tuple[int, int, int]]:
        """Yields windows of the data of a range: start, length, and the last place that records may reach."""
        for begin in range(start, of.end, _LISTED_BYTES):
            end = min(begin + _LISTED_BYTES, of.end)
            stretches = self._reader.data_stretches(begin, min(end + _OVERLAP_BYTES, of.segment_end))
            for first, stop in stretches:
                for at in range(first, min(stop, end), WINDOW_BYTES):
                    covered = min(WINDOW_BYTES, min(stop, end) - at)
                    limit = min(at + covered + _OVERLAP_BYTES, of.segment_end)
                    # A record may hold holes, or end with zeros behind the last data.
                    reach = max(behind for before, behind in stretches if before < limit)
                    yield at, covered, min(limit, reach + _RECORD_ZEROS_BYTES)

    def is_written(self, phy_offset: int) -> bool:
        """Returns whether a whole record, or the filler of the segment, is at a place now."""
        segment_end = phy_offset - phy_offset % self._segment_size_bytes + self._segment_size_bytes
        window = self._reader.read(phy_offset, min(_OVERLAP_BYTES, segment_end - phy_offset))
        if len(window) >= FILLER_BYTES:
            size, magic = FILLER.struct.unpack_from(window)
            if magic == MAGIC_BLANK and size == segment_end - phy_offset:
                return True
        return not isinstance(examine(window, 0, phy_offset), Damage)

    def _ahead(self, of: Split, inner: InnerRecords | None) -> Iterator[Walked]:
        """Walks on natively while records are valid."""
        first = of.segment_end - self._segment_size_bytes
        while self._native is not None and self.position < of.end:
            begun = self.position - first
            # Not in holes: reading them through a map would create pages.
            is_data = self._reader.next_data(self.position) == self.position
            memory = self._reader.map(self.position) if is_data else None
            if memory is None or begun >= len(memory):
                return
            try:
                step = self._native(memory, first, begun, min(of.end - first, len(memory)))
            except TruncatedError:
                return  # another process cut the file; the windows read its bytes now
            if inner is not None and step.saying_more:
                self._note_inner(inner, step, first)
            self.position = first + step.position
            if len(step.rows):
                yield Walked(step.rows, step.keys, None)
            if not step.goes_on:
                return

    def _note_inner(self, inner: InnerRecords, step: NativeStep, first: int) -> None:
        """Reads the properties of records that name further queues, from stretches that are read again."""
        starts = step.rows["phy_offset"]
        places = np.array(step.saying_more, np.int64) + first
        # Not np.unique: its first call imports numpy.ma, which takes longer than opening a small store.
        for number in np.flatnonzero(np.bincount((places - first) // WINDOW_BYTES)).tolist():
            here = places[(places - first) // WINDOW_BYTES == number]
            start, last = int(here[0]), int(np.searchsorted(starts, here[-1]))
            end = int(starts[last]) + int(step.rows["size_bytes"][last])
            window = self._reader.read(start, end - start)
            inner.note(window, start, (here - start).tolist(), self._queues)

    def _is_filled(self, position: int, of: Split) -> bool:
        """Returns whether a filler takes the rest of the segment."""
        head = self._reader.read(position, FILLER_BYTES)
        return bytes(head) == FILLER.struct.pack(of.segment_end - position, MAGIC_BLANK)

    def _places(self, at: int, covered_bytes: int, limit: int) -> Iterator[int]:
        """Yields the places of records that begin in a stretch and prove themselves."""
        # Not the map: its pages would be faulted in one by one, for megabytes of zeros behind each log's end.
        start = 0
        for size in (min(_PROBED_BYTES, limit - at), limit - at):  # a walk usually needs the first place only
            window = self._reader.read(at, size)
            end, is_all = min(covered_bytes, len(window)), size == limit - at
            while start < end and (found := next_record(window, at, start, end)) is not None:
                if not is_all and _may_be_longer(window, start, found):
                    break
                yield at + found
                start = found + 1

    def _read_record(self, phy_offset: int, of: Split) -> memoryview:
        head = self._reader.read(phy_offset, FILLER_BYTES)
        size = FILLER.struct.unpack(head)[0] if len(head) == FILLER_BYTES else 0
        return self._reader.read(phy_offset, min(max(size, 0), of.segment_end - phy_offset))


def _may_be_longer(window: memoryview, start: int, end: int) -> bool:
    """Returns whether a record may begin before ``end`` that ends behind the window."""
    places = (magic.start() - MAGIC_AT for magic in RECORD_MAGIC.finditer(window, start, end + MAGIC_AT))
    sizes = ((at, FILLER.struct.unpack_from(window, at)[0]) for at in places if start <= at < end)
    return any(at + size > len(window) for at, size in sizes)
