"""Those records of an audited log that decide whether a flipped bit made a record another queue's.

An audit holds no row of every record. A mend wants few: the records that a queue's units lead to and that
name another queue, those on both sides of them, and where the runs of both queues begin and end. The first
are read from the log by their place, all others are known from intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from seglog.storage.audit.log_lookup import LogLookup
from seglog.storage.audit.plan import AuditPlan
from seglog.storage.certain_mends.heads import are_between, may_know_others
from seglog.storage.directory import QueueFiles, StoreGeometry, read_units
from seglog.storage.files.files import Files
from seglog.storage.format.queue.consume_queue import Units
from seglog.storage.format.record.record import RecordRow
from seglog.storage.kernels.walk import ROW, QueueTable, Rows
from seglog.storage.overlay import BatchQueueState, QueueState
from seglog.storage.overlay.kept_units import is_message
from seglog.storage.scan.queue_overlays import Key, Overlays
from seglog.storage.segments.scratch import Room
from seglog.storage.splits.stretches import Interval, UnitState

_IN_MEMORY_BYTES: Final = 8 << 20
_MOST_READ: Final = 4096
"""Where more units lead elsewhere, each between right ones, it was no flipped bits of records."""
_Row = tuple[int, int, int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class LogExcerpt:
    """A :class:`~seglog.storage.certain_mends.seen_log.SeenLog` of some records."""

    root: Path
    geometry: StoreGeometry
    queue_files: Mapping[Key, QueueFiles]
    queues: Mapping[Key, QueueState]
    batch_files: Mapping[Key, QueueFiles]
    batch_queues: Mapping[Key, BatchQueueState]
    rows: Rows
    numbers: QueueTable
    min_phy_offset: int
    max_phy_offset: int
    walked_from: int = 0


def excerpt(
    plan: AuditPlan,
    overlays: Overlays,
    intervals: Mapping[Key, Sequence[Interval]],
    lookup: LogLookup,
    end_phy_offset: int,
    files: Files,
) -> LogExcerpt:
    """Returns what mends of records that can be read ask of a log.

    Args:
        plan: The plan.
        overlays: What each queue must hold.
        intervals: The records of each plain queue, in log order.
        lookup: Finds single records.
        end_phy_offset: Where the log ends.
        files: Where the store is.
    """
    queues = overlays.plain
    numbers = QueueTable()
    rows: dict[int, _Row] = {}
    concerned: set[Key] = set()
    places = {place for state in queues.values() for place in state.mended}
    for key, queue in plan.queue_files.items():
        if may_know_others(queues.get(key), queue) and intervals.get(key):
            size_bytes = plan.geometry.queue_file_size_bytes
            first, units = read_units(files, queue, size_bytes, Room(_IN_MEMORY_BYTES))
            places |= set(_led_elsewhere(first, units, intervals[key], end_phy_offset))
            concerned.add(key)
    for place in sorted(places):
        if lookup.is_in_log(place) and (row := lookup.row_at(place)) is not None:
            topic = row.topic.decode("utf-8", "surrogateescape")
            rows[place] = _of_record(place, row, numbers)
            concerned |= {key for key in intervals if key[0] == topic}
    if rows:
        for key in sorted(concerned):
            for row_of_end in _of_intervals(key, intervals[key], rows, numbers):
                rows.setdefault(row_of_end[0], row_of_end)
    placed = np.array([rows[place] for place in sorted(rows)], ROW)
    start = plan.log_start(end_phy_offset)
    return LogExcerpt(
        plan.root,
        plan.geometry,
        plan.queue_files,
        queues,
        plan.batch_files,
        overlays.batch,
        placed,
        numbers,
        start,
        end_phy_offset,
    )


def _led_elsewhere(
    first_slot: int, units: Units, intervals: Sequence[Interval], end_phy_offset: int
) -> Iterator[int]:
    """Yields where single units lead that no record of the queue agrees with, and those beside them."""
    is_own = np.zeros(len(units), np.bool_)
    for interval in intervals:
        if interval.unit_state in {UnitState.AGREES, UnitState.SAME_PLACE}:
            start, end = interval.first_queue_offset - first_slot, interval.end_queue_offset - first_slot
            is_own[max(0, start) : max(0, end)] = True
    is_alone = is_message(units) & ~is_own & are_between(is_own, units, end_phy_offset)
    slots = np.flatnonzero(is_alone)
    if len(slots) <= _MOST_READ:
        for slot in slots.tolist():
            yield from units["phy_offset"][max(0, slot - 1) : slot + 2].tolist()


def _of_record(place: int, row: RecordRow, numbers: QueueTable) -> _Row:
    number = numbers.number(row.topic, row.queue_id)
    size, code = row.size_bytes, row.tags_code
    return place, row.queue_offset, code, row.store_timestamp_ms, size, number, row.sys_flag


def _of_intervals(
    key: Key, intervals: Sequence[Interval], known: Mapping[int, _Row], numbers: QueueTable
) -> Iterator[_Row]:
    """Yields the first and the last record of each run, and those beside a known record within one."""
    number = numbers.number(key[0].encode("utf-8", "surrogateescape"), key[1])
    within = {row[1]: place for place, row in known.items() if row[5] == number}
    for interval in intervals:
        first, last = interval.first_queue_offset, interval.end_queue_offset - 1
        yield interval.first_phy_offset, first, 0, interval.min_store_timestamp_ms, 0, number, 0
        yield interval.last_phy_offset, last, 0, interval.max_store_timestamp_ms, 0, number, 0
        for slot, place in within.items():
            if first <= slot <= last and interval.first_phy_offset <= place <= interval.last_phy_offset:
                # Their places are not known, but that they are next to it in the queue.
                if slot > first:
                    yield place - 1, slot - 1, 0, 0, 0, number, 0
                if slot < last:
                    yield place + 1, slot + 1, 0, 0, 0, number, 0
