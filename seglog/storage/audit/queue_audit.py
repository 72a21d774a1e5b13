"""Holds the files of one queue against what the splits saw of it.

The rules are the engine's: :func:`seglog.storage.overlay.queue_overlay.overlay_queue` decides. It wants a
row for every record. The splits compared each record with its unit already and sent runs, so the rows are
rebuilt here: those that agree from the units, the others as one of their kind.

Memory: the units of one queue and a few times as much, about 150 bytes a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.audit.log_lookup import LogLookup
from seglog.storage.audit.report import AuditQueue
from seglog.storage.directory.queue_files import QueueFiles, read_units_left
from seglog.storage.files.files import Files
from seglog.storage.format.names import LMQ_PREFIX
from seglog.storage.format.queue.consume_queue import Units
from seglog.storage.kernels.walk import ROW, Rows
from seglog.storage.overlay.kept_units import LogFacts
from seglog.storage.overlay.queue_overlay import QueueState, overlay_queue
from seglog.storage.segments.scratch import Room
from seglog.storage.splits.stretches import Interval, UnitState
from seglog.storage.walk.behind_damage import Hole

_MAX_SIZE: Final = 0x7FFF_FFFF
_IN_MEMORY_BYTES: Final = 8 << 20
_WITHOUT_UNIT: Final = (UnitState.ABSENT, UnitState.DIFFERS)


@dataclass(frozen=True, slots=True)
class LogExtent:
    """What of the log decides about units.

    Attributes:
        min_phy_offset: Where it starts.
        end_phy_offset: Where it ends.
        holes: Its unreadable stretches.
        is_closed: Whether the last writer closed the store.
        lookup: Finds single records.
    """

    min_phy_offset: int
    end_phy_offset: int
    holes: tuple[Hole, ...]
    is_closed: bool
    lookup: LogLookup


def overlay(
    queue: QueueFiles, intervals: Sequence[Interval], log: LogExtent, files: Files, file_size_bytes: int
) -> QueueState:
    """Returns what a queue must hold, held against its files.

    Args:
        queue: Its files, possibly none.
        intervals: Its records, in log order.
        log: The log.
        files: Where the store is.
        file_size_bytes: Length that a queue file should have.
    """
    room = Room(_IN_MEMORY_BYTES)
    first_slot, stored = read_units_left(files, queue, file_size_bytes, room)
    shared = stored if queue.topic.startswith(LMQ_PREFIX) else stored[:0]
    starts, sizes = _records_of(shared, intervals, first_slot, log.lookup)
    facts = LogFacts(
        max(0, log.min_phy_offset),
        log.end_phy_offset,
        log.holes,
        starts,
        sizes,
        file_size_bytes,
        log.is_closed,
    )
    rows = rows_of(intervals, first_slot, stored, room)
    _read_displaced(rows, intervals, stored, log.lookup)
    has_files = bool(queue.sizes)
    return overlay_queue(
        queue.topic, queue.queue_id, rows, first_slot, stored, facts, has_files=has_files, room=room
    )


def audit_queue(state: QueueState, intervals: Sequence[Interval]) -> AuditQueue:
    """Returns a queue as it is.

    Args:
        state: What it must hold.
        intervals: Its records, in log order.
    """
    steps = [later.first_queue_offset - earlier.end_queue_offset for earlier, later in pairwise(intervals)]
    return AuditQueue(
        state.topic,
        state.queue_id,
        state.min_offset,
        state.max_offset,
        sum(interval.records for interval in intervals),
        sum(interval.size_bytes for interval in intervals),
        min((interval.first_queue_offset for interval in intervals), default=-1),
        max((interval.end_queue_offset for interval in intervals), default=0) - 1,
        sum(step > 0 for step in steps),
        sum(step < 0 for step in steps),
        min((interval.min_store_timestamp_ms for interval in intervals), default=0),
        max((interval.max_store_timestamp_ms for interval in intervals), default=0),
    )


def _records_of(
    units: Units, intervals: Sequence[Interval], first_slot: int, lookup: LogLookup
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Returns where the records that units lead to start, in order, and their sizes.

    Only those that no split found to agree with a record are looked up in the log.
    """
    agrees = np.zeros(len(units), np.bool_)
    for interval in intervals:
        if interval.unit_state is UnitState.AGREES:
            start, end = interval.first_queue_offset - first_slot, interval.end_queue_offset - first_slot
            agrees[max(0, start) : max(0, end)] = True
    starts, sizes = lookup.led_to(units[~agrees])
    starts = np.concatenate([starts, units["phy_offset"][agrees]], dtype=np.int64)
    sizes = np.concatenate([sizes, units["size_bytes"][agrees]], dtype=np.int32)
    order = np.argsort(starts, kind="stable")
    return starts[order], sizes[order]


def rows_of(intervals: Sequence[Interval], first_slot: int, stored: Units, room: Room | None = None) -> Rows:
    """Returns rows that the queue's units agree and disagree with as they do with the records themselves.

    Args:
        intervals: Records of one queue, in log order.
        first_slot: Queue offset of ``stored[0]``.
        stored: The queue's units.
        room: Where the rows go; memory if None.

    Returns:
        ``(n,) ROW``, one for each record, in log order.
    """
    found = (room or Room()).empty(sum(interval.records for interval in intervals), ROW)
    begun = 0
    for interval in intervals:
        rows = found[begun : begun + interval.records]
        begun += interval.records
        rows[:] = np.zeros((), ROW)
        rows["queue_offset"] = np.arange(interval.first_queue_offset, interval.end_queue_offset)
        # Only the first and the last are known; the others lie between them, which is all that rules ask.
        step = (interval.last_phy_offset - interval.first_phy_offset) // max(1, interval.records - 1)
        rows["phy_offset"] = interval.first_phy_offset + step * np.arange(interval.records)
        rows["phy_offset"][-1] = interval.last_phy_offset
        rows["size_bytes"] = 1
        start = max(interval.first_queue_offset, first_slot)
        end = min(interval.end_queue_offset, first_slot + len(stored))
        if start < end and interval.unit_state is not UnitState.ABSENT:
            known = stored[start - first_slot : end - first_slot]
            part = rows[start - interval.first_queue_offset : end - interval.first_queue_offset]
            _like(part, known, interval)
    return found


def _read_displaced(rows: Rows, intervals: Sequence[Interval], stored: Units, lookup: LogLookup) -> None:
    """Reads the records of which the queue has no unit at their own queue offset, but one elsewhere.

    A flipped bit of a queue offset makes a record such a one. Whether that unit is right, the rules ask of
    the record itself.
    """
    if all(interval.unit_state is UnitState.AGREES for interval in intervals):
        return
    ends = np.cumsum([interval.records for interval in intervals])
    is_alone = [one.records == 1 and one.unit_state in _WITHOUT_UNIT for one in intervals]
    numbers = ends[is_alone] - 1
    for number in numbers[np.isin(rows["phy_offset"][numbers], stored["phy_offset"])].tolist():
        found = lookup.row_at(int(rows["phy_offset"][number]))
        if found is not None:
            rows["size_bytes"][number], rows["tags_code"][number] = found.size_bytes, found.tags_code


def _like(rows: Rows, known: Units, interval: Interval) -> None:
    size = known["size_bytes"].astype(np.int32)
    if interval.unit_state is UnitState.DIFFERS:
        rows["phy_offset"] += known["phy_offset"] == rows["phy_offset"]
        return
    rows["phy_offset"] = known["phy_offset"]
    if interval.unit_state is UnitState.SAME_PLACE:
        size = np.where(size < _MAX_SIZE, size + 1, size - 1)
    rows["size_bytes"] = size
    rows["tags_code"] = known["tags_code"]
