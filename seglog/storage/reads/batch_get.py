"""The rules of reading a batch queue: as :mod:`seglog.storage.reads.get`, in steps of whole records.

A read that begins inside a batch starts with the record that holds the offset; the client leaves out what
it has had. Counts are of messages, and a record counts for all of its messages.

Source: ``DefaultMessageStore.java getMessage``, ``BatchConsumeQueue.java getBatchMsgIndexBuffer,
getOffsetInQueueByTime``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT_BYTES, BatchUnits
from seglog.storage.format.ranges import ranges_of
from seglog.storage.format.record.tombstone import LOST_TAGS_CODE
from seglog.storage.reads.get import MAX_FILTER_BYTES, GetResult, RecordSource, leads_to_tombstone
from seglog.storage.reads.message_filter import MessageFilter
from seglog.storage.reads.offset_by_time import Boundary


class BatchUnitSource(Protocol):
    """What a read needs of a queue with 46-byte units."""

    @property
    def min_offset(self) -> int:
        """Queue offset of the first message."""

    @property
    def max_offset(self) -> int:
        """Queue offset of the next message."""

    @property
    def first_index(self) -> int:
        """Number of the first unit."""

    @property
    def end_index(self) -> int:
        """Number of the next unit."""

    def file_end(self, index: int) -> int:
        """Returns the number of the first unit behind the file of a unit."""

    def units(self, index: int, count: int) -> BatchUnits:
        """Returns up to ``count`` units from number ``index`` on."""


@dataclass(slots=True)
class Collected:
    """What a walk over units came to.

    Attributes:
        next_offset: Queue offset behind the last unit that was examined.
        lost: First queue offset and number of messages of what was stepped over because it is lost, in order.
    """

    records: list[memoryview]
    next_offset: int
    lost: list[tuple[int, int]]


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
    found = collect(queue, log, queue_offset, max_count, wanted, max_bytes)
    status = GetStatus.NO_MATCHED_MESSAGE
    if found.records:
        status = GetStatus.FOUND
    elif found.lost:
        status = GetStatus.MESSAGE_WAS_REMOVING
    return GetResult(status, found.next_offset, low, high, found.records, ranges_of(found.lost))


def collect(
    queue: BatchUnitSource,
    log: RecordSource,
    queue_offset: int,
    max_count: int,
    wanted: MessageFilter | None,
    max_bytes: int,
    *,
    is_sparse: bool = False,
) -> Collected:
    """Returns the records from the unit on that holds ``queue_offset`` or, in a gap, the next one.

    Args:
        queue: See :func:`read_batch_queue`, and so for the others.
        log: Where the records are.
        queue_offset: Where to start.
        max_count: Messages at most.
        wanted: Which messages.
        max_bytes: Stored bytes at most.
        is_sparse: Whether queue offsets have gaps, which then count for nothing.
    """
    index = find_index(queue, queue_offset)
    scan_bytes = max(MAX_FILTER_BYTES, max_count * BATCH_UNIT_BYTES)
    units = queue.units(index, min(queue.file_end(index) - index, scan_bytes // BATCH_UNIT_BYTES + 1))
    passed = np.ones(len(units), np.bool_)
    if wanted is not None:
        passed = wanted.matches_codes(units["tags_code"].astype(np.int64))
    found = Collected([], queue_offset, [])
    held_bytes = held_count = 0
    for unit, passes in zip(units.tolist(), passed.tolist(), strict=True):
        phy_offset, size, tags_code, _store_time, base, count, *_ = unit
        if not is_sparse and (base - queue_offset) * BATCH_UNIT_BYTES >= scan_bytes:
            break
        if found.records and (held_count + count > max_count or held_bytes + size > max_bytes):
            break
        if not is_sparse and base > found.next_offset:
            found.lost.append((found.next_offset, base - found.next_offset))
        found.next_offset = base + count
        if not passes and tags_code != LOST_TAGS_CODE:
            continue
        record = log.read(phy_offset, size) if phy_offset >= 0 and size > 0 else None
        if record is None or leads_to_tombstone(record, tags_code):
            found.lost.append((base, count))
        elif passes and (wanted is None or wanted.matches(record)):
            found.records.append(record)
            held_bytes += size
            held_count += count
    return found


def find_index(queue: BatchUnitSource, queue_offset: int) -> int:
    """Returns the number of the unit that holds ``queue_offset`` or, in a gap, of the next one."""
    first, end = queue.first_index, queue.end_index
    while first < end:
        middle = (first + end) // 2
        unit = queue.units(middle, 1)[0]
        if int(unit["base_queue_offset"]) + int(unit["batch_size"]) <= queue_offset:
            first = middle + 1
        else:
            end = middle
    return first


def batch_offset_by_time(queue: BatchUnitSource, timestamp_ms: int, boundary: Boundary) -> int:
    """Returns the queue offset of the first record at or after a moment; ``upper``: the last up to it."""
    lowest = find_index(queue, queue.min_offset)
    first, end = lowest, queue.end_index
    while first < end:
        middle = (first + end) // 2
        time_ms = int(queue.units(middle, 1)[0]["store_timestamp_ms"])
        if time_ms < timestamp_ms or (boundary == "upper" and time_ms == timestamp_ms):
            first = middle + 1
        else:
            end = middle
    if boundary == "upper":
        first = max(lowest, first - 1)
    if first >= queue.end_index:
        return queue.max_offset
    return int(queue.units(first, 1)[0]["base_queue_offset"])
