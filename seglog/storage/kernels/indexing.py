"""Keys of records, and index files that are made from them.

The Python kernels are those of ``format``: ``index_rows`` over the records of ``log_records``, and
``index_build``. The native ones read keys out of the log itself, without an object for any record, and let
other threads run meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from seglog.storage.format.index import index_build
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.index.index_build import KEY_ROW, KeyRows
from seglog.storage.kernels import KERNELS, NATIVE

ROOM: Final = 1 << 18
"""Keys that are read at a time: more than the properties of any record hold (one for each two bytes)."""

NativeKeyRows: TypeAlias = Callable[[memoryview, int, int, bool, memoryview], tuple[int, int]]
NativePutKeys: TypeAlias = Callable[[memoryview, int, int, memoryview], int]

native_key_rows: NativeKeyRows | None = None
native_put_keys: NativePutKeys | None = None
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_key_rows, native_put_keys = _native.key_rows, _native.put_keys


class KeyReader:
    """Reads keys out of stretches of the log, into memory that it keeps.

    Args:
        native: The kernel.
        tags: Whether tags are keys.
    """

    def __init__(self, native: NativeKeyRows, *, tags: bool) -> None:
        self._native = native
        self._tags = tags
        self._rows: KeyRows = np.empty(ROOM, KEY_ROW)

    def read(self, window: memoryview, phy_offset: int, position: int) -> tuple[KeyRows, int]:
        """Returns the keys of the records from a place on, and where they end: where no record is whole.

        Args:
            window: A stretch of one segment, sound: checksums are not looked at.
            phy_offset: Physical offset of its first byte.
            position: Where in it to begin.

        Returns:
            ``(n,) KEY_ROW``, valid until the next call, and the place; it comes before the end of the records
            where there are too many keys for one call.
        """
        count, position = self._native(window, phy_offset, position, self._tags, self._rows.data.cast("B"))
        return self._rows[:count], position


def put_keys(buffer: memoryview, geometry: IndexGeometry, rows: KeyRows) -> int:
    """Puts keys into a file, as many as fit, and returns how many; as ``index_build.put_keys`` does.

    Raises:
        TruncatedError: The buffer is the map of a file that another process has cut.
    """
    if native_put_keys is None or not len(rows):
        return index_build.put_keys(buffer, geometry, rows)
    return native_put_keys(
        buffer, geometry.slot_count, geometry.entry_count, np.ascontiguousarray(rows).data.cast("B")
    )
