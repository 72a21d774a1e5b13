"""Files of ext units: walked, and packed as RocketMQ packs them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from seglog.errors import InvalidArgumentError
from seglog.storage.format.layout import Buffer
from seglog.storage.format.queue.consume_queue_ext import (
    ADDRESS_BASE,
    EXT_END,
    EXT_HEAD_BYTES,
    EXT_UNIT,
    MAX_EXT_ADDRESS,
    MAX_EXT_UNIT_BYTES,
    ExtUnit,
)

END_MARK: Final = EXT_END.struct.pack(-1)
END_RESERVE_BYTES: Final = 4


def ext_address(position_bytes: int) -> int:
    """Returns the tags code that stands for the ext unit at this byte of the endless ext sequence.

    Raises:
        InvalidArgumentError: Negative, or so far on that the address could be a hash.
    """
    if not 0 <= position_bytes <= MAX_EXT_ADDRESS - ADDRESS_BASE:
        raise InvalidArgumentError(f"an ext unit at byte {position_bytes} has no address")
    return position_bytes + ADDRESS_BASE


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


def ext_positions(buffer: Buffer) -> list[int]:
    """Returns where the units of one file start, followed by where the last one ends."""
    positions = [0]
    while (at := positions[-1]) + EXT_HEAD_BYTES <= len(buffer):
        size = EXT_UNIT.struct.unpack_from(buffer, at)[0]
        if size < EXT_HEAD_BYTES or at + size > len(buffer):
            break
        positions.append(at + size)
    return positions


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
                files[-1][position : position + len(END_MARK)] = END_MARK
            files.append(bytearray(file_size_bytes))
            position = 0
        addresses.append(ext_address((len(files) - 1) * file_size_bytes + position))
        files[-1][position : position + len(encoded)] = encoded
        position += len(encoded)
    return [bytes(file) for file in files], addresses
