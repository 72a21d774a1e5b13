"""Impossible queue offsets: records whose queue offset does not fit the records around them.

Without ``__CRC32#`` no checksum covers a record's queue offset, so one flipped bit passes every check of the
record and moves its unit anywhere, even terabytes away. But offsets of a queue ascend in the log, and between
two records of a queue there are at most as many messages as fit into the bytes between them. If a record
breaks this rule while the records before and after it agree with each other, its offset is damaged. The right
offset is that of the queue unit that leads to the record, or else the only free one between its neighbours.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.format.layout import I64
from seglog.storage.format.queue.consume_queue import Units
from seglog.storage.format.record.record import HEAD_V4, MIN_RECORD_BYTES
from seglog.storage.kernels.walk import Rows
from seglog.storage.walk.growable_rows import PART_ROWS

_NO_LIMIT: Final = 1 << 63
_Mask = npt.NDArray[np.bool_]


def corrected_offsets(rows: Rows, first_slot: int, stored: Units) -> tuple[Rows, Rows]:
    """Returns the rows of one queue with possible offsets, and the rows whose own offset is damaged.

    Args:
        rows: ``(n,) ROW``, the records of one queue in log order.
        first_slot: Queue offset of ``stored[0]``.
        stored: Units of the queue's files.

    Returns:
        The rows with corrected offsets, in log order, without rows for which there is none; and the rows with
        damaged offsets, unchanged.
    """
    odd = np.flatnonzero(_odd(rows))
    if not len(odd):
        return rows, rows[:0]
    slots = rows["queue_offset"].copy()
    damaged: list[int] = []
    lost: list[int] = []
    for at in odd.tolist():
        is_last = at + 1 == len(rows)
        low = int(slots[at - 1]) if at else -1
        high = _NO_LIMIT if is_last else int(slots[at + 1])
        place = _stored_slot(rows[at], first_slot, stored)
        if is_last and (place == slots[at] or _follows_the_one_before(slots, at)):
            continue  # its unit, or the row before the last one, knows the offset too: that one's is wrong
        if is_last and place != low + 1 and (slots[at] == 0 or _follows(rows, slots, at)):
            continue  # the queue started over, or continues behind lost messages
        if not is_last and low < slots[at] < high:
            continue  # the neighbour's offset was the damaged one
        if place is None or not low < place < high:
            place = _only_place(low, high, is_first=at == 0)
        if place is None and slots[at] <= low + _room(rows, at):
            continue  # an offset that was assigned twice; overlay_queue decides which record keeps it
        damaged.append(at)
        if place is None:
            lost.append(at)
        else:
            slots[at] = place
    if not damaged:
        return rows, rows[:0]
    mended = rows.copy()
    mended["queue_offset"] = slots
    return np.delete(mended, lost) if lost else mended, rows[damaged]


def with_queue_offset(record: memoryview, queue_offset: int) -> memoryview:
    """Returns a copy of a record with the right queue offset: consumers commit the offset in the record."""
    copy = bytearray(record)
    I64.pack_into(copy, HEAD_V4.offsets["queue_offset"], queue_offset)
    return memoryview(copy).toreadonly()


def _odd(rows: Rows) -> _Mask:
    """Returns which rows may have a damaged offset: their neighbours fit each other, but not the row."""
    odd = np.zeros(len(rows), np.bool_)
    if len(rows) < 2:
        return odd
    follows = _fits(rows[:-1], rows[1:])
    # The last row has no row behind it: it is checked unless it follows the row before without a gap.
    odd[-1] = rows["queue_offset"][-1] != rows["queue_offset"][-2] + 1
    if follows.all():
        return odd
    odd[1:-1] = ~(follows[:-1] & follows[1:]) & _fits(rows[:-2], rows[2:])
    odd[0] = not follows[0] and rows["queue_offset"][1] > 0 and bool(follows[1:2].all())
    return odd


def _fits(before: Rows, after: Rows) -> _Mask:
    """Returns which pairs can follow each other in one queue."""
    fits = np.empty(len(before), np.bool_)
    for at in range(0, len(before), PART_ROWS):
        first, second = before[at : at + PART_ROWS], after[at : at + PART_ROWS]
        step = second["queue_offset"] - first["queue_offset"]
        room = (second["phy_offset"] - first["phy_offset"]) // MIN_RECORD_BYTES
        fits[at : at + PART_ROWS] = (step > 0) & (step <= room)
    return fits


def _follows(rows: Rows, slots: npt.NDArray[np.int64], at: int) -> bool:
    """Returns whether a row can follow the row before it, given the corrected offset of that row."""
    before = rows[at - 1 : at].copy()
    before["queue_offset"] = slots[at - 1]
    return bool(_fits(before, rows[at : at + 1]).all())


def _follows_the_one_before(slots: npt.NDArray[np.int64], at: int) -> bool:
    """Returns whether a row is the next one after the row before the one before it, which that is not."""
    return at >= 2 and bool(slots[at] == slots[at - 2] + 1 != slots[at - 1])


def _room(rows: Rows, at: int) -> int:
    """Returns the number of messages that fit into the log between a row and the row before it."""
    before = int(rows["phy_offset"][at - 1]) if at else 0
    return (int(rows["phy_offset"][at]) - before) // MIN_RECORD_BYTES


def _stored_slot(row: np.void, first_slot: int, stored: Units) -> int | None:
    """Returns the queue offset at which the files hold a record."""
    held = (stored["phy_offset"] == row["phy_offset"]) & (stored["size_bytes"] == row["size_bytes"])
    return first_slot + int(held.argmax()) if held.any() else None


def _only_place(low: int, high: int, *, is_first: bool) -> int | None:
    """Returns the only queue offset between two others; at the ends the one beside the neighbour."""
    if is_first:
        return high - 1 if high > 0 else None
    return low + 1 if high in {low + 2, _NO_LIMIT} else None
