"""The one walk over a commit log: records, holes, and where the log ends.

What follows damage decides what the damage is. If a later record proves itself and is newer than what
came before, the damage is a hole and the walk goes on behind it; if nothing does, it is the torn tail of
the last write and the log ends there. "Newer" keeps the dead from rising: RocketMQ cuts a log without
erasing what is behind the cut, so valid records of an older life may lie there. They carry earlier store
times, or queue offsets that were given again since. But it removes the files behind the one that it cuts,
and keeps that one only if records are left in it, so the dead lie behind others in the last file. Anywhere
else whatever proves itself counts, whatever clocks said.

The walk can go on later from where it ended, which is how a reader follows a running writer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from seglog.errors import TruncatedError
from seglog.storage.directory.log_files import LogFile, LogReader, has_data
from seglog.storage.files.files import Files
from seglog.storage.format.record.record import (
    FILLER,
    FILLER_BYTES,
    MAGIC_BLANK,
    MIN_RECORD_BYTES,
    Damage,
    RecordRow,
    examine,
)
from seglog.storage.format.record.sys_flag import takes_queue_offset
from seglog.storage.kernels import parallel_walk as side_by_side
from seglog.storage.kernels.parallel_walk import Ahead, Walkers
from seglog.storage.kernels.walk import ROW, QueueTable, Rows, Stop, iter_resync, places, walk
from seglog.storage.segments.scratch import Room
from seglog.storage.walk.growable_rows import Gathered
from seglog.storage.walk.inner_records import InnerRecords

_WINDOW_BYTES: Final = 8 << 20
_SMALL_WINDOW_BYTES: Final = 64 << 10
_RESYNC_OVERLAP_BYTES: Final = 8 << 20
_RECORD_ZEROS_BYTES: Final = 4096
"""Longer than any record with the default limits, so that none is missed at a window's edge."""

_HEAD_BYTES: Final = 8
MISSING: Final = Damage("missing-file", "a commit-log file", "none")
ZERO: Final = Damage("zero", "a record", "zeros")
SHORT: Final = Damage("short", "a whole record", "the end of the file")

Progress = Callable[[int, int], None]
"""Called with bytes read and bytes in all."""


@dataclass(frozen=True, slots=True)
class Hole:
    """A stretch of the log, between readable records, that holds none.

    Attributes:
        phy_offset: Where it starts.
        size_bytes: How long it is.
        why: The damage at its start, a stable short word.
    """

    phy_offset: int
    size_bytes: int
    why: str
    expected: str = ""
    found: str = ""

    @property
    def end(self) -> int:
        """Where records go on."""
        return self.phy_offset + self.size_bytes


class LogScan:
    """A walk over the whole log, and its state.

    Attributes:
        queues: The queues that records belong to.
        holes: Stretches without readable records, in order.
        end_phy_offset: End of the last valid record (or filler): where the next one goes.
        last_phy_offset: Start of the last valid record, -1 before the first.
        inner: What the properties of records say about queues.
        tail: What is wrong at the end, None if nothing was ever written there.
    """

    def __init__(
        self, reader: LogReader, log_files: list[LogFile], segment_size_bytes: int, *, verify: bool = True
    ) -> None:
        self._reader = reader
        self._walkers = Walkers()
        self._segment_size_bytes = segment_size_bytes
        self._verify = verify
        self._firsts = [file.first_offset for file in log_files]
        self._known = set(self._firsts)
        self.queues = QueueTable()
        self.inner = InnerRecords()
        self.holes: list[Hole] = []
        self.end_phy_offset = self._firsts[0] if self._firsts else 0
        self.last_phy_offset = -1
        self.tail: Damage | None = None
        self._last_store_ms = 0
        self._next_queue_offset: dict[int, int] = {}

    def resume(
        self, phy_offset: int, last: tuple[int, int], next_queue_offsets: Mapping[tuple[str, int], int]
    ) -> None:
        """Goes on where an earlier walk was, instead of at the log's start.

        Args:
            phy_offset: How far it had come, without a hole.
            last: Where the last record before that starts, and its store time.
            next_queue_offsets: Queue offset that each queue goes on with, by topic and number.
        """
        self.end_phy_offset = phy_offset
        self.last_phy_offset, self._last_store_ms = last
        for (topic, queue_id), queue_offset in next_queue_offsets.items():
            self._next_queue_offset[self.queues.number(topic.encode(), queue_id)] = queue_offset

    @property
    def next_queue_offsets(self) -> dict[tuple[str, int], int]:
        """Queue offset that each queue goes on with, by topic and number, as its last record has it."""
        return {self.queues.names[number]: at for number, at in self._next_queue_offset.items()}

    @property
    def last_store_ms(self) -> int:
        """Store time of the last valid record, 0 before the first."""
        return self._last_store_ms

    @property
    def _left_bytes(self) -> int:
        """How much of the log is to be walked, if all of its files are full."""
        return self._firsts[-1] + self._segment_size_bytes - self.end_phy_offset if self._firsts else 0

    def extend(self, log_files: list[LogFile]) -> None:
        """Tells of files that came since."""
        if not self._firsts and log_files:
            self.end_phy_offset = log_files[0].first_offset
        self._firsts = [file.first_offset for file in log_files]
        self._known = set(self._firsts)

    def close(self) -> None:
        """Closes the file that was read last; :meth:`run` opens files again as it needs them."""
        self._walkers.close()
        self._reader.close()

    def run(self, progress: Progress | None = None, room: Room | None = None) -> Rows:
        """Walks on to the end of the log.

        Args:
            progress: Told about every window.
            room: Where the rows go; memory if None.

        Returns:
            ``(n,) ROW``, the records found by this call.
        """
        gathered = Gathered(ROW, room)
        begun, total = self.end_phy_offset, self._left_bytes
        for rows in self.iter_rows(progress):
            gathered.add(rows, max(self.end_phy_offset - begun, 1) / max(total, 1))
        return gathered.items

    def iter_rows(self, progress: Progress | None = None) -> Iterator[Rows]:
        """Walks on to the end of the log as :meth:`run` does, and yields the records window by window.

        Each array is valid until the next one is asked for.
        """
        begun, total = self.end_phy_offset, self._left_bytes
        for rows in self._windows():
            yield rows
            if progress is not None:
                progress(self.end_phy_offset - begun, total)

    def _windows(self) -> Iterator[Rows]:
        need = _WINDOW_BYTES
        while self.end_phy_offset - self.end_phy_offset % self._segment_size_bytes in self._known:
            begun = self.end_phy_offset
            yield from self._ahead()
            start = self.end_phy_offset
            if start > begun:
                need = _SMALL_WINDOW_BYTES  # for what the native walk did not take
            segment_end = start - start % self._segment_size_bytes + self._segment_size_bytes
            window = self._reader.read(start, min(need, segment_end - start))
            result = walk(window, start, segment_end, self.queues, verify=self._verify)
            self._note(result.rows)
            self.inner.note(window, start, result.saying_more, self.queues)
            self.end_phy_offset = start + result.position
            yield result.rows
            room = len(window) - result.position
            need = _WINDOW_BYTES
            if result.stop is Stop.MORE and room < self._reader.available(self.end_phy_offset):
                need = max(_WINDOW_BYTES, 2 * room)
            elif result.stop in (Stop.END, Stop.BLANK):
                self.end_phy_offset = segment_end
                if segment_end not in self._known and not self._step_over(MISSING):
                    return
            else:
                damage = result.damage or (SHORT if any(window[result.position :][:_HEAD_BYTES]) else ZERO)
                if not self._step_over(damage):
                    self.tail = None if damage is ZERO else damage
                    return

    def _ahead(self) -> Iterator[Rows]:
        """Walks on natively, within the segment, as far as records are whole and right."""
        start = self.end_phy_offset
        first = start - start % self._segment_size_bytes
        is_whole = side_by_side.native_stretch is not None
        while is_whole and self.end_phy_offset < first + self._segment_size_bytes:
            begun = self.end_phy_offset
            memory = self._reader.map(begun)
            if memory is None or begun - first >= len(memory):
                return
            try:
                ahead = self._walkers.walk_ahead(
                    memory, first, begun - first, self.queues, self._has_data, verify=self._verify
                )
            except TruncatedError:
                return  # what is there now is for the windows to see, which are read
            self._note(ahead.rows)
            self._note_inner(ahead, first)
            self.end_phy_offset = first + ahead.position
            if len(ahead.rows):
                yield ahead.rows
            is_whole = ahead.is_whole

    def _has_data(self, phy_offset: int) -> bool:
        return self._reader.next_data(phy_offset) == phy_offset

    def _note_inner(self, ahead: Ahead, first: int) -> None:
        """Looks into the records that say more about queues; stretches that hold them are read for that."""
        ends = ahead.rows["phy_offset"] + ahead.rows["size_bytes"]
        places = np.array(ahead.saying_more, np.int64) + first
        # Not np.unique, whose first call imports numpy.ma: that takes longer than opening a small store.
        for number in np.flatnonzero(np.bincount((places - first) // _WINDOW_BYTES)).tolist():
            here = places[(places - first) // _WINDOW_BYTES == number]
            start = int(here[0])
            end = int(ends[np.searchsorted(ahead.rows["phy_offset"], here[-1])])
            window = self._reader.read(start, end - start)
            self.inner.note(window, start, (here - start).tolist(), self.queues)

    def _note(self, rows: Rows) -> None:
        if not len(rows):
            return
        self.last_phy_offset = int(rows["phy_offset"][-1])
        self._last_store_ms = int(rows["store_timestamp_ms"][-1])
        are_placed = places(rows)
        placed = rows if are_placed.all() else rows[are_placed]
        # Where a queue occurs several times, the last assignment stays.
        following = np.full(len(self.queues.names), -1, np.int64)
        following[placed["queue"]] = placed["queue_offset"] + 1
        for number in np.flatnonzero(following >= 0).tolist():
            self._next_queue_offset[number] = int(following[number])

    def _step_over(self, damage: Damage) -> bool:
        """Moves behind the damage at the end position if the log goes on there."""
        start = self.end_phy_offset
        resumed = next(self._candidates(start), None)
        if resumed is None:
            return False
        # The file may be written while we read it: look again before calling it damage.
        again = self._reader.read(start, min(_WINDOW_BYTES, resumed - start))
        if is_written(again, start, start - start % self._segment_size_bytes + self._segment_size_bytes):
            return True
        self.holes.append(Hole(start, resumed - start, damage.kind, str(damage.expected), str(damage.found)))
        self.end_phy_offset = resumed
        return True

    def _candidates(self, start: int) -> Iterator[int]:
        """Yields places behind ``start`` where a record lies that belongs to this life of the log."""
        for first in self._firsts:
            segment_end = first + self._segment_size_bytes
            if segment_end <= start:
                continue
            was_cut: bool | None = False if first >= start else None
            for at, window in self._overlapping(max(first, start + 1), segment_end):
                if not has_data(window):
                    continue
                for found in iter_resync(window, at, 0):
                    if was_cut is None:
                        was_cut = not self._goes_on_behind(first)
                    row = examine(window, found, at + found)
                    if not isinstance(row, Damage) and (not was_cut or self._is_newer(row)):
                        yield at + found

    def _goes_on_behind(self, first_offset: int) -> bool:
        """Returns whether a later file holds a record: then nobody cut the log in this one."""
        for first in self._firsts:
            if first <= first_offset:
                continue
            for at, window in self._overlapping(first, first + self._segment_size_bytes):
                likely = iter_resync(window, at, 0) if has_data(window) else ()
                if any(not isinstance(examine(window, place, at + place), Damage) for place in likely):
                    return True
        return False

    def _overlapping(self, start: int, end: int) -> Iterator[tuple[int, memoryview]]:
        """Yields windows of the data of a segment, each with what a record at its end may reach over."""
        stretches = self._reader.data_stretches(start, end)
        for first, stop in stretches:
            for at in range(first, stop, _WINDOW_BYTES):
                limit = min(at + _WINDOW_BYTES + _RESYNC_OVERLAP_BYTES, end)
                # A record may hold holes, or end with zeros behind the last data.
                reach = max(stretch_end for begin, stretch_end in stretches if begin < limit)
                window = self._reader.read(at, min(limit, reach + _RECORD_ZEROS_BYTES) - at)
                if len(window) < MIN_RECORD_BYTES:
                    return
                yield at, window

    def _is_newer(self, row: RecordRow) -> bool:
        if row.store_timestamp_ms < self._last_store_ms:
            return False
        if not takes_queue_offset(row.sys_flag):
            return True
        queue = self.queues.find(row.topic, row.queue_id)
        return queue is None or row.queue_offset >= self._next_queue_offset.get(queue, 0)


def is_written(window: memoryview, phy_offset: int, segment_end: int) -> bool:
    """Returns whether a whole record, or the filler of the segment, begins the window.

    Args:
        window: Bytes of the log.
        phy_offset: Physical offset of their first.
        segment_end: Where their segment ends.
    """
    if len(window) >= FILLER_BYTES:
        size, magic = FILLER.struct.unpack_from(window)
        if magic == MAGIC_BLANK and size == segment_end - phy_offset:
            return True
    return not isinstance(examine(window, 0, phy_offset), Damage)


def segment_holes(
    files: Files, root: Path, first_phy_offset: int, segment_size_bytes: int, end_phy_offset: int
) -> list[Hole]:
    """Returns the stretches without records of a segment that was full, or full up to a place."""
    end = min(first_phy_offset + segment_size_bytes, end_phy_offset)
    reader = LogReader(files, root, segment_size_bytes)
    scan = LogScan(reader, [LogFile(first_phy_offset, segment_size_bytes)], segment_size_bytes)
    try:
        for _rows in scan.iter_rows():
            pass  # their places do not matter here
    finally:
        scan.close()
    holes = [hole for hole in scan.holes if hole.phy_offset < end]
    if scan.end_phy_offset < end:
        holes.append(Hole(scan.end_phy_offset, end - scan.end_phy_offset, "rot"))
    return holes
