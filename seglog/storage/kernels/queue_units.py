"""Queue units of a rewritten log, which are kept in temporary files until its queues are written.

Pure: works on rows of walked records, and on the memory of the records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from seglog.storage.format.layout import I32_ITEMS
from seglog.storage.format.record import FLAG_AT, PLACEHOLDER_FLAG
from seglog.storage.kernels import KERNELS, NATIVE
from seglog.storage.kernels.gather import Bytes, overlapping
from seglog.storage.kernels.walk import Rows, places

SPILLED: Final = np.dtype(
    [
        ("queue_offset", "i8"),
        ("phy_offset", "i8"),
        ("tags_code", "i8"),
        ("size_bytes", "i4"),
        ("queue", "i4"),
        ("is_kept", "?"),
    ]
)
"""One unit of a queue; ``queue`` numbers the queues of one segment, ``is_kept`` is false for placeholders."""
Spilled = npt.NDArray[np.void]
_FIELDS: Final = ("queue_offset", "phy_offset", "tags_code", "size_bytes", "queue")

NativeUnits: TypeAlias = Callable[[memoryview, memoryview, int, bytes, int, memoryview], int]
NativeByQueue: TypeAlias = Callable[[memoryview, int, memoryview], list[int]]

native_units: NativeUnits | None = None
native_by_queue: NativeByQueue | None = None
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_units, native_by_queue = _native.spilled_units, _native.units_by_queue


def spilled_units(rows: Rows, records: Bytes, phy_offset: int, are_plain: Sequence[bool]) -> Spilled:
    """Returns the units of records that have an offset of their own in a plain queue.

    Args:
        rows: ``(n,) ROW``, records within ``records``.
        records: Their bytes.
        phy_offset: Physical offset of the first byte.
        are_plain: Which queues are plain, by the rows' ``queue``.

    Returns:
        ``(m,) SPILLED``, in the order of the rows.
    """
    if not len(rows):
        return np.empty(0, SPILLED)
    if native_units is not None:
        units = np.empty(len(rows), SPILLED)
        packed = np.ascontiguousarray(rows).data.cast("B")
        data, flag = records.data.cast("B"), PLACEHOLDER_FLAG
        return units[: native_units(packed, data, phy_offset, bytes(are_plain), flag, units.data.cast("B"))]
    mine = rows[places(rows) & np.array(are_plain, np.bool_)[rows["queue"]]]
    units = np.empty(len(mine), SPILLED)
    for name in _FIELDS:
        units[name] = mine[name]
    flags = overlapping(records, I32_ITEMS)[mine["phy_offset"] - phy_offset + FLAG_AT]
    units["is_kept"] = flags != PLACEHOLDER_FLAG
    return units


def units_by_queue(units: Spilled, queue_count: int) -> tuple[Spilled, list[int]]:
    """Returns units in the order of their queues, the start of each queue's units, and the end of the last.

    Args:
        units: ``(n,) SPILLED``; the units of one queue stay in their order.
        queue_count: Number of queues.
    """
    if native_by_queue is not None and len(units):
        ordered = np.empty(len(units), SPILLED)
        packed = np.ascontiguousarray(units).data.cast("B")
        return ordered, native_by_queue(packed, queue_count, ordered.data.cast("B"))
    order = np.argsort(units["queue"], kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(units["queue"], minlength=queue_count))])
    return units.take(order), starts.astype(np.int64).tolist()
