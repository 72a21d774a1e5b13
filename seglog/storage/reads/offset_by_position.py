"""Finds the first queue offset whose record is at or behind a physical offset, by the queue's units alone.

Retention removes a range of queue offsets: from the minimum to the first message that stays. Only the queue
file in which such a range ends is read; of the other files only the last unit is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seglog.storage.overlay.kept_units import is_message
from seglog.storage.queues.queue_table import QueueKey
from seglog.storage.reads.open_queues import OpenBatchQueue, OpenPlainQueue, OpenQueues


def offsets_from(queues: OpenQueues, phy_offsets: Sequence[int]) -> dict[QueueKey, list[int]]:
    """Returns, by queue, the queue offset of the first message at or behind each physical offset.

    Args:
        queues: The queues, as they are now; the result of a queue without such a message is its maximum.
        phy_offsets: Physical offsets, ascending.
    """
    return {
        (queue.topic, queue.queue_id): _batch_offsets(queue, phy_offsets)
        if isinstance(queue, OpenBatchQueue)
        else _plain_offsets(queue, phy_offsets)
        for queue in queues
    }


def _plain_offsets(queue: OpenPlainQueue, phy_offsets: Sequence[int]) -> list[int]:
    found: list[int] = []
    at, end = queue.min_offset, queue.max_offset
    for wanted in phy_offsets:
        while at < end:
            file_end = min(end, at - at % queue.units_per_file + queue.units_per_file)
            at = _within(queue, at, file_end, wanted)
            if at < file_end:
                break
        found.append(at)
    return found


def _within(queue: OpenPlainQueue, start: int, end: int, phy_offset: int) -> int:
    """Returns the first message at or behind a place in a stretch of one file; the stretch's end if none."""
    last = queue.units(end - 1, 1)
    if is_message(last)[0] and last["phy_offset"][0] < phy_offset:
        return end
    units = queue.units(start, end - start)
    there = is_message(units) & (units["phy_offset"] >= phy_offset)
    return start + int(there.argmax()) if there.any() else end


def _batch_offsets(queue: OpenBatchQueue, phy_offsets: Sequence[int]) -> list[int]:
    units = queue.units(queue.first_index, queue.end_index - queue.first_index)
    indexes = np.searchsorted(units["phy_offset"].astype(np.int64), phy_offsets)
    bases = [int(units[at]["base_queue_offset"]) if at < len(units) else queue.max_offset for at in indexes]
    return [max(queue.min_offset, base) for base in bases]
