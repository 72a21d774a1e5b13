"""Columns of the messages of a window in the layout of Arrow, filled in one pass by native kernels.

``seglog/spark/source`` has the code that reads columns record by record, without native kernels and for
records that the kernels leave.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from seglog.storage.kernels import KERNELS, NATIVE
from seglog.storage.kernels.gather import Bytes, Ints
from seglog.storage.kernels.walk import Rows

Ends = npt.NDArray[np.int32]
NativeColumns: TypeAlias = Callable[
    [memoryview, memoryview, int, tuple[memoryview | None, ...]], tuple[int, int]
]

native_columns: NativeColumns | None = None
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_columns = _native.message_columns

NUMBERS: Final = ("flag", "reconsumeTimes", "bodyCrc", "preparedTransactionOffset", "bornTimestamp")
_MIN_ENTRY_BYTES: Final = 4
"""Bytes of the shortest entry: a name, 0x01, a value and 0x02, which the last entry may lack."""
_ID_CHARACTERS: Final = 56
"""An IPv6 address, port and physical offset in hexadecimal."""
_HOST_CHARACTERS: Final = 27
"""An IPv4 address, a colon and a port, which may be negative."""
_ROOM: Final = {
    "body": 0,
    "keys": 0,
    "tags": 0,
    "msgId": _ID_CHARACTERS,
    "offsetMsgId": _ID_CHARACTERS,
    "bornHost": _HOST_CHARACTERS,
    "storeHost": _HOST_CHARACTERS,
}
"""Columns of strings, and the longest string of a record that is not copied from its bytes."""
_NULLABLE: Final = frozenset({"keys", "tags"})
_WRITTEN: Final = frozenset({"offsetMsgId", "bornHost", "storeHost"})
"""Columns whose strings are never copied from the record."""
_PROPERTIES: Final = "properties"
FILLED: Final = frozenset({*NUMBERS, *_ROOM, _PROPERTIES})
"""All columns."""
_LEFT_ALL: Final = 1
_LEFT: Final = {_PROPERTIES: 2, "bornHost": 4, "storeHost": 8}


@dataclass(frozen=True, slots=True)
class Texts:
    """Strings of many records.

    Attributes:
        offsets: ``(n + 1,) i4``, the start of each string, and the end of the last one.
        data: ``(m,) u8``, the strings one behind the other.
        are_there: ``(n,) u1``, 0 for a missing string; None if all exist.
    """

    offsets: Ends
    data: Bytes
    are_there: Bytes | None = None


@dataclass(frozen=True, slots=True)
class PropertyMap:
    """Properties of many records.

    Attributes:
        row_offsets: ``(n + 1,) i4``, the entries of each record.
        names: Names of the entries.
        values: Values of the entries.
    """

    row_offsets: Ends
    names: Texts
    values: Texts


@dataclass(frozen=True, slots=True)
class MessageColumns:
    """Columns of messages; columns that were not filled are missing.

    Attributes:
        numbers: ``(n,) i8`` by name.
        texts: Strings by name.
        properties: All properties; None if they were not filled.
    """

    numbers: dict[str, Ints]
    texts: dict[str, Texts]
    properties: PropertyMap | None = None


_NOTHING: Final = MessageColumns({}, {})


def message_columns(
    window: memoryview, phy_offset: int, rows: Rows, names: Collection[str]
) -> MessageColumns:
    """Returns the columns of messages that native kernels can fill.

    Args:
        window: A stretch of the log.
        phy_offset: Physical offset of its first byte.
        rows: ``(n,) ROW``, whole records of it.
        names: Columns of :data:`FILLED`; other names are ignored.
    """
    if native_columns is None or FILLED.isdisjoint(names) or not len(rows):
        return _NOTHING
    count, total = len(rows), int(rows["size_bytes"].sum())
    if total > np.iinfo(np.int32).max // 2:
        return _NOTHING
    numbers = {name: np.empty(count, np.int64) for name in NUMBERS if name in names}
    texts = {
        name: Texts(
            _offsets(count),
            np.empty(more * count + (0 if name in _WRITTEN else total), np.uint8),
            np.empty(count, np.uint8) if name in _NULLABLE else None,
        )
        for name, more in _ROOM.items()
        if name in names
    }
    found = _property_room(count, total) if _PROPERTIES in names else None
    given = (
        *(numbers[name].data if name in numbers else None for name in NUMBERS),
        *(part for name in _ROOM for part in _memory(texts.get(name))),
        *_map_memory(found),
    )
    left, entries = native_columns(window, np.ascontiguousarray(rows).view(np.uint8).data, phy_offset, given)
    if left & _LEFT_ALL:
        return _NOTHING
    return MessageColumns(
        numbers,
        {name: _cut(one, count) for name, one in texts.items() if not left & _LEFT.get(name, 0)},
        None
        if found is None or left & _LEFT[_PROPERTIES]
        else PropertyMap(found.row_offsets, _cut(found.names, entries), _cut(found.values, entries)),
    )


def _property_room(count: int, total: int) -> PropertyMap:
    most = (total + count) // _MIN_ENTRY_BYTES
    names, values = (Texts(_offsets(most), np.empty(total, np.uint8)) for _part in range(2))
    return PropertyMap(_offsets(count), names, values)


def _offsets(count: int) -> Ends:
    offsets = np.empty(count + 1, np.int32)
    offsets[0] = 0
    return offsets


def _memory(texts: Texts | None) -> tuple[memoryview | None, ...]:
    if texts is None:
        return None, None, None
    there: npt.NDArray[np.uint8] | None = texts.are_there
    return texts.offsets[1:].data, texts.data.data, None if there is None else there.data


def _map_memory(found: PropertyMap | None) -> tuple[memoryview | None, ...]:
    if found is None:
        return None, None, None, None, None
    return found.row_offsets[1:].data, *_memory(found.names)[:2], *_memory(found.values)[:2]


def _cut(texts: Texts, count: int) -> Texts:
    offsets = texts.offsets[: count + 1]
    return Texts(offsets, texts.data[: int(offsets[-1])], texts.are_there)
