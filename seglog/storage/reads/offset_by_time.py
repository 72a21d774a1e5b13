"""Finds the queue offset of a time, by the store times of the queue's records.

Source: ``ConsumeQueue.java getOffsetInQueueByTime``: LOWER is the first message at or after the time (the
end of the queue if there is none), UPPER the last one at or before it (the start of the queue if there is
none). Java returns 0 for an unreadable record; here the next readable record decides.
"""

from __future__ import annotations

from typing import Literal

from seglog.storage.format.record.record import store_time_of
from seglog.storage.reads.open_queues import OpenPlainQueue, StoreLog
from seglog.storage.segments.scattered import ScatteredReads

Boundary = Literal["lower", "upper"]


def offset_by_time(queue: OpenPlainQueue, log: StoreLog, timestamp_ms: int, boundary: Boundary) -> int:
    """Returns the queue offset of a time, between the queue's minimum and maximum."""
    with ScatteredReads() as reads:
        return _search(queue, log, timestamp_ms, boundary, reads)


def _search(
    queue: OpenPlainQueue, log: StoreLog, timestamp_ms: int, boundary: Boundary, reads: ScatteredReads
) -> int:
    low, high = queue.min_offset, queue.max_offset
    first, last = low, high
    # A binary search: store times grow with the queue offset, unless the broker's clock was set back.
    while first < last:
        middle = (first + last) // 2
        at, found_ms = _time_from(queue, log, range(middle, last), reads)
        if found_ms is None:
            last = middle
        elif found_ms < timestamp_ms or (boundary == "upper" and found_ms == timestamp_ms):
            first = at + 1
        else:
            last = middle
    return first if boundary == "lower" else max(low, min(first, high) - 1)


def _time_from(
    queue: OpenPlainQueue, log: StoreLog, offsets: range, reads: ScatteredReads
) -> tuple[int, int | None]:
    """Returns the first readable message in a range and its store time; None if there is none."""
    for at in offsets:
        reads.take_in(queue.file_of(at))
        phy_offset, size_bytes, _tags_code = queue.units(at, 1)[0].item()
        if size_bytes > 0:
            reads.take_in(log.file_of(phy_offset))
            record = log.read(phy_offset, size_bytes)
            if record is not None:
                return at, store_time_of(record)
    return offsets.stop, None
