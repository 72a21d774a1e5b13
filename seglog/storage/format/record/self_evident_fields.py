"""Fields of a record that something else says too, written again: its magic, its own place, its length.

The magic is one of two constants, a record states where it is, and a queue unit knows its length. Damage
to these fields hides the message from readers, but what they held is still known. The unit knows queue id and
queue offset too, and the lengths in a record add up with the right flags of its hosts alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from seglog.storage.format.layout import I32, I64
from seglog.storage.format.record.properties import ends_with_record_crc
from seglog.storage.format.record.record import (
    FILLER,
    HEAD_V4,
    HEADS,
    HOST_BITS,
    MAGIC_V1,
    MAGIC_V2,
    PHY_OFFSET_AT,
    SYS_FLAG_AT,
    Damage,
    examine,
)
from seglog.storage.format.record.sys_flag import with_place

FIELDS: Final = ("size_bytes", "magic", "queue_id", "queue_offset", "phy_offset", "sys_flag")


def restate(record: bytes, phy_offset: int) -> bytes | None:
    """Returns a record with these fields right, or None if that does not make it whole, or it was.

    Its checksums have to be right then, and at least one must cover something: the body must not be empty.

    Args:
        record: As many bytes as the queue unit says, or more than are left of it.
        phy_offset: Where it is.
    """
    for magic in (MAGIC_V1, MAGIC_V2):
        made = bytearray(record)
        FILLER.struct.pack_into(made, 0, len(record), magic)
        I64.pack_into(made, PHY_OFFSET_AT, phy_offset)
        row = examine(memoryview(made), 0, phy_offset)
        if not isinstance(row, Damage) and row.body_bytes and made != record:
            return bytes(made)
    return None


def restate_by_unit(record: bytes, phy_offset: int, queue_id: int, queue_offset: int) -> bytes | None:
    """Returns a record with one of queue id, queue offset and flags as its queue unit proves it.

    Only one field is written again, and magic, length and place must be right: a record of another place must
    not get this one's identity. Without ``__CRC32#`` a queue id or queue offset that is possible is left
    alone; the log decides about it. The caller holds the topic against the unit: so the lengths are right too
    if the body has no bytes.

    Args:
        record: As many bytes as the unit says.
        phy_offset: Where it is.
        queue_id: The queue of the unit.
        queue_offset: The queue offset of the unit.

    Returns:
        None if that does not make it whole, or it was, or several fields could be the damaged one.
    """
    found: set[bytes] = set()
    for made in _with_one_field(record, queue_id, queue_offset):
        row = examine(memoryview(made), 0, phy_offset)
        if not isinstance(row, Damage) and row.size_bytes == len(made) and made != record:
            found.add(made)
    return found.pop() if len(found) == 1 else None


def _with_one_field(record: bytes, queue_id: int, queue_offset: int) -> Iterator[bytes]:
    for name, layout, right in (("queue_id", I32, queue_id), ("queue_offset", I64, queue_offset)):
        at = HEAD_V4.offsets[name]
        if layout.unpack_from(record, at)[0] < 0 or ends_with_record_crc(record):
            yield record[:at] + layout.pack(right) + record[at + layout.size :]
    (flags,) = I32.unpack_from(record, SYS_FLAG_AT)
    for hosts in HEADS:
        made = with_place(flags & ~HOST_BITS | hosts)
        yield record[:SYS_FLAG_AT] + I32.pack(made) + record[SYS_FLAG_AT + I32.size :]


def restated_fields(before: bytes, after: bytes) -> tuple[str, ...]:
    """Returns the names of the fields that are not the same in both."""
    return tuple(
        name
        for name in FIELDS
        if before[(at := HEAD_V4.offsets[name]) : at + HEAD_V4.dtype[name].itemsize]
        != after[at : at + HEAD_V4.dtype[name].itemsize]
    )
