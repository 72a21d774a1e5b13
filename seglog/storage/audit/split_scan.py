"""The walk over one split. No Spark in here: a task calls it, and so may anything else.

A split is walked as if a record began at its first byte. Where none does (a record of the split before
goes on there, or there is damage), that is a stretch without records, and the walk goes on at the next
record that proves itself. Which of the two it was only the driver can tell, from where the split before
ended: see :mod:`seglog.storage.audit.stitch`.

Memory is bounded by the read window, or the longest record where that is longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

import numpy as np

from seglog.errors import TruncatedError
from seglog.storage.audit.batch_runs import BatchUnitFinder
from seglog.storage.audit.splits import Split
from seglog.storage.audit.stretch_builder import StretchBuilder
from seglog.storage.audit.stretches import Stopped, Stretch
from seglog.storage.audit.unit_files import UnitFiles
from seglog.storage.directory.geometry import StoreGeometry
from seglog.storage.directory.log_files import LogReader
from seglog.storage.files.files import Files
from seglog.storage.format import names
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT
from seglog.storage.format.record.record import FILLER, FILLER_BYTES, MAGIC_BLANK, Damage, RecordRow, examine
from seglog.storage.kernels import walk_into
from seglog.storage.kernels.index_keys import RecordKeys, index_keys
from seglog.storage.kernels.walk import QueueTable, Rows, Stop, next_record, walk
from seglog.storage.walk.log_scan import SHORT, ZERO, is_written

_WINDOW_BYTES: Final = 8 << 20
_SMALL_WINDOW_BYTES: Final = 64 << 10
_AHEAD_BYTES: Final = 16 << 20
"""Walked natively at a time: so much of the map counts as memory of ours."""
_OVERLAP_BYTES: Final = 8 << 20
"""Longer than any record with the default limits, so that none is missed at a window's edge."""
_FIRST_READ_ON_BYTES: Final = 4096


class Watch(Protocol):
    """Looks at records as they are walked, for what an audit does not ask."""

    @property
    def tags(self) -> bool:
        """Whether tags are among the keys that it wants to be told."""

    def begin(self, phy_offset: int) -> None:
        """Told where a stretch begins."""

    def note(self, rows: Rows, keys: RecordKeys) -> None:
        """Told of the next records of the stretch.

        Args:
            rows: ``(n,) ROW``, valid during the call.
            keys: Their keys, valid during the call.
        """

    def end(self, stretch: Stretch) -> None:
        """Told of the stretch as it is."""


class SplitScan:
    """Walks splits of one store; one at a time.

    Args:
        files: Where the store is.
        root: The store directory.
        geometry: Lengths of its files.
        batch_topics: Topics with batch queues.
        verify: Whether to compute checksums; everything else is always checked.
        watch: Looks on.
        units: The store's plain queue files, where they were listed before; any thread may share them.
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
        units: UnitFiles | None = None,
    ) -> None:
        self._segment_size_bytes = geometry.segment_size_bytes
        self._window_bytes = _WINDOW_BYTES if walk_into.native_into is None else _SMALL_WINDOW_BYTES
        self._reader = LogReader(files, root, geometry.segment_size_bytes)
        self._units = units or UnitFiles(files, root, geometry.queue_file_size_bytes)
        batch_units = UnitFiles(
            files, root, geometry.batch_file_size_bytes, BATCH_UNIT, names.BATCH_CONSUME_QUEUE
        )
        self._batch_units = BatchUnitFinder(batch_units)
        self._batch_topics = batch_topics
        self._queues = QueueTable()
        self._verify = verify
        self._watch = watch
        self._keys = None if watch is None or walk_into.native_into is None else walk_into.new_keys()

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
            for place in self._proven(at, covered, split):
                row = examine(self._read_record(place, split), 0, place)
                if not isinstance(row, Damage):
                    yield place, row
            if self._reader.available(at) < covered:
                return
            at = self._reader.next_data(at + covered)

    def _proven(self, at: int, covered_bytes: int, split: Split) -> Iterator[int]:
        """Yields where records that begin in a stretch prove themselves."""
        wanted = min(covered_bytes + _OVERLAP_BYTES, split.segment_end - at)
        memory = self._map(at)
        first = split.segment_end - self._segment_size_bytes
        window = self._reader.read(at, wanted) if memory is None else memory[at - first :][:wanted]
        start = 0
        while start < min(covered_bytes, len(window)):
            try:
                found = next_record(window, at, start, min(covered_bytes, len(window)))
            except TruncatedError:  # of a map, whose file was cut
                memory, window = None, self._reader.read(at, wanted)
                continue
            if found is None:
                break
            yield at + found
            start = found + 1
        if memory is not None:
            self._reader.let_go(at, at + len(window))

    def _read_record(self, phy_offset: int, split: Split) -> memoryview:
        head = self._reader.read(phy_offset, FILLER_BYTES)
        size = FILLER.struct.unpack(head)[0] if len(head) == FILLER_BYTES else 0
        return self._reader.read(phy_offset, min(max(size, 0), split.segment_end - phy_offset))

    def _map(self, phy_offset: int) -> memoryview | None:
        """Returns the segment as memory, where native kernels read it and a byte of it was ever written."""
        return None if walk_into.native_into is None else self._reader.map(phy_offset)

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
            begun = position
            position = self._ahead(builder, split, position)
            if position >= split.end:
                break
            if position > begun:
                need = _SMALL_WINDOW_BYTES  # for what the native walk did not take
            need = max(need, min(self._window_bytes, split.end - position))
            window = self._reader.read(position, min(need, split.segment_end - position))
            result = walk(window, position, split.segment_end, self._queues, verify=self._verify)
            owned = int(np.searchsorted(result.rows["phy_offset"], split.end))
            mine = split.end - position
            saying_more = [at for at in result.saying_more if at < mine]
            builder.inner.note(window, position, saying_more, self._queues)
            builder.add(result.rows[:owned])
            if self._watch is not None and owned:
                last = result.rows[owned - 1]
                taken = window[: int(last["phy_offset"]) + int(last["size_bytes"]) - position]
                self._watch.note(result.rows[:owned], index_keys(taken, position, tags=self._watch.tags))
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
        if position == split.segment_end or self._is_filled(position, split):
            return builder.build(split.segment_end, Stopped.SEGMENT_END)
        return builder.build(position, Stopped.SPLIT_END)

    def _is_filled(self, position: int, split: Split) -> bool:
        """Returns whether a filler takes the rest of the segment."""
        head = self._reader.read(position, FILLER_BYTES)
        return bytes(head) == FILLER.struct.pack(split.segment_end - position, MAGIC_BLANK)

    def _ahead(self, builder: StretchBuilder, split: Split, position: int) -> int:
        """Walks on natively as far as records are whole and right; returns where that ends."""
        first = split.segment_end - self._segment_size_bytes
        while position < split.end:
            # A map makes pages of what was never written.
            memory = self._map(position) if self._reader.next_data(position) == position else None
            if memory is None or position - first >= len(memory):
                return position
            until = min(position + _AHEAD_BYTES, split.end) - first
            rows = builder.room()
            tags = self._watch is not None and self._watch.tags
            try:
                walked = walk_into.walk_into(
                    memory,
                    first,
                    position - first,
                    min(until, len(memory)),
                    self._queues,
                    rows,
                    self._keys,
                    verify=self._verify,
                    tags=tags,
                )
            except TruncatedError:
                return position  # what is there now is for the windows to see, which are read
            end = first + walked.position
            self._note_inner(builder, position, end, [first + at for at in walked.saying_more])
            if self._watch is not None and walked.row_count:
                self._watch.note(rows[: walked.row_count], walked.keys)
            builder.take(walked.row_count)
            self._reader.let_go(position, end)
            position = end
            if walked.position < until and not walked.is_full:
                break
        return position

    def _note_inner(self, builder: StretchBuilder, start: int, end: int, places: list[int]) -> None:
        """Looks into the records that say more about queues; stretches that hold them are read for that."""
        if not places:
            return
        begin = places[0]
        window = self._reader.read(begin, end - begin)
        builder.inner.note(window, begin, [place - begin for place in places], self._queues)
