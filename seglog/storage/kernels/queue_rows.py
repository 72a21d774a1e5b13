"""Units of consume queues from rows of the log, and held against them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from seglog.storage.format.queue.consume_queue import CQ_UNIT, PRE_BLANK_BYTES, Units
from seglog.storage.format.record.record import MIN_RECORD_BYTES
from seglog.storage.kernels import KERNELS, NATIVE
from seglog.storage.kernels.walk import Rows

_PART: Final = 1 << 19
"""Rows compared at a time, which bounds the memory for it."""
_FIELDS: Final = ("phy_offset", "size_bytes", "tags_code")

native_stand_in: Callable[[memoryview, memoryview], bool] | None = None
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_stand_in = _native.rows_stand_in


def units_of(rows: Rows) -> Units:
    """Returns the unit of each row; ``(n,) CQ_UNIT.dtype``."""
    units = np.empty(len(rows), CQ_UNIT.dtype)
    for name in _FIELDS:
        units[name] = rows[name]
    return units


def stand_in(rows: Rows, units: Units) -> bool:
    """Returns whether rows of one queue follow each other, in it and in the log, and their units are these.

    A row without the size of a record has no unit: one of size 0 is a free slot, one of
    :data:`~seglog.storage.format.queue.consume_queue.PRE_BLANK_BYTES` stands for no message.

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
