"""The walk over one split. No Spark in here: a task calls it, and so may anything else.

A split is walked as if a record began at its first byte. Where none does (a record of the split before
goes on there, or there is damage), that is a stretch without records, and the walk goes on at the next
record that proves itself. Which of the two it was only the driver can tell, from where the split before
ended: see :mod:`seglog.storage.audit.stitch`.

Memory is bounded by the read window, or the longest record where that is longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

import numpy as np

from seglog.storage.audit.batch_runs import BatchUnitFinder
from seglog.storage.audit.splits import Split
from seglog.storage.audit.stretch_builder import StretchBuilder
from seglog.storage.audit.stretches import Stopped, Stretch
from seglog.storage.audit.unit_files import UnitFiles
from seglog.storage.files import Files
from seglog.storage.format import names
from seglog.storage.format.batch_consume_queue import BATCH_UNIT
from seglog.storage.format.record import FILLER_BYTES, Damage, RecordRow, examine
from seglog.storage.geometry import StoreGeometry
from seglog.storage.inner_records import InnerRecords
from seglog.storage.kernels.walk import QueueTable, Rows, Stop, iter_resync, walk
from seglog.storage.log_files import LogReader
from seglog.storage.log_scan import SHORT, ZERO, is_written

_WINDOW_BYTES: Final = 8 << 20
_OVERLAP_BYTES: Final = 8 << 20
"""Longer than any record with the default limits, so that none is missed at a window's edge."""
_FIRST_READ_ON_BYTES: Final = 4096


class Watch(Protocol):
    """Looks at records as they are walked, for what an audit does not ask."""

    def begin(self, phy_offset: int) -> None:
        """Told where a stretch begins."""
        ...

    def note(
        self, window: memoryview, phy_offset: int, rows: Rows, queues: Sequence[tuple[str, int]]
    ) -> None:
        """Told of the next records of the stretch.

        Args:
            window: Bytes of the log that hold them, valid during the call.
            phy_offset: Physical offset of its first byte.
            rows: ``(n,) ROW``.
            queues: Topic and number by the rows' ``queue``.
        """
        ...

    def end(self, stretch: Stretch) -> None:
        """Told of the stretch as it is."""
        ...


class SplitScan:
    """Walks splits of one store; one at a time.

    Args:
        files: Where the store is.
        root: The store directory.
        geometry: Lengths of its files.
        batch_topics: Topics with batch queues.
        verify: Whether to compute checksums; everything else is always checked.
        watch: Looks on.
    """

    def __init__(
        self,
        files: Files,
        root: Path,
        geometry: StoreGeometry,
        batch_topics: frozenset[str],
        *,
        verify: bool = True,
        watch: Watch | None = None,
    ) -> None:
        self._reader = LogReader(files, root, geometry.segment_size_bytes)
        self._units = UnitFiles(files, root, geometry.queue_file_size_bytes)
        batch_units = UnitFiles(
            files, root, geometry.batch_file_size_bytes, BATCH_UNIT, names.BATCH_CONSUME_QUEUE
        )
        self._batch_units = BatchUnitFinder(batch_units)
        self._batch_topics = batch_topics
        self._queues = QueueTable()
        self._verify = verify
        self._watch = watch

    def run(self, split: Split, start: int | None = None) -> Iterator[Stretch]:
        """Yields the stretches of a split in log order.

        Args:
            split: The split.
            start: Where in it to begin, its first byte if None.
        """
        position: int | None = split.start if start is None else start
        while position is not None:
            if self._watch is not None:
                self._watch.begin(position)
            stretch = self._walk(split, position)
            if self._watch is not None:
                self._watch.end(stretch)
            yield stretch
            if stretch.stopped is not Stopped.DAMAGE:
                return
            position = next((at for at, _row in self.candidates(stretch.end + 1, split)), None)

    def candidates(self, start: int, split: Split) -> Iterator[tuple[int, RecordRow]]:
        """Yields the records of a split that prove themselves at or behind ``start``, with their places."""
        at = self._reader.next_data(start)
        while at is not None and at < split.end:
            covered = min(_WINDOW_BYTES, split.end - at)
            window = self._reader.read(at, min(covered + _OVERLAP_BYTES, split.segment_end - at))
            for found in iter_resync(window, at, 0):
                if found >= covered:
                    break
                row = examine(window, found, at + found)
                if not isinstance(row, Damage):
                    yield at + found, row
            if len(window) < covered:
                return
            at = self._reader.next_data(at + covered)

    def is_written(self, phy_offset: int, split: Split) -> bool:
        """Whether a whole record or a filler lies there now."""
        window = self._reader.read(phy_offset, min(_OVERLAP_BYTES, split.segment_end - phy_offset))
        return is_written(window, phy_offset, split.segment_end)

    def close(self) -> None:
        """Closes the file that was read last."""
        self._reader.close()

    def _walk(self, split: Split, position: int) -> Stretch:
        builder = StretchBuilder(
            split, position, self._queues, self._batch_topics, self._units, self._batch_units
        )
        need = 0
        while position < split.end:
            need = max(need, min(_WINDOW_BYTES, split.end - position))
            window = self._reader.read(position, min(need, split.segment_end - position))
            result = walk(window, position, split.segment_end, self._queues, verify=self._verify)
            owned = int(np.searchsorted(result.rows["phy_offset"], split.end))
            mine = split.end - position
            inner = InnerRecords()  # no record of a window says anything of others
            inner.note(window, position, [at for at in result.saying_more if at < mine], self._queues)
            builder.add(result.rows[:owned], inner)
            if self._watch is not None and owned:
                self._watch.note(window, position, result.rows[:owned], self._queues.names)
            if owned < len(result.rows):
                return builder.build(int(result.rows["phy_offset"][owned]), Stopped.SPLIT_END)
            position += result.position
            room = len(window) - result.position
            if result.stop in (Stop.END, Stop.BLANK):
                return builder.build(split.segment_end, Stopped.SEGMENT_END)
            if result.stop is Stop.MORE and room < self._reader.available(position):
                need = 0 if result.position else max(2 * room, _FIRST_READ_ON_BYTES)
            elif position < split.end:
                rest = window[result.position :][:FILLER_BYTES]
                damage = result.damage or (SHORT if any(rest) else ZERO)
                return builder.build(position, Stopped.DAMAGE, damage)
        return builder.build(position, Stopped.SPLIT_END)
