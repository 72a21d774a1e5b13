"""The queues of each record: plain queues, batch queues, and the further queues of LMQ.

Source: ``ConsumeQueueStore.java putMessagePositionInfoWrapper``, ``DispatchRequest``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from seglog.storage.format.record.sys_flag import INNER_BATCH, TRANSACTION_MASK, takes_queue_offset
from seglog.storage.kernels.walk import QueueTable, Rows, places
from seglog.storage.segments.scratch import Room
from seglog.storage.walk.growable_rows import PART_ROWS, chosen, parts

_FEW: Final = 1 << 16

RowsByQueue = dict[tuple[str, int], Rows]


class Dispatched(NamedTuple):
    """Rows by topic and queue number, each in log order, for the two kinds of queues."""

    plain: RowsByQueue
    batch: RowsByQueue


def rows_by_queue(rows: Rows, queues: QueueTable, room: Room | None = None) -> RowsByQueue:
    """Returns the rows with an offset in a plain queue, by topic and queue number, each in log order.

    Args:
        rows: Records of the log.
        queues: Numbers queues.
        room: Allocates copies; None for memory.
    """
    return _by_queue(chosen(rows, places, room), queues, room)


def dispatch(
    rows: Rows,
    further: Rows,
    queues: QueueTable,
    batch_topics: Collection[str],
    room: Room | None = None,
) -> Dispatched:
    """Returns the rows of every queue.

    Args:
        rows: Records of the log.
        further: Rows for the further queues of the same records.
        queues: Numbers queues.
        batch_topics: Topics with batch queues.
        room: Allocates copies; None for memory.
    """
    is_batch = np.array([topic in batch_topics for topic, _queue_id in queues.names], np.bool_)
    if not is_batch.any():
        return Dispatched(rows_by_queue(_joined(rows, further), queues, room), {})
    in_batch = is_batch[rows["queue"]]
    plain = _joined(rows[~in_batch], further[~is_batch[further["queue"]]])
    return Dispatched(
        rows_by_queue(plain, queues), _by_queue(rows[in_batch & _queued(rows["sys_flag"])], queues)
    )


def topics_with_inner_batches(rows: Rows, queues: QueueTable) -> set[str]:
    """Returns the topics that have inner batches: RocketMQ accepts those only in batch queues."""
    found: set[int] = set()
    for part in parts(rows):
        counts = np.bincount(part["queue"][part["sys_flag"] & INNER_BATCH != 0])
        found.update(np.flatnonzero(counts).tolist())
    return {queues.names[number][0] for number in found}


def _queued(flags: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    transactions = flags & TRANSACTION_MASK
    queued: npt.NDArray[np.bool_] = np.isin(
        transactions, [state for state in range(TRANSACTION_MASK + 1) if takes_queue_offset(state)]
    )
    return queued


def _joined(rows: Rows, further: Rows) -> Rows:
    """Returns both in log order."""
    if not len(further):
        return rows
    joined = np.concatenate([rows, further])
    return joined[np.argsort(joined["phy_offset"], kind="stable")]


def _by_queue(rows: Rows, queues: QueueTable, room: Room | None = None) -> RowsByQueue:
    if not len(rows):
        return {}
    numbers = rows["queue"]
    if all((part["queue"] == numbers[0]).all() for part in parts(rows)):
        return {queues.names[int(numbers[0])]: rows}
    if len(rows) > PART_ROWS and room is not None:
        return _by_queue_in_parts(rows, queues, room)
    rows = _sorted(rows, queues)
    numbers = rows["queue"]
    starts = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]])
    groups = np.split(rows, starts[1:])
    return {queues.names[number]: rows for number, rows in zip(numbers[starts].tolist(), groups, strict=True)}


def _sorted(rows: Rows, queues: QueueTable) -> Rows:
    # Numbers of at most two bytes are sorted by radix sort, in a tenth of the time.
    numbers = rows["queue"]
    few = numbers.astype(np.uint16) if len(queues.names) <= _FEW else numbers
    return rows[np.argsort(few, kind="stable")]


def _by_queue_in_parts(rows: Rows, queues: QueueTable, room: Room) -> RowsByQueue:
    """Groups rows as :func:`_by_queue`, with memory for one part at a time."""
    counts = np.zeros(len(queues.names), np.int64)
    for part in parts(rows):
        counts += np.bincount(part["queue"], minlength=len(counts))
    ends = np.cumsum(counts)
    placed = room.empty(len(rows), rows.dtype)
    following = (ends - counts).tolist()
    for part in parts(rows):
        ordered = _sorted(part, queues)
        numbers = ordered["queue"]
        starts = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]]).tolist()
        for start, end in zip(starts, [*starts[1:], len(ordered)], strict=True):
            number = int(numbers[start])
            placed[following[number] : following[number] + end - start] = ordered[start:end]
            following[number] += end - start
    return {
        queues.names[number]: placed[ends[number] - counts[number] : ends[number]]
        for number in np.flatnonzero(counts).tolist()
    }
