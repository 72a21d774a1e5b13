"""Finds the place of a moment in a queue, by the store times of its records.

Source: ``ConsumeQueue.java getOffsetInQueueByTime``: LOWER is the first message at or after the moment (the
end of the queue if there is none), UPPER the last one at or before it (the start of the queue if there is
none). Where Java answers 0 on an unreadable record, the nearest readable one after it decides.
"""

from __future__ import annotations

from typing import Literal

from seglog.storage.format.record.record import store_time_of
from seglog.storage.reads.get import Log, Queue

Boundary = Literal["lower", "upper"]


def offset_by_time(queue: Queue, log: Log, timestamp_ms: int, boundary: Boundary) -> int:
    """Returns the queue offset that belongs to a moment, within the queue's minimum and maximum."""
    low, high = queue.min_offset, queue.max_offset
    first, last = low, high
    # Store times grow with the queue offset as far as the broker's clock did.
    while first < last:
        middle = (first + last) // 2
        at, found_ms = _time_from(queue, log, middle, last)
        if found_ms is None:
            last = middle
        elif found_ms < timestamp_ms or (boundary == "upper" and found_ms == timestamp_ms):
            first = at + 1
        else:
            last = middle
    return first if boundary == "lower" else max(low, min(first, high) - 1)


def _time_from(queue: Queue, log: Log, queue_offset: int, end: int) -> tuple[int, int | None]:
    """Returns the first readable message in a range and its store time; None if there is none."""
    for at in range(queue_offset, end):
        unit = queue.units(at, 1)[0]
        record = (
            log.read(int(unit["phy_offset"]), int(unit["size_bytes"])) if unit["size_bytes"] > 0 else None
        )
        if record is not None:
            return at, store_time_of(record)
    return end, None
