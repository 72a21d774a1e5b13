"""Recognizes a queue that is as it should be by what the splits saw of it, without holding its units.

The splits compared every record with its unit. If all agreed and their queue offsets follow each other, only
the units in front of the first and behind the last are left to look at. Almost all queues of almost all
stores end here; the others are held against the log unit by unit (:mod:`seglog.storage.audit.queue_audit`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from typing import Final

import numpy as np

from seglog.storage.audit.queue_audit import LogExtent
from seglog.storage.directory.log_files import has_data
from seglog.storage.directory.queue_files import QueueFiles
from seglog.storage.files.files import Files, OpenFile
from seglog.storage.format.names import LMQ_PREFIX, segment_file_name
from seglog.storage.format.queue.consume_queue import CQ_UNIT, CQ_UNIT_BYTES, PRE_BLANK_BYTES, Units, in_use
from seglog.storage.splits.stretches import Interval, UnitState

NO_UNITS: Final = np.empty(0, CQ_UNIT.dtype)
_CHUNK_UNITS: Final = 50_000


def is_intact(
    queue: QueueFiles, intervals: Sequence[Interval], log: LogExtent, files: Files, file_size_bytes: int
) -> bool:
    """Returns whether there is nothing to say about a queue; False where only a closer look can decide.

    Args:
        queue: Its files, possibly none.
        intervals: Its records, in log order.
        log: The log.
        files: Where the store is.
        file_size_bytes: Length that a queue file should have.
    """
    if not intervals or queue.topic.startswith(LMQ_PREFIX):
        return False
    if any(interval.unit_state is not UnitState.AGREES for interval in intervals):
        return False
    if any(later.first_queue_offset != earlier.end_queue_offset for earlier, later in pairwise(intervals)):
        return False
    starts = sorted(queue.sizes)
    if any(size != file_size_bytes for size in queue.sizes.values()):
        return False
    if not starts or any(later != earlier + file_size_bytes for earlier, later in pairwise(starts)):
        return False
    first, end = (
        slot * CQ_UNIT_BYTES for slot in (intervals[0].first_queue_offset, intervals[-1].end_queue_offset)
    )
    if not starts[0] <= first or end > starts[-1] + file_size_bytes:
        return False
    before = _chunks(queue, files, file_size_bytes, starts[0], first)
    try:
        if not all(_is_expired(units, log.min_phy_offset) for units in before):
            return False
        return not _has_data_behind(queue, files, file_size_bytes, end)
    except FileNotFoundError:  # retention took it while we looked
        return False


def _is_expired(units: Units, min_phy_offset: int) -> bool:
    end = units["phy_offset"] + units["size_bytes"]
    is_message = in_use(units) & (units["size_bytes"] != PRE_BLANK_BYTES)
    is_old = is_message & (end > units["phy_offset"]) & (end <= min_phy_offset)
    return bool((is_old | (units["size_bytes"] == PRE_BLANK_BYTES)).all())


def _chunks(queue: QueueFiles, files: Files, file_size: int, start: int, end: int) -> Iterator[Units]:
    for first in range(start - start % file_size, end, file_size):
        with closing(files.open(queue.directory / segment_file_name(first), writable=False)) as handle:
            yield from _file_chunks(handle, max(start - first, 0), min(end - first, file_size))


def _file_chunks(handle: OpenFile, start: int, end: int) -> Iterator[Units]:
    for at in range(start, end, _CHUNK_UNITS * CQ_UNIT_BYTES):
        buffer = memoryview(bytearray(min(_CHUNK_UNITS * CQ_UNIT_BYTES, end - at)))
        handle.read_into(buffer, at)
        yield np.frombuffer(buffer, CQ_UNIT.dtype)


def _has_data_behind(queue: QueueFiles, files: Files, file_size: int, end: int) -> bool:
    for first in sorted(queue.sizes):
        if first + file_size <= end:
            continue
        with closing(files.open(queue.directory / segment_file_name(first), writable=False)) as handle:
            at = handle.next_data(max(0, end - first))
            while at is not None:
                buffer = memoryview(bytearray(_CHUNK_UNITS * CQ_UNIT_BYTES))
                count = handle.read_into(buffer, at)
                if has_data(buffer[:count]):
                    return True
                at = handle.next_data(at + count) if count else None
    return False
