"""Moves records to another place of the log: copies them, or replaces them by placeholders.

A moved record has a new ``phy_offset``, which ``bodyCRC`` does not cover; ``__CRC32#`` does. CRC-32 is
linear: if two records differ in some bits, their checksums differ by the checksum of a record of only
those bits. The new checksum is computed from the old one by this rule, so a record that was damaged
before the move does not verify after it either.

A placeholder is a record that RocketMQ takes for a message of the same queue and offset: it has the head of
the dropped record (times, hosts, flags of the addresses), no body, and as properties only the mark and, if
the record had one, the record CRC.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from seglog.errors import CorruptError
from seglog.storage.format.layout import I16, I64
from seglog.storage.format.record import (
    BORN_HOST_V6,
    CRC_MASK,
    HEADS,
    HOST_BITS,
    MIN_RECORD_BYTES,
    PHY_OFFSET_AT,
    STORE_HOST_V6,
    TRANSACTION_MASK,
    Damage,
    encode_record,
    ends_with_record_crc,
    examine,
)
from seglog.storage.format.record import properties as props
from seglog.storage.format.record.record import topic_field
from seglog.storage.kernels import KERNELS, NATIVE
from seglog.storage.kernels.gather import Ints, Mask
from seglog.storage.kernels.record_facts import PlaceholderMark

NativeMoves: TypeAlias = Callable[
    [memoryview, int, memoryview, memoryview, memoryview, int, bytes, memoryview, int], int
]

native_moves: NativeMoves | None = None
crc32: Callable[[memoryview, int], int] = zlib.crc32
"""Continues the CRC-32 of the bytes before."""
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_moves, crc32 = _native.move_records, _native.crc32

_KEPT_BITS: Final = BORN_HOST_V6 | STORE_HOST_V6 | TRANSACTION_MASK
_PLACE_END: Final = PHY_OFFSET_AT + I64.size


def move_records(
    source: memoryview,
    source_phy_offset: int,
    starts: Ints,
    sizes: Ints,
    are_replaced: Mask,
    mark: PlaceholderMark,
    phy_offset: int,
    target: npt.NDArray[np.uint8] | None = None,
) -> npt.NDArray[np.uint8]:
    """Returns records one behind the other, with the fields for their new place in the log.

    Args:
        source: A stretch of one segment, or any records whose physical offsets count from its start.
        source_phy_offset: Physical offset of its first byte.
        starts: ``(n,)``, starts of the records in it.
        sizes: ``(n,)``, their lengths; for a replaced record the length of its placeholder.
        are_replaced: ``(n,)``, which of them are replaced by placeholders.
        mark: The marks of placeholders.
        phy_offset: New physical offset of the first record.
        target: Memory for them, of their total length; new memory if None.

    Raises:
        CorruptError: The source does not hold such a record any more.
        TruncatedError: The source is a map, and a byte of it cannot be read any more.
    """
    if target is None:
        target = np.empty(int(sizes.sum()), np.uint8)
    if not len(sizes):
        return target
    if native_moves is not None:
        done = native_moves(
            source,
            source_phy_offset,
            _numbers(starts),
            _numbers(sizes),
            np.ascontiguousarray(are_replaced).data.cast("B"),
            *mark,
            target.data,
            phy_offset,
        )
    else:
        done = _move(target.data, source, source_phy_offset, starts, sizes, are_replaced, mark, phy_offset)
    if done < len(sizes):
        place = source_phy_offset + int(starts[done])
        raise CorruptError("record-changed", position_bytes=place, found="no record of this size any more")
    return target


def _move(
    target: memoryview,
    source: memoryview,
    source_phy_offset: int,
    starts: Ints,
    sizes: Ints,
    are_replaced: Mask,
    mark: PlaceholderMark,
    phy_offset: int,
) -> int:
    end = 0
    rows = zip(starts.tolist(), sizes.tolist(), are_replaced.tolist(), strict=True)
    for number, (start, size, is_replaced) in enumerate(rows):
        if is_replaced:
            made = _placeholder(source, source_phy_offset, start, size, mark, phy_offset + end)
        else:
            made = _moved(source, start, size, phy_offset + end)
        if made is None:
            return number
        target[end : end + size] = made
        end += size
    return len(starts)


def _moved(source: memoryview, start: int, size: int, phy_offset: int) -> bytes | None:
    if size < MIN_RECORD_BYTES or start + size > len(source):
        return None
    record = bytearray(source[start : start + size])
    (before,) = I64.unpack_from(record, PHY_OFFSET_AT)
    I64.pack_into(record, PHY_OFFSET_AT, phy_offset)
    if size >= _PLACE_END + props.CRC_PROPERTY_BYTES and ends_with_record_crc(record):
        at = size - props.CRC_PROPERTY_BYTES
        digits = record[at + len(props.CRC_NAME) :][: props.CRC_DIGITS]
        # No check that the digits are digits: a wrong CRC stays wrong.
        said = sum((digit - ord("0")) % 256 * 10**place for place, digit in enumerate(digits))
        change = I64.pack(before ^ phy_offset) + bytes(at - _PLACE_END)
        change_crc = zlib.crc32(change) ^ zlib.crc32(bytes(len(change)))
        record[at:] = props.crc_property((said ^ change_crc) & CRC_MASK)
    return bytes(record)


def _placeholder(
    source: memoryview, source_phy_offset: int, start: int, size: int, mark: PlaceholderMark, phy_offset: int
) -> bytes | None:
    row = examine(source, start, source_phy_offset + start, verify=False)
    if isinstance(row, Damage):
        return None
    layout = HEADS[row.sys_flag & HOST_BITS]
    magic, field = topic_field(row.topic)
    has_crc = ends_with_record_crc(bytes(source[start : start + row.size_bytes]))
    fixed = layout.size_bytes + len(field) + I16.size
    crc_bytes = props.CRC_PROPERTY_BYTES if has_crc else 0
    if size - fixed - crc_bytes not in (0, len(mark.properties)):
        return None
    marked = mark.properties if size > fixed + crc_bytes else b""
    head = layout.decode(source, start) | {
        "magic": magic,
        "flag": mark.flag,
        "phy_offset": phy_offset,
        "sys_flag": row.sys_flag & _KEPT_BITS,
    }
    return encode_record(layout, head, field, b"", marked, record_crc=has_crc)


def _numbers(values: Ints) -> memoryview:
    return np.ascontiguousarray(values, np.int64).data.cast("B")
