"""The walk over one split. No Spark in here: a task calls it, and so may anything else.

A split is walked as if a record began at its first byte. Where none does (a record of the split before
continues there, or the log is damaged), that is a stretch without records, and the walk continues at the
next record that proves itself. Which of the two it was only the driver knows, from where the split before
ended: see :mod:`seglog.storage.splits.stitch`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

from seglog.storage.directory import LogReader, StoreGeometry
from seglog.storage.files.files import Files
from seglog.storage.format import names
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT
from seglog.storage.kernels import walk_into
from seglog.storage.kernels.index_keys import RecordKeys, index_keys
from seglog.storage.kernels.walk import QueueTable, Rows
from seglog.storage.splits.batch_runs import BatchUnitFinder
from seglog.storage.splits.known_records import KnownStretch
from seglog.storage.splits.stretch_builder import StretchBuilder
from seglog.storage.splits.stretches import Stretch
from seglog.storage.splits.unit_files import UnitFiles
from seglog.storage.walk.behind_damage import Head
from seglog.storage.walk.segment_walk import NativeStep, SegmentWalk, Split, Stopped

_AHEAD_BYTES: Final = 16 << 20
"""Walked natively at a time: so much of the map counts as memory of ours."""
_TAKEN_BYTES: Final = 1 << 20
"""The same where more is read of it: so much stays in the caches."""


class Watch(Protocol):
    """Looks at records as they are walked, for what an audit does not ask."""

    @property
    def tags(self) -> bool:
        """Whether tags are among the keys that it wants."""

    def begin(self, phy_offset: int) -> None:
        """Takes the place where a stretch begins."""

    def note(self, rows: Rows, keys: RecordKeys) -> None:
        """Takes the next records of the stretch.

        Args:
            rows: ``(n,) ROW``, valid during the call.
            keys: Their keys, valid during the call.
        """

    def end(self, stretch: Stretch) -> None:
        """Takes the finished stretch."""


class Taker(Protocol):
    """Reads more of records while they are in the processor's caches and in the map that is given back."""

    def take(
        self, memory: memoryview, phy_offset: int, rows: Rows, queues: Sequence[tuple[str, int]]
    ) -> None:
        """Takes the next records.

        Args:
            memory: A stretch of the log; a map, for native kernels only, where there are such.
            phy_offset: Physical offset of its first byte.
            rows: ``(n,) ROW``, records within it, valid during the call.
            queues: Topic and number by the rows' ``queue``.
        """


class SplitScan:
    """Walks splits of one store; one at a time.

    Args:
        files: Where the store is.
        root: The store directory.
        geometry: Lengths of its files.
        batch_topics: Topics with batch queues.
        verify: Whether to compute checksums; everything else is always checked.
        watch: Looks on.
        taker: Reads more of the records.
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
        taker: Taker | None = None,
        units: UnitFiles | None = None,
    ) -> None:
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
        self._taker = taker
        is_native = walk_into.native_into is not None
        self._keys = walk_into.new_keys() if watch is not None and is_native else None
        self._segment_walk = SegmentWalk(
            self._reader,
            geometry.segment_size_bytes,
            self._queues,
            verify=verify,
            native=self._step if is_native else None,
        )
        self._builder: StretchBuilder

    def run(
        self, split: Split, start: int | None = None, known: KnownStretch | None = None
    ) -> Iterator[Stretch]:
        """Yields the stretches of a split in log order.

        Args:
            split: The split.
            start: Where in it to begin, its first byte if None.
            known: Its first records, which are not walked again; only of a scan that walked nothing yet.
        """
        position: int | None = split.start if start is None else start
        if known is not None and known.is_there(self._reader):
            position = known.start
        else:
            known = None
        while position is not None:
            if self._watch is not None:
                self._watch.begin(position)
            stretch, known = self._walk(split, position, known), None
            if self._watch is not None:
                self._watch.end(stretch)
            yield stretch
            if stretch.stopped is not Stopped.DAMAGE:
                return
            position = next((at for at, _head in self.heads(stretch.end + 1, split)), None)

    def heads(self, start: int, split: Split) -> Iterator[tuple[int, Head]]:
        """Yields the records of a split that prove themselves at or behind ``start``, with their places."""
        for place, row in self._segment_walk.proven(split, start):
            yield place, Head.of(row)

    def is_written(self, phy_offset: int) -> bool:
        """Returns whether a whole record, or the filler of its segment, is at a place now."""
        return self._segment_walk.is_written(phy_offset)

    def close(self) -> None:
        """Closes the file that was read last."""
        self._reader.close()

    def _walk(self, split: Split, position: int, known: KnownStretch | None) -> Stretch:
        builder = self._builder = StretchBuilder(
            split, position, self._queues, self._batch_topics, self._units, self._batch_units
        )
        walk, watch = self._segment_walk, self._watch
        if known is not None:
            self._take_known(known)
            position = known.end
        for rows, keys, window in walk.run(split, position, builder.inner):
            if window is None:
                if watch is not None and keys is not None:
                    watch.note(rows, keys)
                builder.take(len(rows))
                continue
            builder.add(rows)
            if self._taker is not None:
                self._taker.take(window, int(rows["phy_offset"][0]), rows, self._queues.names)
            if watch is not None:
                first, last = int(rows["phy_offset"][0]), rows[-1]
                taken = window[: int(last["phy_offset"]) + int(last["size_bytes"]) - first]
                watch.note(rows, index_keys(taken, first, tags=watch.tags))
        return builder.build(walk.position, walk.stopped, walk.damage)

    def _take_known(self, known: KnownStretch) -> None:
        for topic, queue_id in known.names:
            self._queues.number(topic.encode(), queue_id)
        for rows, keys in known.groups():
            self._builder.add(rows)
            if self._watch is not None:
                self._watch.note(rows, keys)

    def _step(self, memory: memoryview, first: int, start: int, end: int) -> NativeStep:
        """Walks on into the memory of the builder."""
        until = min(start + (_AHEAD_BYTES if self._taker is None else _TAKEN_BYTES), end)
        rows = self._builder.room()
        tags = self._watch is not None and self._watch.tags
        walked = walk_into.walk_into(
            memory, first, start, until, self._queues, rows, self._keys, verify=self._verify, tags=tags
        )
        if self._taker is not None:
            self._taker.take(memory, first, rows[: walked.row_count], self._queues.names)
        # So much of the map would count as memory of ours.
        self._reader.let_go(first + start, first + walked.position)
        goes_on = walked.position >= until or walked.is_full
        return NativeStep(rows[: walked.row_count], walked.keys, walked.saying_more, walked.position, goes_on)
