"""The rules of reading a batch queue: as :mod:`seglog.storage.reads.get`, in steps of whole records.

A read that begins inside a batch starts with the record that holds the offset; the client drops the messages
that it already has. Counts are of messages: a record counts as all of its messages.

Source: ``DefaultMessageStore.java getMessage``, ``BatchConsumeQueue.java getBatchMsgIndexBuffer,
getOffsetInQueueByTime``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT_BYTES
from seglog.storage.format.ranges import ranges_of
from seglog.storage.format.record.tombstone import LOST_TAGS_CODE
from seglog.storage.reads.get import MAX_FILTER_BYTES, GetResult, RecordSource, leads_to_tombstone
from seglog.storage.reads.message_filter import MessageFilter
from seglog.storage.reads.offset_by_time import Boundary

if TYPE_CHECKING:
    from seglog.storage.reads.open_queues import BatchUnitSource


def read_batch_queue(
    queue: BatchUnitSource,
    log: RecordSource,
    queue_offset: int,
    max_count: int,
    wanted: MessageFilter | None,
    max_bytes: int,
) -> GetResult:
    """Reads records of one batch queue, as :func:`seglog.storage.reads.get.read_queue`."""
    low, high = queue.min_offset, queue.max_offset
    if high == 0:
        return GetResult(GetStatus.NO_MESSAGE_IN_QUEUE, 0, low, high)
    if queue_offset < low:
        return GetResult(GetStatus.OFFSET_TOO_SMALL, low, low, high)
    if queue_offset == high:
        return GetResult(GetStatus.OFFSET_OVERFLOW_ONE, high, low, high)
    if queue_offset > high:
        return GetResult(GetStatus.OFFSET_OVERFLOW_BADLY, high, low, high)
    return collect(queue, log, queue_offset, max_count, wanted, max_bytes, (low, high))


def collect(
    queue: BatchUnitSource,
    log: RecordSource,
    queue_offset: int,
    max_count: int,
    wanted: MessageFilter | None,
    max_bytes: int,
    ends: tuple[int, int],
    *,
    is_sparse: bool = False,
) -> GetResult:
    """Reads records, beginning with the unit that holds ``queue_offset`` or, in a gap, with the next unit.

    Args:
        queue: The units of the queue.
        log: The log of its records.
        queue_offset: First queue offset to read.
        max_count: Messages at most.
        wanted: The filter; None for all messages.
        max_bytes: Stored bytes at most.
        ends: The queue's minimum and maximum.
        is_sparse: Whether queue offsets have gaps, which are then not reported as lost.
    """
    index = find_index(queue, queue_offset)
    scan_bytes = max(MAX_FILTER_BYTES, max_count * BATCH_UNIT_BYTES)
    units = queue.units(index, min(queue.file_end(index) - index, scan_bytes // BATCH_UNIT_BYTES + 1))
    passed = np.ones(len(units), np.bool_)
    if wanted is not None:
        passed = wanted.matches_codes(units["tags_code"].astype(np.int64))
    records: list[memoryview] = []
    next_offset = queue_offset
    lost: list[tuple[int, int]] = []
    held_bytes = held_count = 0
    for unit, passes in zip(units.tolist(), passed.tolist(), strict=True):
        phy_offset, size, tags_code, _store_time, base, count, *_ = unit
        if not is_sparse and (base - queue_offset) * BATCH_UNIT_BYTES >= scan_bytes:
            break
        if records and (held_count + count > max_count or held_bytes + size > max_bytes):
            break
        if not is_sparse and base > next_offset:
            lost.append((next_offset, base - next_offset))
        next_offset = base + count
        if not passes and tags_code != LOST_TAGS_CODE:
            continue
        record = log.read(phy_offset, size) if phy_offset >= 0 and size > 0 else None
        if record is None or leads_to_tombstone(record, tags_code):
            lost.append((base, count))
        elif passes and (wanted is None or wanted.matches(record)):
            records.append(record)
            held_bytes += size
            held_count += count
    status = GetStatus.NO_MATCHED_MESSAGE
    if records:
        status = GetStatus.FOUND
    elif lost:
        status = GetStatus.MESSAGE_WAS_REMOVING
    return GetResult(status, next_offset, *ends, records, ranges_of(lost))


def find_index(queue: BatchUnitSource, queue_offset: int) -> int:
    """Returns the number of the unit that holds ``queue_offset`` or, in a gap, of the next one."""
    return _first_where(
        queue,
        queue.first_index,
        lambda unit: int(unit["base_queue_offset"]) + int(unit["batch_size"]) > queue_offset,
    )


def _first_where(queue: BatchUnitSource, start: int, holds: Callable[[np.void], bool]) -> int:
    """Returns the number of the first unit from ``start`` on that passes a test, as all later units do."""
    numbers = range(start, queue.end_index)
    return start + bisect_left(numbers, True, key=lambda number: holds(queue.units(number, 1)[0]))


def batch_offset_by_time(queue: BatchUnitSource, timestamp_ms: int, boundary: Boundary) -> int:
    """Returns the queue offset of the first record at or after a time; ``upper``: the last one up to it."""
    lowest = find_index(queue, queue.min_offset)
    least_ms = timestamp_ms + (boundary == "upper")
    first = _first_where(queue, lowest, lambda unit: int(unit["store_timestamp_ms"]) >= least_ms)
    if boundary == "upper":
        first = max(lowest, first - 1)
    if first >= queue.end_index:
        return queue.max_offset
    return int(queue.units(first, 1)[0]["base_queue_offset"])
