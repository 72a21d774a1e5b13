"""The keys of the records of a stretch of the log for the key index, and writing them into index files.

Pure: works on buffers of records that were walked before, so checksums are not checked again. The native
kernels read keys from the log without creating an object for any record, and release the GIL meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from seglog.storage.format.index import IndexGeometry, index_build
from seglog.storage.format.index.index_build import KEY_ROW, KeyRows
from seglog.storage.format.index.index_keys import IndexedRecord
from seglog.storage.format.index.index_rows import key_rows
from seglog.storage.format.record import HEAD_V4, LOST_FLAG, Damage, examine, is_placeholder
from seglog.storage.format.record import properties as props
from seglog.storage.kernels import KERNELS, NATIVE

ROOM: Final = 1 << 18
"""Keys that are read at a time: more than any record can have (one key for each two bytes of properties)."""

NativeKeyRows: TypeAlias = Callable[[memoryview, int, int, bool, memoryview], tuple[int, int]]
NativePutKeys: TypeAlias = Callable[[memoryview, int, int, memoryview], int]
NativeKeys: TypeAlias = Callable[[memoryview, int, bool], tuple[bytes, list[int], int, int]]

NativeHave: TypeAlias = Callable[[memoryview, int, memoryview, bytes], bytes]
NativeDigest: TypeAlias = Callable[[bytes, bytes, bytes], int]
NativeDigests: TypeAlias = Callable[[memoryview, int, memoryview, int, bytes], bytes]

native_key_rows: NativeKeyRows | None = None
native_put_keys: NativePutKeys | None = None
native_keys: NativeKeys | None = None
native_have: NativeHave | None = None
native_digest: NativeDigest | None = None
native_digests: NativeDigests | None = None
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_key_rows, native_put_keys = _native.key_rows, _native.put_keys
    native_keys = _native.index_keys
    native_have = _native.have_key
    native_digest, native_digests = _native.key_digest, _native.key_digests

_FLAG: Final = HEAD_V4.picking("flag").unpack_from


@dataclass(frozen=True, slots=True, eq=False)
class RecordKeys:
    """The keys of a stretch of the log, and facts about its records.

    Attributes:
        rows: ``(n,) KEY_ROW``, in log order; tombstones have none.
        lost: Physical offsets of the tombstones.
        with_crc: Number of records with a record CRC.
        placeholders: Number of records that replace messages which a compaction dropped.
    """

    rows: KeyRows
    lost: tuple[int, ...] = ()
    with_crc: int = 0
    placeholders: int = 0

    @property
    def hashes(self) -> set[int]:
        """The hashes of all keys."""
        return set(self.rows["key_hash"].tolist())


def index_keys(buffer: memoryview, phy_offset: int, *, tags: bool) -> RecordKeys:
    """Returns the keys of the records from the start of a buffer on.

    Args:
        buffer: A stretch of one segment that starts with a record; ends at the first bytes that are no
            record.
        phy_offset: Physical offset of its first byte.
        tags: Whether the index has entries for tags.
    """
    if native_keys is not None:
        packed, lost, with_crc, placeholders = native_keys(buffer, phy_offset, tags)
        places = tuple(phy_offset + at for at in lost)
        return RecordKeys(np.frombuffer(packed, KEY_ROW), places, with_crc, placeholders)
    records: list[IndexedRecord] = []
    tombstones: list[int] = []
    with_crc = placeholders = at = 0
    while True:
        row = examine(buffer, at, phy_offset + at, verify=False)
        if isinstance(row, Damage):
            return RecordKeys(key_rows(records, tags=tags), tuple(tombstones), with_crc, placeholders)
        start = at + row.properties_at
        properties = bytes(buffer[start : start + row.properties_bytes])
        with_crc += props.ends_with_record_crc(properties)
        flag = _FLAG(buffer, at)[0]
        body = buffer[at + row.body_at :][: row.body_bytes]
        placeholders += is_placeholder(flag, body, properties)
        if flag == LOST_FLAG:
            tombstones.append(phy_offset + at)
        else:
            topic = row.topic.decode("utf-8", "replace")
            records.append(
                IndexedRecord(phy_offset + at, row.store_timestamp_ms, row.sys_flag, topic, properties)
            )
        at += row.size_bytes


class KeyReader:
    """Reads keys from stretches of the log into memory that it reuses.

    Args:
        native: The kernel.
        tags: Whether tags are keys.
    """

    def __init__(self, native: NativeKeyRows, *, tags: bool) -> None:
        self._native = native
        self._tags = tags
        self._rows: KeyRows = np.empty(ROOM, KEY_ROW)

    def read(self, window: memoryview, phy_offset: int, position: int) -> tuple[KeyRows, int]:
        """Returns the keys of the records from a position on, and the end of these records.

        Args:
            window: A stretch of one segment; its checksums must have been checked.
            phy_offset: Physical offset of its first byte.
            position: Position of the first record in it.

        Returns:
            ``(n,) KEY_ROW``, valid until the next call, and the end position: the first bytes that are no
            whole record, or earlier if there are too many keys for one call.
        """
        count, position = self._native(window, phy_offset, position, self._tags, self._rows.data.cast("B"))
        return self._rows[:count], position


def put_keys(buffer: memoryview, geometry: IndexGeometry, rows: KeyRows) -> int:
    """Writes as many keys into a file as fit, and returns their number; as ``index_build.put_keys`` does.

    Raises:
        TruncatedError: The buffer is the map of a file that another process has cut.
    """
    if native_put_keys is None or not len(rows):
        return index_build.put_keys(buffer, geometry, rows)
    return native_put_keys(
        buffer, geometry.slot_count, geometry.entry_count, np.ascontiguousarray(rows).data.cast("B")
    )
