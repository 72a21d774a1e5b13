"""One flipped bit, found by the checksum that it broke.

The CRC of bytes with one bit flipped differs from that of the bytes by a value that depends on nothing but
how far the bit is from their end. Within :data:`MAX_BYTES` the values of all bits are different, so one
difference names one bit. Noise is taken for a flipped bit once in ``2**31 / bits`` times: 4096 for the
longest bodies that are looked at; callers want everything else of a record to be right as well.

Source: ``CommitLog.java checkMessageAndReturnSize`` and ``UtilAll.java crc32`` leave out the top bit.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.format.layout import Buffer
from seglog.storage.format.record import properties as props
from seglog.storage.format.record.record import (
    CRC_MASK,
    HEAD_V4,
    HEADS,
    HOST_BITS,
    MAX_NAME_FLIPS,
    MIN_RECORD_BYTES,
    Damage,
    RecordRow,
    examine,
)

MAX_BYTES: Final = 64 << 10
"""Longer bytes are not looked at: chance would find a bit in noise too often."""
_MARGIN_BYTES: Final = 64 << 10
"""A record has more than its body: its head, topic and properties."""
_POLYNOMIAL: Final = 0xEDB88320
_CRC_BYTES: Final = props.CRC_PROPERTY_BYTES
_STRUCTURE: Final = ("size_bytes", "magic", "queue_id", "queue_offset", "phy_offset", "sys_flag")
"""Fields in front of the addresses whose damage shows without a checksum."""

Bit = tuple[int, int]
"""A byte's position and the value of the bit in it."""


def find_flipped_bits(data: Buffer, crc: int) -> list[Bit]:
    """Returns which single bits of the data explain that it has not this CRC; none or one.

    Args:
        data: Up to :data:`MAX_BYTES` and what else a record has.
        crc: The CRC that it should have, without its top bit.
    """
    difference = (zlib.crc32(data) & CRC_MASK) ^ crc
    if not difference or len(data) > MAX_BYTES + _MARGIN_BYTES:
        return []
    found = np.flatnonzero(_effects()[: 8 * len(data)] == difference)
    return [(len(data) - 1 - at // 8, 1 << (7 - at % 8)) for at in found.tolist()]


def mend_record(record: bytes, phy_offset: int) -> Bit | None:
    """Returns the one bit that a damaged record needs flipped to be whole by its checksums.

    Args:
        record: The record, of the length that its head says or a queue unit knows.
        phy_offset: Where it is.

    Returns:
        None if no bit or more than one explains the damage, or no checksum covers it.
    """
    found = set(_by_record_crc(record)) if has_crc_property(record) else set(_by_body_crc(record, phy_offset))
    mended = [bit for bit in found if is_whole(flipped(record, bit), phy_offset)]
    return mended[0] if len(mended) == 1 else None


def structure_bits(record: bytes, phy_offset: int) -> list[Bit]:
    """Returns the bits of lengths, magic, place and signs of which flipping one makes a record whole.

    No checksum proves these without ``__CRC32#``, and other lengths may add up as well: a caller
    that flips one needs a second witness, such as the size that a queue unit has.

    Args:
        record: Bytes that start with the record and may continue after it.
        phy_offset: Where it is.
    """
    if len(record) < MIN_RECORD_BYTES:
        return []
    bits = ((position, 1 << bit) for position in _structure_positions(record) for bit in range(8))
    return [bit for bit in bits if is_whole(flipped(record, bit), phy_offset)]


def flipped(record: bytes, bit: Bit) -> bytes:
    """Returns the bytes with one bit flipped."""
    position, value = bit
    return record[:position] + bytes((record[position] ^ value,)) + record[position + 1 :]


def is_whole(record: bytes, phy_offset: int) -> bool:
    """Returns whether a record proves itself."""
    return isinstance(examine(memoryview(record), 0, phy_offset), RecordRow)


def _by_record_crc(record: bytes) -> Iterator[Bit]:
    sound, tail = record[:-_CRC_BYTES], record[-_CRC_BYTES:]
    right = props.crc_property(zlib.crc32(sound) & CRC_MASK)
    wrong = [at for at in range(_CRC_BYTES) if tail[at] != right[at]]
    if len(wrong) == 1:
        value = tail[wrong[0]] ^ right[wrong[0]]
        if value.bit_count() == 1:
            yield len(sound) + wrong[0], value
    digits = tail[-props.CRC_DIGITS - 1 : -1]
    if digits.isdigit() and len(record) <= MAX_BYTES + _MARGIN_BYTES:
        yield from find_flipped_bits(sound, int(digits[::-1]))


def _by_body_crc(record: bytes, phy_offset: int) -> Iterator[Bit]:
    row = examine(memoryview(record), 0, phy_offset, verify=False)
    if isinstance(row, Damage) or row.body_bytes > MAX_BYTES:
        return
    (stated,) = HEAD_V4.picking("body_crc").unpack_from(record)
    body = record[row.body_at : row.body_at + row.body_bytes]
    for position, value in find_flipped_bits(body, stated):
        yield row.body_at + position, value
    bit = bit_of_field("body_crc", (zlib.crc32(body) & CRC_MASK) ^ stated)
    if bit is not None:  # it is the checksum itself
        yield bit


def bit_of_field(name: str, difference: int) -> Bit | None:
    """Returns the bit of a field of four bytes that makes a difference, None if it is not one bit."""
    if difference.bit_count() != 1:
        return None
    shift = difference.bit_length() - 1  # of the bytes the first is the highest
    return HEAD_V4.offsets[name] + 3 - shift // 8, 1 << shift % 8


def has_crc_property(record: bytes) -> bool:
    """Returns whether a record ends with a record CRC, or what a few flipped bits left of one."""
    name = record[-_CRC_BYTES : -_CRC_BYTES + len(props.CRC_NAME)]
    return bits_between(name, props.CRC_NAME) <= MAX_NAME_FLIPS


def bits_between(one: bytes, other: bytes) -> int:
    """Returns how many bits differ."""
    return (int.from_bytes(one) ^ int.from_bytes(other)).bit_count()


def _structure_positions(record: bytes) -> Iterator[int]:
    for name in _STRUCTURE:
        start = HEAD_V4.offsets[name]
        yield from range(start, start + HEAD_V4.dtype[name].itemsize)
    if len(record) < max(layout.size_bytes for layout in HEADS.values()) + 3:
        return
    (sys_flag,) = HEAD_V4.picking("sys_flag").unpack_from(record)
    layout = HEADS[sys_flag & HOST_BITS]
    body_bytes_at = layout.offsets["body_bytes"]
    yield from range(body_bytes_at, body_bytes_at + 4)
    body_bytes = layout.picking("body_bytes").unpack_from(record)[0]
    topic_at = layout.size_bytes + body_bytes
    if body_bytes >= 0 and topic_at + 3 <= len(record):
        yield from (topic_at, topic_at + 1)
        for topic_bytes in (1 + record[topic_at], 2 + int.from_bytes(record[topic_at : topic_at + 2])):
            if topic_at + topic_bytes + 2 <= len(record):
                yield from (topic_at + topic_bytes, topic_at + topic_bytes + 1)


@cache
def _effects() -> npt.NDArray[np.uint32]:
    """Returns what flipping a bit does to the CRC, by its distance from the end, without the top bit."""
    effects = np.empty(8 * (MAX_BYTES + _MARGIN_BYTES), np.uint32)
    value = 1
    for at in range(len(effects)):
        value = value >> 1 ^ _POLYNOMIAL if value & 1 else value >> 1
        effects[at] = value & CRC_MASK
    return effects
