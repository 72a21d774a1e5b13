"""Rows of the log by queue: grouped with sums, converted to units of consume queues, compared with units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from seglog.storage.format.queue.consume_queue import CQ_UNIT, PRE_BLANK_BYTES, Units
from seglog.storage.format.record import INNER_BATCH, MIN_RECORD_BYTES
from seglog.storage.kernels import KERNELS, NATIVE
from seglog.storage.kernels.walk import ROW, Rows, are_dispatched

_PART: Final = 1 << 19
"""Rows that are compared at a time, to bound memory."""
_FIELDS: Final = ("phy_offset", "size_bytes", "tags_code")

NativeGroup: TypeAlias = Callable[[memoryview, int, memoryview], list[tuple[int, int, int, int, int]] | None]

native_group: NativeGroup | None = None
native_stand_in: Callable[[memoryview, memoryview], bool] | None = None
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_group = _native.group_rows
    native_stand_in = _native.rows_stand_in


def units_of(rows: Rows) -> Units:
    """Returns the unit of each row; ``(n,) CQ_UNIT.dtype``."""
    units = np.empty(len(rows), CQ_UNIT.dtype)
    for name in _FIELDS:
        units[name] = rows[name]
    return units


def stand_in(rows: Rows, units: Units) -> bool:
    """Returns whether rows of one queue have no gaps, ascend in the log, and have exactly these units.

    A row whose size is not that of a record has no unit: a unit of size 0 is a free slot, a unit of size
    :data:`~seglog.storage.format.queue.consume_queue.PRE_BLANK_BYTES` leads to no message.

    Args:
        rows: ``(n,) ROW``.
        units: ``(m,) CQ_UNIT.dtype``.
    """
    if len(rows) != len(units):
        return False
    if native_stand_in is not None:
        return native_stand_in(_as_bytes(rows), _as_bytes(units))
    return all(
        _stand_in(rows[max(0, at - 1) : at + _PART], units[max(0, at - 1) : at + _PART])
        for at in range(0, len(rows), _PART)
    )


def _stand_in(rows: Rows, units: Units) -> bool:
    sizes = rows["size_bytes"]
    if (sizes < MIN_RECORD_BYTES).any() or (sizes == PRE_BLANK_BYTES).any():
        return False
    steps, rooms = np.diff(rows["queue_offset"]), np.diff(rows["phy_offset"])
    follow = bool((steps == 1).all() and (rooms >= MIN_RECORD_BYTES).all())
    return follow and _as_bytes(units_of(rows)) == _as_bytes(units)


def _as_bytes(items: Rows | Units) -> memoryview:
    return np.ascontiguousarray(items).data.cast("B") if len(items) else memoryview(b"")


class Group(NamedTuple):
    """The rows of one queue.

    Attributes:
        queue: Its number.
        rows: ``(n,) ROW``, in log order.
        size_bytes: Total size of the records.
        least_ms: Their least store time.
        greatest_ms: Their greatest store time.
    """

    queue: int
    rows: Rows
    size_bytes: int
    least_ms: int
    greatest_ms: int


def group(rows: Rows, queue_count: int) -> list[Group] | None:
    """Returns the rows with an offset in a plain queue, grouped by queue and ordered by the queues' numbers.

    None if some rows are of inner batches, which have batch queues.

    Args:
        rows: ``(n,) ROW``, in log order.
        queue_count: Number of queues.
    """
    if native_group is None:
        return _group(rows)
    grouped = np.empty(len(rows), ROW)
    if not len(rows):
        return []
    found = native_group(rows.data.cast("B"), queue_count, grouped.data.cast("B"))
    if found is None:
        return None
    groups: list[Group] = []
    end = 0
    for queue, count, *sums in found:
        groups.append(Group(queue, grouped[end : end + count], *sums))
        end += count
    return groups


def _group(rows: Rows) -> list[Group] | None:
    if (rows["sys_flag"] & INNER_BATCH).any():
        return None
    rows = rows[are_dispatched(rows)]
    rows = rows[np.argsort(rows["queue"], kind="stable")]
    starts = np.flatnonzero(np.diff(rows["queue"], prepend=-1))
    return [
        Group(
            int(part["queue"][0]),
            part,
            int(part["size_bytes"].sum(dtype=np.int64)),
            int(part["store_timestamp_ms"].min()),
            int(part["store_timestamp_ms"].max()),
        )
        for part in np.split(rows, starts[1:])
        if len(part)
    ]
