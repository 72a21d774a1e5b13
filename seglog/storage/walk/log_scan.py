"""The walk over a whole commit log, one record after the other: records, holes, and where the log ends.

The walk can continue later at its end; so a reader follows a running writer. Splits of a log are walked by
:mod:`seglog.storage.splits.split_scan`; both use :mod:`~seglog.storage.walk.segment_walk` and
:mod:`~seglog.storage.walk.behind_damage`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import numpy as np

from seglog.storage.directory.log_files import LogFile, LogReader
from seglog.storage.files.files import Files
from seglog.storage.format.record.record import Damage
from seglog.storage.kernels import parallel_walk
from seglog.storage.kernels.parallel_walk import Walkers
from seglog.storage.kernels.walk import ROW, QueueTable, Rows, places
from seglog.storage.segments.scratch import Room
from seglog.storage.walk.behind_damage import Head, Hole, LogEnd
from seglog.storage.walk.growable_rows import Gathered
from seglog.storage.walk.inner_records import InnerRecords
from seglog.storage.walk.segment_walk import MISSING, ZERO, NativeStep, SegmentWalk, Split

Progress = Callable[[int, int], None]
"""Called with bytes read and bytes in all."""


class LogScan:
    """A walk over the whole log, and its state.

    Attributes:
        queues: The queues that records belong to.
        last_phy_offset: Start of the last valid record, -1 before the first.
        inner: The facts about queues in the properties of records.
        tail: The damage at the end, None if nothing was written there.
    """

    def __init__(
        self, reader: LogReader, log_files: list[LogFile], segment_size_bytes: int, *, verify: bool = True
    ) -> None:
        self.queues = QueueTable()
        self.inner = InnerRecords()
        self._reader = reader
        self._walkers = Walkers()
        self._segment_size_bytes = segment_size_bytes
        self._verify = verify
        native = None if parallel_walk.native_stretch is None else self._step
        self._walk = SegmentWalk(reader, segment_size_bytes, self.queues, verify=verify, native=native)
        self._end = LogEnd(self, [file.first_offset for file in log_files], segment_size_bytes)
        self.last_phy_offset = -1
        self.tail: Damage | None = None

    def resume(
        self, phy_offset: int, last: tuple[int, int], next_queue_offsets: Mapping[tuple[str, int], int]
    ) -> None:
        """Starts at the end of an earlier walk, instead of at the start of the log.

        Args:
            phy_offset: End of the earlier walk, which found no hole.
            last: Physical offset and store time of the last record before that end.
            next_queue_offsets: Queue offset with which each queue continues, by topic and number.
        """
        self._end.phy_offset = phy_offset
        self.last_phy_offset, self._end.last_store_ms = last
        self._end.next_queue_offset.update(next_queue_offsets)

    @property
    def holes(self) -> list[Hole]:
        """Stretches without readable records, in order."""
        return self._end.holes

    @property
    def end_phy_offset(self) -> int:
        """End of the last valid record (or filler): the place of the next record."""
        return self._end.phy_offset

    @property
    def next_queue_offsets(self) -> Mapping[tuple[str, int], int]:
        """Queue offset behind the last record of each queue, by topic and number."""
        return self._end.next_queue_offset

    @property
    def last_store_ms(self) -> int:
        """Store time of the last valid record, 0 before the first."""
        return self._end.last_store_ms

    @property
    def _left_bytes(self) -> int:
        """Bytes of the log that remain to walk, if all of its files are full."""
        firsts = self._end.firsts
        return firsts[-1] + self._segment_size_bytes - self.end_phy_offset if firsts else 0

    def extend(self, log_files: list[LogFile]) -> None:
        """Adds files that were created since."""
        if not self._end.firsts and log_files:
            self._end.phy_offset = log_files[0].first_offset
        self._end.firsts = [file.first_offset for file in log_files]

    def close(self) -> None:
        """Closes the file that was read last; :meth:`run` opens files again as it needs them."""
        self._walkers.close()
        self._reader.close()

    def run(self, progress: Progress | None = None, room: Room | None = None) -> Rows:
        """Walks on to the end of the log.

        Args:
            progress: Called after every window.
            room: Allocates the rows; None for memory.

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

        Each array is valid until the next iteration.
        """
        begun, total, known = self.end_phy_offset, self._left_bytes, set(self._end.firsts)
        while (split := self._segment_at(self.end_phy_offset)).start in known:
            for walked in self._walk.run(split, self.end_phy_offset, self.inner):
                self._note(walked.rows)
                self._end.phy_offset = self._walk.position
                yield walked.rows
                if progress is not None:
                    progress(self.end_phy_offset - begun, total)
            self._end.phy_offset = self._walk.position
            damage = self._walk.damage
            if damage is None and self.end_phy_offset == split.end and split.end not in known:
                damage = MISSING
            if damage is not None and not self._end.step_over(damage):
                self.tail = None if damage in (MISSING, ZERO) else damage
                return

    def heads(self, start: int, first_offset: int) -> Iterator[tuple[int, Head]]:
        """Yields the records that prove themselves in a segment, from ``start`` on."""
        for place, row in self._walk.proven(self._segment_at(first_offset), start):
            yield place, Head.of(row)

    def is_written(self, phy_offset: int) -> bool:
        """Returns whether a whole record, or the filler of its segment, is at a place now."""
        return self._walk.is_written(phy_offset)

    def _segment_at(self, phy_offset: int) -> Split:
        first = phy_offset - phy_offset % self._segment_size_bytes
        end = first + self._segment_size_bytes
        return Split(0, first, end, end)

    def _step(self, memory: memoryview, first: int, start: int, _end: int) -> NativeStep:
        """Walks on in several threads."""
        ahead = self._walkers.walk_ahead(
            memory, first, start, self.queues, self._has_data, verify=self._verify
        )
        return NativeStep(ahead.rows, None, ahead.saying_more, ahead.position, ahead.is_whole)

    def _has_data(self, phy_offset: int) -> bool:
        return self._reader.next_data(phy_offset) == phy_offset

    def _note(self, rows: Rows) -> None:
        self.last_phy_offset = int(rows["phy_offset"][-1])
        self._end.last_store_ms = int(rows["store_timestamp_ms"][-1])
        are_placed = places(rows)
        placed = rows if are_placed.all() else rows[are_placed]
        # If a queue occurs several times, the last assignment stays.
        following = np.full(len(self.queues.names), -1, np.int64)
        following[placed["queue"]] = placed["queue_offset"] + 1
        names = self.queues.names
        for number in np.flatnonzero(following >= 0).tolist():
            self._end.next_queue_offset[names[number]] = int(following[number])


def segment_holes(
    files: Files, root: Path, first_phy_offset: int, segment_size_bytes: int, end_phy_offset: int
) -> list[Hole]:
    """Returns the stretches without records of a segment that was full, or full up to a place."""
    end = min(first_phy_offset + segment_size_bytes, end_phy_offset)
    reader = LogReader(files, root, segment_size_bytes)
    with closing(
        LogScan(reader, [LogFile(first_phy_offset, segment_size_bytes)], segment_size_bytes)
    ) as scan:
        for _rows in scan.iter_rows():
            pass  # only the holes matter here
    holes = [hole for hole in scan.holes if hole.phy_offset < end]
    if scan.end_phy_offset < end:
        holes.append(Hole(scan.end_phy_offset, end - scan.end_phy_offset, "rot"))
    return holes
