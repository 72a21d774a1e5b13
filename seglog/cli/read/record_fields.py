"""Decodes a record of the log field by field, by the tables that the engine uses.

It decodes damaged records too: as many fields as the lengths allow, and the result of each check.
"""

from __future__ import annotations

import ipaddress
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from seglog.cli.ui import render
from seglog.storage.format.layout import I16, U8, Field, Layout
from seglog.storage.format.record import (
    CRC_MASK,
    FILLER,
    HEAD_V4,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    Damage,
    Host,
    examine,
    head_layout,
)
from seglog.storage.format.record import properties as props
from seglog.storage.format.record import sys_flag as flags

_NUMBERS: Final = {"u8": U8, "i16": I16}
_FLAG_NAMES: Final = {
    flags.MULTI_TAGS: "several tags",
    flags.BORN_HOST_V6: "born host IPv6",
    flags.STORE_HOST_V6: "store host IPv6",
    flags.NEED_UNWRAP: "to be unwrapped",
    flags.INNER_BATCH: "inner batch",
}
_TRANSACTIONS: Final = {
    flags.TRANSACTION_PREPARED: "transaction PREPARED",
    flags.TRANSACTION_COMMIT: "transaction COMMIT",
    flags.TRANSACTION_ROLLBACK: "transaction ROLLBACK",
}
_COMPRESSIONS: Final = {0: "zlib", flags.COMPRESSION_LZ4: "lz4", flags.COMPRESSION_ZSTD: "zstd"}
_KNOWN_FLAGS: Final = 0x7FF


@dataclass(frozen=True, slots=True)
class Part:
    """One field.

    Attributes:
        at: Position in bytes from the start of the record.
        value: The value as the table decodes it; text for addresses, the topic and the body.
        meaning: The meaning of this value, or the table's description of the field.
    """

    name: str
    at: int
    raw: bytes
    value: int | str
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Property:
    """One entry of the properties; ``at`` is its position from the start of the record."""

    name: str
    value: str
    at: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a record."""

    name: str
    holds: bool
    detail: str


@dataclass(slots=True)
class Anatomy:
    """A record or filler, field by field.

    Attributes:
        kind: ``record`` or ``filler``.
        damage: The damage that the engine finds, None if there is none.
    """

    kind: str
    size_bytes: int
    damage: Damage | None
    parts: list[Part]
    properties: list[Property] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)


def dissect(record: memoryview, phy_offset: int, segment_end: int) -> Anatomy | None:
    """Returns the fields at the start of a buffer, None without the magic of a record or filler.

    Args:
        record: The record, as far as it can be read.
        phy_offset: Physical offset of the record.
        segment_end: End of its file.
    """
    if len(record) < FILLER.size_bytes:
        return None
    size, magic = FILLER.struct.unpack_from(record)
    if magic == MAGIC_BLANK:
        room = segment_end - phy_offset
        damage = None if size == room else Damage("blank-size", room, size)
        return Anatomy("filler", size, damage, list(_layout_parts(FILLER, record)))
    if magic not in (MAGIC_V1, MAGIC_V2) or len(record) < HEAD_V4.size_bytes:
        return None
    found = examine(record, 0, phy_offset)
    layout = head_layout(record)
    damage = found if isinstance(found, Damage) else None
    anatomy = Anatomy("record", size, damage, list(_layout_parts(layout, record)))
    if len(record) >= layout.size_bytes:
        _tail(anatomy, record[: max(0, size)], layout.size_bytes, magic)
    anatomy.checks[:0] = [_place_check(anatomy, phy_offset)]
    return anatomy


def flags_text(sys_flag: int) -> str:
    """Returns the bits of a ``sysFlag`` in words."""
    words = []
    if sys_flag & flags.COMPRESSED:
        words.append(f"compressed ({_COMPRESSIONS.get(sys_flag & flags.COMPRESSION_MASK, 'zlib')})")
    elif sys_flag & flags.COMPRESSION_MASK:
        words.append("not compressed, with a compression type")
    if sys_flag & flags.TRANSACTION_MASK:
        words.append(_TRANSACTIONS[sys_flag & flags.TRANSACTION_MASK])
    words += [name for bit, name in _FLAG_NAMES.items() if sys_flag & bit]
    if sys_flag & ~_KNOWN_FLAGS:
        words.append(f"unknown bits {sys_flag & ~_KNOWN_FLAGS & 0xFFFF_FFFF:#x}")
    return ", ".join(words) or "none"


def _layout_parts(layout: Layout, record: memoryview) -> Iterator[Part]:
    if len(record) < layout.size_bytes:
        return
    values = layout.struct.unpack_from(record)
    ends = [*list(layout.offsets.values())[1:], layout.size_bytes]
    address = b""
    for column, value, end in zip(layout.fields, values, ends, strict=True):
        at = layout.offsets[column.name]
        shown, meaning = value, _meaning(column, value)
        if isinstance(value, bytes):
            address, shown = value, str(ipaddress.ip_address(value))
        elif column.name.endswith("_port"):
            meaning = str(Host(address, value))
        yield Part(column.name, at, bytes(record[at:end]), shown, column.unit, meaning)


def _meaning(column: Field, value: int | bytes) -> str:
    explain = _EXPLAINED.get(column.name)
    return explain(value) if explain is not None and isinstance(value, int) else column.meaning


def _magic_text(magic: int) -> str:
    names = {MAGIC_V1: "V1: one byte of topic length", MAGIC_V2: "V2: two bytes of topic length"}
    return f"{magic:#010X} ".replace("0X", "0x") + names.get(magic, "BLANK: the rest of the file is unused")


_EXPLAINED: Final[Mapping[str, Callable[[int], str]]] = {
    "magic": _magic_text,
    "body_crc": lambda crc: f"{crc:#010x}",
    "sys_flag": flags_text,
    "born_timestamp_ms": render.time_text,
    "store_timestamp_ms": render.time_text,
}


def _tail(anatomy: Anatomy, record: memoryview, at: int, magic: int) -> None:
    """Adds the fields after the head, as far as the lengths allow."""
    head = {part.name: part.value for part in anatomy.parts}
    body_bytes = int(head["body_bytes"])
    if not 0 <= body_bytes <= len(record) - at:
        return
    body = bytes(record[at : at + body_bytes])
    anatomy.parts.append(Part("body", at, body, _text(body), "–", f"{body_bytes} bytes, as stored"))
    _check_body(anatomy, int(head["body_crc"]), body)
    at = _add_sized(anatomy, record, at + body_bytes, "topic", "u8" if magic == MAGIC_V1 else "i16")
    start = -1 if at < 0 else _add_sized(anatomy, record, at, "properties", "i16")
    if start < 0:
        return
    raw = anatomy.parts[-1].raw
    anatomy.properties.extend(_iter_properties(raw, anatomy.parts[-1].at))
    anatomy.checks.append(
        Check("lengths", start == anatomy.size_bytes, f"the parts take {start} of {anatomy.size_bytes} bytes")
    )
    _check_record(anatomy, record, raw)


def _add_sized(anatomy: Anatomy, record: memoryview, at: int, name: str, kind: str) -> int:
    """Adds a length field and its text; returns their end, -1 if they do not fit."""
    number = _NUMBERS[kind]
    start = at + number.size
    if start > len(record):
        return -1
    size = int(number.unpack_from(record, at)[0])
    raw = bytes(record[at:start])
    anatomy.parts.append(Part(f"{name}_bytes", at, raw, size, "bytes", f"size of the {name} that follows"))
    end = start + max(0, size)
    if end > len(record):
        return -1
    text = bytes(record[start:end])
    anatomy.parts.append(Part(name, start, text, _text(text), "–", f"{len(text)} bytes"))
    return end


def _iter_properties(raw: bytes, at: int) -> Iterator[Property]:
    for piece in raw.split(b"\x02"):
        name, separator, value = piece.partition(b"\x01")
        if separator and name and value:
            yield Property(_text(name), _text(value), at, len(piece) + 1)
        elif piece:
            yield Property("", _text(piece), at, len(piece) + 1)
        at += len(piece) + 1


def _place_check(anatomy: Anatomy, phy_offset: int) -> Check:
    own = next(part.value for part in anatomy.parts if part.name == "phy_offset")
    return Check("place", own == phy_offset, f"the record says {own}, it is at {phy_offset}")


def _check_body(anatomy: Anatomy, stored: int, body: bytes) -> None:
    if body:
        crc = zlib.crc32(body) & CRC_MASK
        anatomy.checks.append(
            Check("body-crc", crc == stored, f"stored {stored:#010x}, computed {crc:#010x}")
        )


def _check_record(anatomy: Anatomy, record: memoryview, properties: bytes) -> None:
    tail = properties[-props.CRC_PROPERTY_BYTES :]
    if not props.ends_with_record_crc(properties):
        is_torn = props.look_torn(properties)
        detail = "NULs, or a __CRC32# out of its place" if is_torn else "no __CRC32# at the end"
        anatomy.checks.append(Check("properties", not is_torn, detail))
        return
    computed = props.crc_property(zlib.crc32(record[: -props.CRC_PROPERTY_BYTES]) & CRC_MASK)
    digits = slice(len(props.CRC_NAME), -1)
    detail = f"stored {_text(tail[digits])}, computed {_text(computed[digits])} (least digit first)"
    anatomy.checks.append(Check("record-crc", computed == tail, detail))


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")
