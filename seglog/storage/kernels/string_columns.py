"""Strings of many records: copied behind each other, and properties taken apart.

The native kernels, where they run, take a step of C for each string. The Python kernels take steps of numpy
for all of them; what takes properties apart in that way is with who makes columns of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from seglog.storage.kernels import KERNELS, NATIVE
from seglog.storage.kernels.gather import Bytes, Ints, copy_ranges

MIN_ENTRY_BYTES: Final = 4
"""A name, 0x01, a value and 0x02, which the last entry may lack."""

Ends = npt.NDArray[np.int32]
NativeCopy: TypeAlias = Callable[[memoryview, memoryview, memoryview, memoryview], None]
NativeMap: TypeAlias = Callable[
    [memoryview, memoryview, memoryview, memoryview, memoryview, memoryview, memoryview, memoryview], int
]
NativeValues: TypeAlias = Callable[[memoryview, memoryview, memoryview, bytes, memoryview, memoryview], None]

native_copy: NativeCopy | None = None
native_map: NativeMap | None = None
native_values: NativeValues | None = None
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_copy, native_map = _native.copy_strings, _native.property_map
    native_values = _native.property_values


@dataclass(frozen=True, slots=True)
class PropertyMap:
    """Properties of many records, in the layout of Arrow's maps.

    Attributes:
        row_offsets: ``(n + 1,) i4``, the entries of each record.
        name_offsets: ``(m + 1,) i4``, where the name of each entry is in ``names``.
        names: ``(k,) u8``.
        value_offsets: ``(m + 1,) i4``, where the value of each entry is in ``values``.
        values: ``(l,) u8``.
    """

    row_offsets: Ends
    name_offsets: Ends
    names: Bytes
    value_offsets: Ends
    values: Bytes


def copied(buffer: Bytes, starts: Ints, sizes: Ints) -> Bytes:
    """Returns strings of a buffer one behind the other.

    Args:
        buffer: ``(m,) u8``.
        starts: ``(n,)``, where in it they start.
        sizes: ``(n,)``, their lengths.
    """
    ends = np.cumsum(sizes)
    target = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    if native_copy is None or not len(buffer):
        copy_ranges(buffer, starts, sizes, target, ends - sizes)
    else:
        native_copy(buffer.data, _numbers(starts), _numbers(sizes), target.data)
    return target


def property_map(buffer: Bytes, starts: Ints, sizes: Ints) -> PropertyMap | None:
    """Returns properties of many records as a map; None where numpy has to take them apart.

    Args:
        buffer: ``(m,) u8``.
        starts: ``(n,)``, where in it the properties of each record start.
        sizes: ``(n,)``, their lengths, less than 2 GiB together.
    """
    if native_map is None or not len(buffer):
        return None
    total = int(sizes.sum())
    room = (total + len(sizes)) // MIN_ENTRY_BYTES + 1
    row_offsets, name_offsets, value_offsets = (
        np.empty(size + 1, np.int32) for size in (len(sizes), room, room)
    )
    row_offsets[0] = name_offsets[0] = value_offsets[0] = 0
    names, values = np.empty(total, np.uint8), np.empty(total, np.uint8)
    count = native_map(
        buffer.data,
        _numbers(starts),
        _numbers(sizes),
        row_offsets[1:].data,
        name_offsets[1:].data,
        names.data,
        value_offsets[1:].data,
        values.data,
    )
    if count < 0:
        return None
    return PropertyMap(
        row_offsets,
        name_offsets[: count + 1],
        names[: int(name_offsets[count])],
        value_offsets[: count + 1],
        values[: int(value_offsets[count])],
    )


def property_values(buffer: Bytes, starts: Ints, sizes: Ints, name: str) -> tuple[Ints, Ints] | None:
    """Returns where the value of one property of each record starts, and its length, 0 without one.

    Args:
        buffer: As of :func:`property_map`.
        starts: Likewise.
        sizes: Likewise.
        name: The property.

    Returns:
        ``(n,)`` each; None where numpy has to take them apart.
    """
    if native_values is None or not len(buffer):
        return None
    value_starts, value_sizes = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
    native_values(
        buffer.data,
        _numbers(starts),
        _numbers(sizes),
        name.encode() + b"\x01",
        value_starts.data,
        value_sizes.data,
    )
    return value_starts, value_sizes


def _numbers(values: Ints) -> memoryview:
    return np.ascontiguousarray(values, np.int64).data
