"""Reads fields and byte strings of many records at once, without a step of Python for each record.

It uses an array that overlaps itself: item ``i`` of :func:`overlapping` begins at byte ``i``, so picking
items picks unaligned bytes, at 20 to 30 ns each. The caller guarantees that each record, with the size in its
queue unit, is within the buffer. All lengths in the record itself are checked before they are used for
another read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from seglog.storage.format.layout import I16_ITEMS, Layout
from seglog.storage.format.record.record import HEAD_V4, HEADS, HOST_BITS, MAGIC_V1, MAGIC_V2
from seglog.storage.kernels import KERNELS, NATIVE

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
NativeCopy: TypeAlias = Callable[[memoryview, memoryview, memoryview, memoryview], None]
NativeParts: TypeAlias = Callable[[list[memoryview], memoryview, memoryview, memoryview], list[memoryview]]

native_copy: NativeCopy | None = None
native_parts: NativeParts | None = None
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_copy, native_parts = _native.copy_strings, _native.parts_of

_CHUNK: Final = 16384
"""Records at a time: their heads stay in the cache while their columns are read."""
_COPY_BYTES: Final = 64 << 10
"""Bytes copied at a time: they stay in the cache between the two passes."""
_PARTS: Final = 1024
"""Parts that are created at a time: the kernels keep this many objects for reuse."""
_TAIL_BYTES: Final = 3
"""The fewest bytes behind the head: the length fields of topic and properties."""
_HEAD_BYTES: Final = np.zeros(HOST_BITS + 1, np.int64)
for _bits, _layout in HEADS.items():
    _HEAD_BYTES[_bits] = _layout.size_bytes


def overlapping(buffer: Bytes, dtype: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    """Returns an array whose item ``i`` begins at byte ``i``; shares memory with ``buffer``."""
    return np.ndarray((max(0, len(buffer) - dtype.itemsize + 1),), dtype, buffer, 0, (1,))


def read_heads(
    buffer: Bytes, positions: Ints, phy_offsets: Ints, sizes: Ints, names: Sequence[str]
) -> tuple[Mask, dict[str, Ints]]:
    """Reads fields of the heads of many records.

    Args:
        buffer: ``(m,) u8``, a stretch of the log.
        positions: ``(n,)``, positions of the records in it.
        phy_offsets: ``(n,)``, their physical offsets.
        sizes: ``(n,)``, their sizes, at least :data:`MIN_RECORD_BYTES`; no record ends behind the buffer.
        names: Fields of the head.

    Returns:
        ``(n,)``, which of them are records by magic, size and physical offset, and ``(n,)`` values by name,
        which are valid for these records only.
    """
    valid = np.zeros(len(positions), np.bool_)
    found = {name: np.empty(len(positions), np.int64) for name in names}
    for start in range(0, len(positions), _CHUNK):
        part = slice(start, start + _CHUNK)
        at, own_sizes = positions[part], sizes[part]
        head = _take_heads(buffer, at, HEAD_V4)
        magic = head["magic"]
        ok = (head["phy_offset"] == phy_offsets[part]) & (head["size_bytes"] == own_sizes)
        ok &= (magic == MAGIC_V1) | (magic == MAGIC_V2)
        bits = head["sys_flag"] & HOST_BITS
        for name in names:
            found[name][part] = head[name]
        for host_bits in np.unique(bits[bits != 0]).tolist():
            _read_wide(buffer, at, own_sizes, ok, bits == host_bits, HEADS[host_bits], found, start)
        valid[part] = ok
    return valid, found


def _take_heads(buffer: Bytes, at: Ints, layout: Layout) -> npt.NDArray[np.void]:
    # As plain bytes, three times quicker than field by field.
    raw = overlapping(buffer, np.dtype(f"V{layout.size_bytes}"))[at]
    return raw.view(layout.dtype)


def _read_wide(
    buffer: Bytes,
    at: Ints,
    sizes: Ints,
    ok: Mask,
    is_wide: Mask,
    layout: Layout,
    found: Mapping[str, Ints],
    start: int,
) -> None:
    """Reads heads with an IPv6 address again, because their fields are at other positions."""
    ok &= ~is_wide | (sizes >= layout.size_bytes + _TAIL_BYTES)
    chosen = np.flatnonzero(ok & is_wide)
    head = _take_heads(buffer, at[chosen], layout)
    for name, values in found.items():
        values[start + chosen] = head[name]


def body_ranges(positions: Ints, sizes: Ints, heads: Mapping[str, Ints]) -> tuple[Mask, Ints, Ints]:
    """Returns the positions of bodies.

    Args:
        positions: ``(n,)``, positions of the records.
        sizes: ``(n,)``, their sizes.
        heads: ``sys_flag`` and ``body_bytes`` of each.

    Returns:
        ``(n,)`` each: whether the body is within its record, its start, and its length.
    """
    starts = positions + _HEAD_BYTES[heads["sys_flag"] & HOST_BITS]
    lengths = heads["body_bytes"]
    room = positions + sizes - _TAIL_BYTES - starts
    return (lengths >= 0) & (lengths <= room), starts, lengths


def properties_ranges(
    buffer: Bytes, positions: Ints, sizes: Ints, heads: Mapping[str, Ints]
) -> tuple[Mask, Ints, Ints]:
    """Returns the positions of properties.

    Args:
        buffer: The stretch of the log.
        positions: ``(n,)``, positions of the records.
        sizes: ``(n,)``, their sizes.
        heads: ``magic``, ``sys_flag`` and ``body_bytes`` of each.

    Returns:
        As :func:`body_ranges`; true only if all lengths add up to the size of the record.
    """
    ok, body_starts, body_lengths = body_ranges(positions, sizes, heads)
    record_ends = positions + sizes
    is_v2 = heads["magic"] == MAGIC_V2
    topic_at = np.where(ok, body_starts + body_lengths, positions)
    topic_bytes = np.where(is_v2, _take(buffer, I16_ITEMS, topic_at), buffer[topic_at].astype(np.int64))
    length_at = topic_at + 1 + is_v2 + topic_bytes
    ok &= (topic_bytes >= 0) & (length_at + 2 <= record_ends)
    lengths = np.maximum(0, _take(buffer, I16_ITEMS, np.where(ok, length_at, positions)))
    starts = length_at + 2
    ok &= starts + lengths == record_ends
    return ok, starts, lengths


def _take(buffer: Bytes, item: npt.DTypeLike, at: Ints) -> Ints:
    return overlapping(buffer, np.dtype(item))[at].astype(np.int64)


def copy_ranges(source: Bytes, starts: Ints, sizes: Ints, target: Bytes, target_starts: Ints) -> None:
    """Copies many byte strings of any sizes from one buffer to another.

    A string of at least ``2**k`` and fewer than ``2**(k+1)`` bytes is its first and its last ``2**k``
    bytes, so one pass for each ``k`` moves them all.
    """
    exponents = np.frexp(sizes.astype(np.float64))[1] - 1
    for exponent in np.unique(exponents[sizes > 0]).tolist():
        width = 1 << exponent
        item = np.dtype(f"V{width}")
        taken, placed = overlapping(source, item), overlapping(target, item)
        chosen = np.flatnonzero(exponents == exponent)
        step = max(1, _COPY_BYTES >> exponent)
        for at in range(0, len(chosen), step):
            part = chosen[at : at + step]
            here, there, rest = starts[part], target_starts[part], sizes[part] - width
            placed[there] = taken[here]
            placed[there + rest] = taken[here + rest]


def copied(buffer: Bytes, starts: Ints, sizes: Ints) -> Bytes:
    """Returns strings of a buffer one behind the other.

    Args:
        buffer: ``(m,) u8``.
        starts: ``(n,)``, their starts in it.
        sizes: ``(n,)``, their lengths.
    """
    ends = np.cumsum(sizes)
    target = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    if native_copy is None or not len(buffer):
        copy_ranges(buffer, starts, sizes, target, ends - sizes)
    else:
        native_copy(buffer.data, _numbers(starts), _numbers(sizes), target.data)
    return target


def iter_parts(
    buffers: Sequence[Bytes], numbers: npt.NDArray[np.int32], starts: Ints, sizes: Ints
) -> Iterator[memoryview]:
    """Returns parts of buffers one after the other, without copying.

    Args:
        buffers: ``(m,) u8`` each.
        numbers: ``(n,)``, the number of each part's buffer.
        starts: ``(n,)``, their starts in the buffers.
        sizes: ``(n,)``, their lengths.
    """
    views = [buffer.data for buffer in buffers]
    if native_parts is None:
        return _cut(views, numbers, starts, sizes)
    return chain.from_iterable(_cut_natively(native_parts, views, numbers, starts, sizes))


def _cut(
    views: Sequence[memoryview], numbers: npt.NDArray[np.int32], starts: Ints, sizes: Ints
) -> Iterator[memoryview]:
    for number, start, size in zip(numbers.tolist(), starts.tolist(), sizes.tolist(), strict=True):
        yield views[number][start : start + size]


def _cut_natively(
    parts_of: NativeParts, views: list[memoryview], numbers: npt.NDArray[np.int32], starts: Ints, sizes: Ints
) -> Iterator[list[memoryview]]:
    """Yields the parts some at a time, so that few are alive at once."""
    for at in range(0, len(numbers), _PARTS):
        here = slice(at, at + _PARTS)
        yield parts_of(views, numbers[here].data, starts[here].data, sizes[here].data)


def _numbers(values: Ints) -> memoryview:
    return np.ascontiguousarray(values, np.int64).data
