"""Which record stands in which queue: plain queues, batch queues, and the further queues of LMQ.

Source: ``ConsumeQueueStore.java putMessagePositionInfoWrapper``, ``DispatchRequest``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from seglog.storage.format.sys_flag import INNER_BATCH, TRANSACTION_MASK, takes_queue_offset
from seglog.storage.kernels.walk import QueueTable, Rows, places

_FEW: Final = 1 << 16

RowsByQueue = dict[tuple[str, int], Rows]


class Dispatched(NamedTuple):
    """Rows by topic and queue number, each in log order, for the two kinds of queues."""

    plain: RowsByQueue
    batch: RowsByQueue


def rows_by_queue(rows: Rows, queues: QueueTable) -> RowsByQueue:
    """Returns the rows that have a place in a plain queue, by topic and queue number, each in log order."""
    are_placed = places(rows)
    return _by_queue(rows if are_placed.all() else rows[are_placed], queues)


def dispatch(rows: Rows, further: Rows, queues: QueueTable, batch_topics: Collection[str]) -> Dispatched:
    """Returns the rows of every queue.

    Args:
        rows: Records of the log.
        further: Rows for the further queues of the same records.
        queues: Numbers queues.
        batch_topics: Topics with batch queues.
    """
    is_batch = np.array([topic in batch_topics for topic, _queue_id in queues.names], np.bool_)
    if not is_batch.any():
        return Dispatched(rows_by_queue(_joined(rows, further), queues), {})
    in_batch = is_batch[rows["queue"]]
    plain = _joined(rows[~in_batch], further[~is_batch[further["queue"]]])
    return Dispatched(
        rows_by_queue(plain, queues), _by_queue(rows[in_batch & _queued(rows["sys_flag"])], queues)
    )


def topics_with_inner_batches(rows: Rows, queues: QueueTable) -> set[str]:
    """Returns the topics that have inner batches: RocketMQ takes those for batch queues only."""
    numbers = np.unique(rows["queue"][rows["sys_flag"] & INNER_BATCH != 0])
    return {queues.names[number][0] for number in numbers.tolist()}


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


def _by_queue(rows: Rows, queues: QueueTable) -> RowsByQueue:
    if not len(rows):
        return {}
    numbers = rows["queue"]
    if (numbers == numbers[0]).all():
        return {queues.names[int(numbers[0])]: rows}
    # Of two bytes or fewer numpy sorts by digits, in a tenth of the time.
    few = numbers.astype(np.uint16) if len(queues.names) <= _FEW else numbers
    rows = rows[np.argsort(few, kind="stable")]
    numbers = rows["queue"]
    starts = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]])
    groups = np.split(rows, starts[1:])
    return {queues.names[number]: rows for number, rows in zip(numbers[starts].tolist(), groups, strict=True)}
