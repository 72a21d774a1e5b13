"""The facts that a compaction needs about the records of a stretch of the log, 52 bytes for each record.

Pure: works on a buffer of records that were walked before, so checksums are not checked again. The native
kernel reads the records without creating an object for any, and releases the GIL meanwhile.

A key is the whole value of KEYS, spaces included, as in RocketMQ's own compaction, hashed to 128 bits: two
sums of mixed words, salted by a random number of each run. Two keys collide only by chance, about once in
10^18 pairs in a store with 10^10 keys.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from seglog.errors import CorruptError
from seglog.storage.format.record import (
    HEAD_V4,
    HEADS,
    HOST_BITS,
    INNER_BATCH,
    Damage,
    RecordRow,
    examine,
    takes_queue_offset,
)
from seglog.storage.format.record import properties as props
from seglog.storage.format.record.record import topic_field
from seglog.storage.kernels import KERNELS, NATIVE
from seglog.storage.kernels.walk import Rows

FACT: Final = np.dtype(
    [
        ("phy_offset", "i8"),
        ("queue_offset", "i8"),
        ("store_timestamp_ms", "i8"),
        ("key_high", "i8"),
        ("key_low", "i8"),
        ("size_bytes", "i4"),
        ("queue", "i4"),
        ("placeholder_bytes", "u2"),
        ("bits", "u2"),
    ]
)
"""One record, in native byte order; ``bits`` are of :class:`Bit`; the key's hash is 0 if there is no key."""
Facts = npt.NDArray[np.void]


class Bit(enum.IntFlag):
    """Facts about a record."""

    HAS_KEY = 1
    """It has KEYS that are not blank, and the keys of its queue are requested."""
    IS_EMPTY = 2
    """It has no body."""
    IS_PLACEHOLDER = 4
    """It replaces a message that was dropped."""
    IS_FILLER = 8
    """It fills bytes of unknown records."""
    IS_ERASED = 16
    """It has a key that must be erased; the kernel never sets it."""
    HAS_CRC = 32
    """It ends with a record CRC."""
    TAKES_SLOT = 64
    """It has a queue offset."""
    IS_SINGLE = 128
    """It is in one queue only, and is no batch: it may be dropped without effect on others."""


ASKS_KEYS: Final = 1
"""Of a queue: its keys are hashed."""
ASKS_FILLER: Final = 2
"""Of a queue: its topic is that of fillers."""


class PlaceholderMark(NamedTuple):
    """The marks of a placeholder.

    Attributes:
        flag: The value of its field ``flag``.
        properties: Its only properties; it has none if these do not fit.
    """

    flag: int
    properties: bytes


NativeFacts: TypeAlias = Callable[[memoryview, int, memoryview, bytes, int, int, bytes, memoryview], int]

native_facts: NativeFacts | None = None
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_facts = _native.record_facts

_WORD_BYTES: Final = 8
_BLANKS: Final = b" \t\n\r\x0b\x0c"
_STEP: Final = 0x9E37_79B9_7F4A_7C15
_U64: Final = 0xFFFF_FFFF_FFFF_FFFF
_SIGN: Final = 1 << 63
_FLAG: Final = HEAD_V4.picking("flag").unpack_from


def record_facts(
    buffer: memoryview, phy_offset: int, rows: Rows, asks: bytes, salt: int, mark: PlaceholderMark
) -> Facts:
    """Returns the facts of records.

    Args:
        buffer: A stretch of one segment.
        phy_offset: Physical offset of its first byte.
        rows: ``(n,) ROW``, records within it.
        asks: ``ASKS_...`` of each queue, by the rows' ``queue``.
        salt: Salt of the hashes of keys.
        mark: The marks of placeholders.

    Raises:
        CorruptError: The buffer does not hold such a record any more.
        TruncatedError: The buffer is a map, and a byte of it cannot be read any more.
    """
    facts = np.empty(len(rows), FACT)
    if not len(rows):
        return facts
    if native_facts is not None:
        packed = np.ascontiguousarray(rows).data.cast("B")
        done = native_facts(buffer, phy_offset, packed, asks, salt, *mark, facts.data.cast("B"))
    else:
        done = _fill(facts, buffer, phy_offset, rows, asks, salt, mark)
    if done < len(rows):
        place = int(rows["phy_offset"][done])
        raise CorruptError("record-changed", position_bytes=place, found="no record of this size any more")
    return facts


def placeholder_bytes(
    topic: bytes, sys_flag: int, size_bytes: int, mark_bytes: int, *, record_crc: bool
) -> int:
    """Returns the length of the placeholder for a record.

    Args:
        topic: Its topic.
        sys_flag: Its flags.
        size_bytes: Its length; the placeholder has no mark if the mark would make it longer than the record.
        mark_bytes: Length of the mark.
        record_crc: Whether it ends with a record CRC.
    """
    _magic, field = topic_field(topic)
    least = HEADS[sys_flag & HOST_BITS].size_bytes + len(field) + 2
    least += props.CRC_PROPERTY_BYTES if record_crc else 0
    return least + mark_bytes if least + mark_bytes <= size_bytes else least


def key_hash(key: bytes, salt: int) -> tuple[int, int]:
    """Returns both halves of the hash of a key, signed."""
    return _salted(key, salt), _salted(key, salt ^ _STEP)


def _fill(
    facts: Facts,
    buffer: memoryview,
    phy_offset: int,
    rows: Rows,
    asks: Sequence[int],
    salt: int,
    mark: PlaceholderMark,
) -> int:
    for number, row in enumerate(rows):
        at = int(row["phy_offset"]) - phy_offset
        record = examine(buffer, at, phy_offset + at, verify=False)
        if isinstance(record, Damage) or record.size_bytes != int(row["size_bytes"]):
            return number
        facts[number] = _fact(buffer, at, phy_offset, record, int(row["queue"]), asks, salt, mark)
    return len(rows)


def _fact(
    buffer: memoryview,
    at: int,
    phy_offset: int,
    record: RecordRow,
    queue: int,
    asks: Sequence[int],
    salt: int,
    mark: PlaceholderMark,
) -> tuple[int, ...]:
    start = at + record.properties_at
    properties = bytes(buffer[start : start + record.properties_bytes])
    asked = asks[queue] if queue < len(asks) else 0
    has_crc = props.ends_with_record_crc(properties)
    takes_slot = takes_queue_offset(record.sys_flag)
    is_single = takes_slot and not record.sys_flag & INNER_BATCH and not record.says_more
    own = properties[: -props.CRC_PROPERTY_BYTES] if has_crc else properties
    is_marked = _FLAG(buffer, at)[0] == mark.flag and own in (b"", mark.properties)
    bits = Bit.IS_EMPTY if not record.body_bytes else Bit(0)
    bits |= Bit.TAKES_SLOT if takes_slot else Bit(0)
    bits |= Bit.IS_SINGLE if is_single else Bit(0)
    bits |= Bit.HAS_CRC if has_crc else Bit(0)
    bits |= Bit.IS_PLACEHOLDER if takes_slot and not record.body_bytes and is_marked else Bit(0)
    bits |= Bit.IS_FILLER if asked & ASKS_FILLER and not takes_slot else Bit(0)
    high = low = 0
    if asked & ASKS_KEYS and is_single:
        key = props.find_property(properties, props.KEYS.encode()) or b""
        if key.strip(_BLANKS):
            bits |= Bit.HAS_KEY
            high, low = key_hash(key, salt)
    size = record.size_bytes
    least = placeholder_bytes(record.topic, record.sys_flag, size, len(mark.properties), record_crc=has_crc)
    times = record.queue_offset, record.store_timestamp_ms
    return phy_offset + at, *times, high, low, size, queue, least, int(bits)


def _salted(key: bytes, salt: int) -> int:
    total = _mixed(len(key) ^ salt)
    for number, at in enumerate(range(0, len(key), _WORD_BYTES), 1):
        word = int(key[at : at + _WORD_BYTES][::-1].hex(), 16)
        total += _mixed(word ^ ((salt + number * _STEP) & _U64))
    value = _mixed(total & _U64)
    return value - ((value & _SIGN) << 1)


def _mixed(value: int) -> int:
    """Returns a mixed word: every bit of it affects every bit of the result (MurmurHash3's finalizer)."""
    value = (value ^ value >> 33) * 0xFF51_AFD7_ED55_8CCD & _U64
    value = (value ^ value >> 33) * 0xC4CE_B9FE_1A85_EC53 & _U64
    return value ^ value >> 33
