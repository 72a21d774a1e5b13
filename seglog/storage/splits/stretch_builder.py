"""Folds the rows of a walk into a stretch: what is known of each queue grows by runs, not by records."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from seglog.storage.format.record import Damage, takes_queue_offset
from seglog.storage.kernels.queue_rows import Group, group, stand_in
from seglog.storage.kernels.walk import ROW, QueueTable, Rows, places
from seglog.storage.overlay.batch_overlay import units_of_rows
from seglog.storage.splits.batch_runs import BatchRuns, BatchUnitFinder
from seglog.storage.splits.stretches import Interval, QueueEnd, Stretch, UnitState
from seglog.storage.splits.unit_files import UnitFiles
from seglog.storage.walk import Head, Split, Stopped
from seglog.storage.walk.dispatch import dispatch, topics_with_inner_batches
from seglog.storage.walk.inner_records import InnerRecords

_GATHERED_ROWS: Final = 1 << 16
_NO_ROWS: Final[Rows] = np.empty(0, ROW)


class StretchBuilder:
    """A stretch in the making.

    Args:
        split: The split that owns it.
        start: Physical offset where it starts.
        queues: The queues that rows belong to.
        batch_topics: Topics with batch queues.
        units: The store's queue files.
        batch_units: Its batch-queue files.

    Attributes:
        inner: Takes what the properties of records say about queues, before they are added.
    """

    def __init__(
        self,
        split: Split,
        start: int,
        queues: QueueTable,
        batch_topics: frozenset[str],
        units: UnitFiles,
        batch_units: BatchUnitFinder,
    ) -> None:
        self._split = split
        self._start = start
        self._queues = queues
        self._batch_topics = batch_topics
        self._units = units
        self._batch_runs = BatchRuns(batch_units)
        self._gathered = _NO_ROWS  # memory of many rows, once there is one
        self._gathered_rows = 0
        self.inner = InnerRecords()
        self._records = 0
        self._size_bytes = 0
        self._head: Head | None = None
        self._last_store_timestamp_ms = 0
        self._max_store_timestamp_ms = 0
        self._intervals: dict[tuple[str, int], list[Interval]] = {}
        self._next_queue_offset: dict[int, int] = {}
        self._inner_topics: set[str] = set()

    def add(self, rows: Rows) -> None:
        """Adds records: those that follow the ones before.

        Args:
            rows: ``(n,) ROW``; what their properties say about queues is in :attr:`inner` already.
        """
        # All of them before anything is folded: what is known of their properties goes with them.
        end = self._gathered_rows + len(rows)
        if end > len(self._gathered):
            grown = np.empty(max(end, _GATHERED_ROWS), ROW)
            grown[: self._gathered_rows] = self._gathered[: self._gathered_rows]
            self._gathered = grown
        self._gathered[self._gathered_rows : end] = rows
        self.take(len(rows))

    def room(self) -> Rows:
        """Returns where the next records may be written, of one or more; :meth:`take` adds them."""
        if not len(self._gathered):
            self._gathered = np.empty(_GATHERED_ROWS, ROW)
        return self._gathered[self._gathered_rows :]

    def take(self, count: int) -> None:
        """Adds so many records that were written into the room; :meth:`add` says the rest."""
        self._gathered_rows += count
        if self._gathered_rows >= _GATHERED_ROWS:
            self._fold()

    def _fold(self) -> None:
        """Folds the records gathered so far: each queue costs, however few of its records there are."""
        if not self._gathered_rows:
            return
        rows = self._gathered[: self._gathered_rows]
        self._gathered_rows = 0
        if self._head is None:
            self._head = self._read_head(rows)
        times = rows["store_timestamp_ms"]
        self._records += len(rows)
        self._size_bytes += int(rows["size_bytes"].sum(dtype=np.int64))
        self._last_store_timestamp_ms = int(times[-1])
        self._max_store_timestamp_ms = max(self._max_store_timestamp_ms, int(times.max()))
        further = self.inner.take_further()
        is_plain = not len(further) and self._batch_topics.isdisjoint(name for name, _ in self._queues.names)
        groups = group(rows, len(self._queues.names)) if is_plain else None
        if groups is None:
            self._fold_others(rows, further)
        else:
            for one in groups:
                self._next_queue_offset[one.queue] = int(one.rows["queue_offset"][-1]) + 1
                self._add_intervals(*self._queues.names[one.queue], self._intervals_of(one))
        self.inner.ranges.clear()

    def _fold_others(self, rows: Rows, further: Rows) -> None:
        """Folds records of which some stand in several queues, or in batch queues."""
        self._inner_topics |= topics_with_inner_batches(rows, self._queues)
        own = rows[places(rows)][::-1]
        numbers, last = np.unique(own["queue"], return_index=True)
        ends = own["queue_offset"][last] + 1
        self._next_queue_offset.update(zip(numbers.tolist(), ends.tolist(), strict=True))
        placed = dispatch(rows, further, self._queues, self._batch_topics)
        for (topic, queue_id), of_queue in placed.plain.items():
            self._add_intervals(topic, queue_id, self._runs(topic, queue_id, of_queue))
        for (topic, queue_id), of_queue in placed.batch.items():
            self._batch_runs.add(topic, queue_id, units_of_rows(of_queue, self.inner.ranges))

    def _add_intervals(self, topic: str, queue_id: int, intervals: Iterable[Interval]) -> None:
        known = self._intervals.setdefault((topic, queue_id), [])
        for interval in intervals:
            if known and known[-1].is_continued_by(interval):
                known[-1] = known[-1].joined(interval)
            else:
                known.append(interval)

    def _intervals_of(self, found: Group) -> Iterable[Interval]:
        """Returns the intervals of one queue's rows: a single one where its units are those."""
        topic, queue_id = self._queues.names[found.queue]
        rows = found.rows
        first = int(rows["queue_offset"][0])
        if not stand_in(rows, self._units.read(topic, queue_id, first, len(rows))):
            return self._runs(topic, queue_id, rows)
        return [
            Interval(
                topic,
                queue_id,
                UnitState.AGREES,
                len(rows),
                found.size_bytes,
                first,
                int(rows["phy_offset"][0]),
                int(rows["phy_offset"][-1]),
                found.least_ms,
                found.greatest_ms,
            )
        ]

    def build(self, end: int, stopped: Stopped, damage: Damage | None = None) -> Stretch:
        """Returns the stretch that ends here."""
        self._fold()
        names, ends = self._queues.names, self._next_queue_offset
        return Stretch(
            self._split.number,
            self._start,
            end,
            stopped,
            damage and Damage(damage.kind, str(damage.expected), str(damage.found)),
            self._records,
            self._size_bytes,
            self._head,
            self._last_store_timestamp_ms,
            self._max_store_timestamp_ms,
            tuple(interval for known in self._intervals.values() for interval in known),
            self._batch_runs.build(),
            tuple(QueueEnd(*names[number], next_offset) for number, next_offset in ends.items()),
            tuple(sorted(self._inner_topics)),
        )

    def _read_head(self, rows: Rows) -> Head:
        first = rows[0]
        topic, queue_id = self._queues.names[int(first["queue"])]
        placed = takes_queue_offset(int(first["sys_flag"]))
        queue_offset = int(first["queue_offset"]) if placed else None
        return Head(int(first["store_timestamp_ms"]), topic, queue_id, queue_offset)

    def _runs(self, topic: str, queue_id: int, rows: Rows) -> Iterator[Interval]:
        """Yields the intervals of one queue's rows in log order."""
        for run in np.split(rows, np.flatnonzero(np.diff(rows["queue_offset"]) != 1) + 1):
            states = self._units.states(topic, queue_id, run)
            changes = [0, *(np.flatnonzero(np.diff(states)) + 1).tolist(), len(run)]
            for start, end in itertools.pairwise(changes):
                part = run[start:end]
                yield Interval(
                    topic,
                    queue_id,
                    UnitState(states[start]),
                    len(part),
                    int(part["size_bytes"].sum(dtype=np.int64)),
                    int(part["queue_offset"][0]),
                    int(part["phy_offset"][0]),
                    int(part["phy_offset"][-1]),
                    int(part["store_timestamp_ms"].min()),
                    int(part["store_timestamp_ms"].max()),
                )
