"""ConsumeQueueExt: units that hold what does not fit a queue unit, of variable size.

Where a store keeps such files, ``tags_code`` of a queue unit is the address of an ext unit: its byte
offset in the endless sequence of ext files, moved down to the negative end of 64 bits. Hashes never get
that low, so one look tells them apart. The bitmap says which SQL92 filters may match the message.

A file ends where fewer than 4 bytes would be left behind the next unit: -1 in place of a size closes it.

Truth: none, and RocketMQ calls it weakly reliable: tags and time follow from the log, the bitmap can be
computed again from the filters. Readers fall back to the record.

Source: ``store/.../ConsumeQueueExt.java``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

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
END_RESERVE_BYTES: Final = 4
_END_MARK: Final = EXT_END.struct.pack(-1)

_ADDRESS_BASE: Final = -(1 << 63)
MAX_EXT_ADDRESS: Final = -(1 << 31) - 1
"""Any tags code up to this one is an address: hashes are at least -2**31."""


@dataclass(frozen=True, slots=True)
class ExtUnit:
    """One unit.

    Attributes:
        bitmap: See ``filter_bitmap``; empty for a message without.
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


def ext_address(position_bytes: int) -> int:
    """Returns the tags code that stands for the ext unit at this byte of the endless ext sequence.

    Raises:
        InvalidArgumentError: Negative, or so far on that the address could be a hash.
    """
    if not 0 <= position_bytes <= MAX_EXT_ADDRESS - _ADDRESS_BASE:
        raise InvalidArgumentError(f"an ext unit at byte {position_bytes} has no address")
    return position_bytes + _ADDRESS_BASE


def ext_position(tags_code: int) -> int:
    """Returns the byte of the ext sequence that an address stands for.

    Raises:
        InvalidArgumentError: A tags code that is no address.
    """
    if not _ADDRESS_BASE <= tags_code <= MAX_EXT_ADDRESS:
        raise InvalidArgumentError(f"tags code {tags_code} is no address of an ext unit")
    return tags_code - _ADDRESS_BASE


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


def encode_ext_unit(unit: ExtUnit) -> bytes:
    """Returns the stored unit.

    Raises:
        InvalidArgumentError: The bitmap is too long for a 16-bit size.
    """
    if unit.size_bytes > MAX_EXT_UNIT_BYTES:
        raise InvalidArgumentError(
            f"an ext unit of {unit.size_bytes} bytes, at most {MAX_EXT_UNIT_BYTES}: shorten the bitmap"
        )
    head = EXT_UNIT.struct.pack(unit.size_bytes, unit.tags_code, unit.store_timestamp_ms, len(unit.bitmap))
    return head + unit.bitmap


def ext_positions(buffer: Buffer) -> npt.NDArray[np.int64]:
    """Returns where the units of one file start, followed by where the last one ends.

    Units mostly have one size, so runs of equal sizes are found with ever longer looks; the walk is
    linear whatever the bytes are. It ends at the end mark, at zeros and at a size that is no unit's.

    Returns:
        ``(n + 1,)`` byte positions in the file, for n units.
    """
    room = len(buffer)
    runs: list[npt.NDArray[np.int64]] = []
    at = 0
    while at + EXT_HEAD_BYTES <= room:
        size = EXT_UNIT.struct.unpack_from(buffer, at)[0]
        if size < EXT_HEAD_BYTES or at + size > room:
            break
        count = _run_length(buffer, at, size)
        runs.append(at + size * np.arange(count, dtype=np.int64))
        at += size * count
    runs.append(np.array([at], np.int64))
    return np.concatenate(runs)


def _run_length(buffer: Buffer, at: int, size: int) -> int:
    """Returns how many units of one size follow each other, at least 1."""
    unit = np.dtype({"names": ["size_bytes"], "formats": [">i2"], "itemsize": size})
    most = (len(buffer) - at) // size
    count, look = 1, 1
    while count < most:
        look = min(2 * look, most - count)
        same = np.frombuffer(buffer, unit, look, at + size * count)["size_bytes"] == size
        if not same.all():
            return count + int(same.argmin())
        count += look
    return count


def ext_heads(buffer: Buffer, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.void]:
    """Returns the heads of many units of one file at once, without their bitmaps.

    Args:
        buffer: The file.
        positions: ``(n,)`` byte positions of units, in any order.

    Returns:
        ``(n,) EXT_UNIT.dtype``, a copy.

    Raises:
        TruncatedError: A head does not lie within the file.
    """
    if len(positions) and not 0 <= positions.min() <= positions.max() <= len(buffer) - EXT_HEAD_BYTES:
        raise TruncatedError(
            "ext-unit",
            position_bytes=int(positions.max()),
            expected=f"positions 0..{len(buffer) - EXT_HEAD_BYTES}",
            found=f"{positions.min()}..{positions.max()}",
        )
    raw = np.frombuffer(buffer, np.uint8)
    heads: npt.NDArray[np.void] = raw[positions[:, None] + np.arange(EXT_HEAD_BYTES)].view(EXT_UNIT.dtype)
    return heads.reshape(len(positions))


def pack_ext_files(units: Iterable[ExtUnit], file_size_bytes: int) -> tuple[list[bytes], list[int]]:
    """Returns the files that hold the units, from byte 0 of the sequence on, and each unit's address.

    Raises:
        InvalidArgumentError: A unit does not fit a file.
    """
    files: list[bytearray] = []
    addresses: list[int] = []
    position = file_size_bytes  # in the last file; full before there is one
    for unit in units:
        encoded = encode_ext_unit(unit)
        if len(encoded) > file_size_bytes - END_RESERVE_BYTES:
            raise InvalidArgumentError(
                f"an ext unit of {len(encoded)} bytes does not fit a file of {file_size_bytes}"
            )
        if len(encoded) > file_size_bytes - position - END_RESERVE_BYTES:
            if files:
                files[-1][position : position + len(_END_MARK)] = _END_MARK
            files.append(bytearray(file_size_bytes))
            position = 0
        addresses.append(ext_address((len(files) - 1) * file_size_bytes + position))
        files[-1][position : position + len(encoded)] = encoded
        position += len(encoded)
    return [bytes(file) for file in files], addresses
