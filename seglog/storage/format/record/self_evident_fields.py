"""Fields of a record that something else says too, written again: its magic, its own place, its length.

The magic is one of two constants, a record states where it is, and a queue unit knows its length. Damage
to these fields hides the message from readers, but what they held is still known.
"""

from __future__ import annotations

from typing import Final

from seglog.storage.format.layout import I64
from seglog.storage.format.record.record import (
    FILLER,
    HEAD_V4,
    MAGIC_V1,
    MAGIC_V2,
    PHY_OFFSET_AT,
    Damage,
    examine,
)

FIELDS: Final = ("size_bytes", "magic", "phy_offset")


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


def restated_fields(before: bytes, after: bytes) -> tuple[str, ...]:
    """Returns the names of the fields that are not the same in both."""
    return tuple(
        name
        for name in FIELDS
        if before[(at := HEAD_V4.offsets[name]) : at + HEAD_V4.dtype[name].itemsize]
        != after[at : at + HEAD_V4.dtype[name].itemsize]
    )
