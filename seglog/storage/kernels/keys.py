"""The keys under which the key index has the records of a stretch of the log.

Pure: works on a buffer of records that were walked before, so their checksums are not looked at again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from seglog.storage.format.index_build import KEY_ROW, KeyRows
from seglog.storage.format.index_keys import IndexedRecord
from seglog.storage.format.index_rows import key_rows
from seglog.storage.format.record import Damage, examine
from seglog.storage.kernels import KERNELS, NATIVE

NativeKeys: TypeAlias = Callable[[memoryview, int, bool], bytes]

native_keys: NativeKeys | None = None
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_keys = _native.index_keys


def index_keys(buffer: memoryview, phy_offset: int, *, tags: bool) -> KeyRows:
    """Returns the keys of the records from the start of a buffer on.

    Args:
        buffer: A stretch of one segment that starts with a record; the first that is none ends it.
        phy_offset: Physical offset of its first byte.
        tags: Whether the index has entries for tags.

    Returns:
        ``(n,) KEY_ROW``, in log order.
    """
    if native_keys is not None:
        return np.frombuffer(native_keys(buffer, phy_offset, tags), KEY_ROW)
    return key_rows(_records(buffer, phy_offset), tags=tags)


def _records(buffer: memoryview, phy_offset: int) -> list[IndexedRecord]:
    found: list[IndexedRecord] = []
    at = 0
    while True:
        row = examine(buffer, at, phy_offset + at, verify=False)
        if isinstance(row, Damage):
            return found
        start = at + row.properties_at
        properties = bytes(buffer[start : start + row.properties_bytes])
        topic = row.topic.decode("utf-8", "replace")
        found.append(IndexedRecord(phy_offset + at, row.store_timestamp_ms, row.sys_flag, topic, properties))
        at += row.size_bytes
