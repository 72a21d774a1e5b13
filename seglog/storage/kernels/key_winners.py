"""Finds the last record of each key among all records of the same keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from seglog.storage.kernels import KERNELS, NATIVE

KEYED: Final = np.dtype(
    [
        ("key_high", "i8"),
        ("key_low", "i8"),
        ("queue_offset", "i8"),
        ("queue", "i4"),
        ("part", "i4"),
        ("row", "i4"),
        ("goes_empty", "?"),
    ]
)
"""One record with a key, in native byte order: both halves of the key's hash, and the place of the record.

``queue`` is a number that the caller assigns, ``row`` counts the records of a ``part`` of the log;
``goes_empty`` is true for a record without body that may be dropped even if it is the last of its key.
"""
Keyed = npt.NDArray[np.void]

NativeLast: TypeAlias = Callable[[memoryview, memoryview], None]

native_last: NativeLast | None = None
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_last = _native.last_of_keys


def last_of_keys(rows: Keyed) -> npt.NDArray[np.bool_]:
    """Returns which rows have the largest queue offset of their key and queue; the later row of equal ones.

    Args:
        rows: ``(n,) KEYED``; all rows of a key must be among them.
    """
    is_last = np.zeros(len(rows), np.bool_)
    if native_last is not None and len(rows):
        native_last(np.ascontiguousarray(rows).data.cast("B"), is_last.data.cast("B"))
        return is_last
    order = np.lexsort((rows["queue_offset"], rows["key_low"], rows["key_high"], rows["queue"]))
    same = np.ones(max(0, len(order) - 1), np.bool_)
    for name in ("queue", "key_high", "key_low"):
        ordered = rows[name][order]
        same &= ordered[1:] == ordered[:-1]
    is_last[order[:-1]] = ~same
    is_last[order[-1:]] = True
    return is_last
