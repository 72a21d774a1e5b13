"""ConsumeQueueExt: units that hold what does not fit a queue unit, of variable size.

Where a store keeps such files, ``tags_code`` of a queue unit is the address of an ext unit: its byte
offset in the endless sequence of ext files, moved down to the negative end of 64 bits. Hashes never get
that low, so the value alone distinguishes them. The bitmap says which SQL92 filters may match the message.

A file ends where fewer than 4 bytes would be left behind the next unit: -1 in place of a size closes it.

Truth: none, and RocketMQ calls it weakly reliable: tags and time follow from the log, the bitmap can be
computed again from the filters. Readers fall back to the record.

Source: ``store/.../ConsumeQueueExt.java``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from seglog.errors import CorruptError, InvalidArgumentError, TruncatedError
from seglog.storage.format.layout import Buffer, Field, Layout

EXT_UNIT: Final = Layout(
    "ConsumeQueueExt unit, head",
    "store/.../ConsumeQueueExt.java CqExtUnit",
    (
        Field("size_bytes", "i16", "bytes", "the whole unit, this field and the bitmap included"),
        Field("tags_code", "i64", "–", "Java hash of the tag"),
        Field("store_timestamp_ms", "i64", "ms", "of the record"),
        Field("bitmap_bytes", "i16", "bytes", "of the bitmap that follows"),
    ),
)
EXT_END: Final = Layout(
    "ConsumeQueueExt end of file",
    "store/.../ConsumeQueueExt.java fullFillToEnd",
    (Field("mark", "i16", "–", "-1"),),
)

EXT_HEAD_BYTES: Final = EXT_UNIT.size_bytes
MAX_EXT_UNIT_BYTES: Final = 0x7FFF
DEFAULT_EXT_FILE_BYTES: Final = 48 << 20
ADDRESS_BASE: Final = -(1 << 63)
MAX_EXT_ADDRESS: Final = -(1 << 31) - 1
"""Any tags code up to this one is an address: hashes are at least -2**31."""


@dataclass(frozen=True, slots=True)
class ExtUnit:
    """One unit.

    Attributes:
        bitmap: Bit b is in byte b // 8 at 1 << b % 8; empty for a message without.
    """

    tags_code: int
    store_timestamp_ms: int
    bitmap: bytes = b""

    @property
    def size_bytes(self) -> int:
        """Size of the stored unit."""
        return EXT_HEAD_BYTES + len(self.bitmap)


def is_ext_address(tags_code: int) -> bool:
    """Returns whether the tags code of a queue unit is the address of an ext unit."""
    return tags_code <= MAX_EXT_ADDRESS


def ext_position(tags_code: int) -> int:
    """Returns the byte of the ext sequence that an address stands for.

    Raises:
        InvalidArgumentError: A tags code that is no address.
    """
    if not ADDRESS_BASE <= tags_code <= MAX_EXT_ADDRESS:
        raise InvalidArgumentError(f"tags code {tags_code} is no address of an ext unit")
    return tags_code - ADDRESS_BASE


def decode_ext_unit(buffer: Buffer, at: int = 0) -> ExtUnit:
    """Returns the unit that starts at byte ``at`` of a file.

    Raises:
        TruncatedError: The file ends before the unit does.
        CorruptError: There is no unit there.
    """
    room = len(buffer) - at
    if at < 0 or room < EXT_HEAD_BYTES:
        raise TruncatedError(
            "ext-unit", position_bytes=at, expected=f"at least {EXT_HEAD_BYTES} bytes", found=room
        )
    size, tags_code, store_timestamp_ms, bitmap_bytes = EXT_UNIT.struct.unpack_from(buffer, at)
    if size < EXT_HEAD_BYTES or size != EXT_HEAD_BYTES + max(0, bitmap_bytes):
        raise CorruptError(
            "ext-unit", position_bytes=at, expected=f"{EXT_HEAD_BYTES} + {bitmap_bytes} bytes", found=size
        )
    if size > room:
        raise TruncatedError("ext-unit", position_bytes=at, expected=f"{size} bytes", found=room)
    return ExtUnit(tags_code, store_timestamp_ms, bytes(buffer[at + EXT_HEAD_BYTES : at + size]))
