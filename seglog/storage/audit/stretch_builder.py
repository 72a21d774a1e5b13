"""Folds the rows of a walk into a stretch: what is known of each queue grows by runs, not by records."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from seglog.storage.audit.batch_runs import BatchRuns, BatchUnitFinder
from seglog.storage.audit.splits import Split
from seglog.storage.audit.stretches import Head, Interval, QueueEnd, Stopped, Stretch, UnitState
from seglog.storage.audit.unit_files import UnitFiles
from seglog.storage.batch_overlay import units_of_rows
from seglog.storage.dispatch import dispatch, topics_with_inner_batches
from seglog.storage.format.record import Damage
from seglog.storage.format.sys_flag import takes_queue_offset
from seglog.storage.inner_records import InnerRecords
from seglog.storage.kernels.walk import QueueTable, Rows, places


class StretchBuilder:
    """A stretch in the making.

    Args:
        split: The split that owns it.
        start: Physical offset where it starts.
        queues: The queues that rows belong to.
        batch_topics: Topics with batch queues.
        units: The store's queue files.
        batch_units: Its batch-queue files.
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
        self._records = 0
        self._size_bytes = 0
        self._head: Head | None = None
        self._last_store_timestamp_ms = 0
        self._max_store_timestamp_ms = 0
        self._intervals: dict[tuple[str, int], list[Interval]] = {}
        self._next_queue_offset: dict[int, int] = {}
        self._inner_topics: set[str] = set()

    def add(self, rows: Rows, inner: InnerRecords) -> None:
        """Adds records: those that follow the ones before.

        Args:
            rows: ``(n,) ROW``.
            inner: What their properties say about queues.
        """
        if not len(rows):
            return
        if self._head is None:
            self._head = self._read_head(rows)
        times = rows["store_timestamp_ms"]
        self._records += len(rows)
        self._size_bytes += int(rows["size_bytes"].sum(dtype=np.int64))
        self._last_store_timestamp_ms = int(times[-1])
        self._max_store_timestamp_ms = max(self._max_store_timestamp_ms, int(times.max()))
        self._inner_topics |= topics_with_inner_batches(rows, self._queues)
        own = rows[places(rows)][::-1]
        numbers, last = np.unique(own["queue"], return_index=True)
        ends = own["queue_offset"][last] + 1
        self._next_queue_offset.update(zip(numbers.tolist(), ends.tolist(), strict=True))
        placed = dispatch(rows, inner.take_further(), self._queues, self._batch_topics)
        for (topic, queue_id), of_queue in placed.plain.items():
            known = self._intervals.setdefault((topic, queue_id), [])
            for interval in self._runs(topic, queue_id, of_queue):
                if known and known[-1].is_continued_by(interval):
                    known[-1] = known[-1].joined(interval)
                else:
                    known.append(interval)
        for (topic, queue_id), of_queue in placed.batch.items():
            self._batch_runs.add(topic, queue_id, units_of_rows(of_queue, inner.ranges))

    def build(self, end: int, stopped: Stopped, damage: Damage | None = None) -> Stretch:
        """Returns the stretch that ends here."""
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
