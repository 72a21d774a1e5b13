"""The key index: a hash table in a file, from keys to the records that have them.

A file is a header, S slots and N entries. A slot holds the number of the newest entry whose hash falls
into it; each entry names the one before it in the same slot. Entry 0 is never used, so 0 ends a chain and
a file takes N - 1 entries.

Truth: none. Everything follows from the records of the commit log, byte for byte (``index_build``); only
the name of a file, the time it was made at, does not.

Source: ``store/.../index/IndexFile.java``, ``IndexHeader.java``, ``IndexService.java queryOffset``.
"""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from typing import Final

from seglog.errors import TruncatedError
from seglog.storage.format.layout import Buffer, Field, Layout
from seglog.storage.format.record.tags import java_string_hash

INDEX_HEADER: Final = Layout(
    "Index file header",
    "store/.../index/IndexHeader.java",
    (
        Field("begin_timestamp_ms", "i64", "ms", "store time of the first entry's record"),
        Field("end_timestamp_ms", "i64", "ms", "store time of the last entry's record"),
        Field("begin_phy_offset", "i64", "bytes from log start", "the first entry's record"),
        Field("end_phy_offset", "i64", "bytes from log start", "the last entry's record"),
        Field("hash_slot_count", "i32", "–", "slots in use"),
        Field("index_count", "i32", "–", "number of the next entry, from 1; 0 counts as 1"),
    ),
)
INDEX_SLOT: Final = Layout(
    "Index slot",
    "store/.../index/IndexFile.java hashSlotSize",
    (Field("newest_entry", "i32", "–", "head of the slot's chain; 0 for none"),),
)
INDEX_ENTRY: Final = Layout(
    "Index entry",
    "store/.../index/IndexFile.java indexSize",
    (
        Field("key_hash", "i32", "–", "of topic#key, from 0; modulo the number of slots its slot"),
        Field("phy_offset", "i64", "bytes from log start", "where the record starts"),
        Field("time_diff_s", "i32", "s", "store time after begin_timestamp_ms"),
        Field("previous_entry", "i32", "–", "next older entry of the slot; 0 for none"),
    ),
)

MAX_INT: Final = 0x7FFF_FFFF

_FILE_NAME: Final = re.compile(r"[0-9]{17}")


@dataclass(frozen=True, slots=True)
class IndexGeometry:
    """How a file is divided; the file does not say so itself, see ``index_geometry``.

    Attributes:
        slot_count: ``maxHashSlotNum``.
        entry_count: ``maxIndexNum``, the unused entry 0 included.
    """

    slot_count: int
    entry_count: int

    @property
    def entries_at(self) -> int:
        """Where entry 0 starts."""
        return INDEX_HEADER.size_bytes + INDEX_SLOT.size_bytes * self.slot_count

    @property
    def file_size_bytes(self) -> int:
        """Size of each file."""
        return self.entries_at + INDEX_ENTRY.size_bytes * self.entry_count


DEFAULT_INDEX_GEOMETRY: Final = IndexGeometry(5_000_000, 20_000_000)


@dataclass(frozen=True, slots=True)
class IndexHeader:
    """The header of a file; the fields are those of the table."""

    begin_timestamp_ms: int = 0
    end_timestamp_ms: int = 0
    begin_phy_offset: int = 0
    end_phy_offset: int = 0
    hash_slot_count: int = 0
    index_count: int = 1

    def overlaps(self, begin_ms: int, end_ms: int) -> bool:
        """Returns whether the file's records may be of a time between the two, both included."""
        return begin_ms <= self.end_timestamp_ms and end_ms >= self.begin_timestamp_ms


def decode_index_header(buffer: Buffer) -> IndexHeader:
    """Returns the header at the start of a file.

    Raises:
        TruncatedError: The buffer is shorter than a header.
    """
    if len(buffer) < INDEX_HEADER.size_bytes:
        raise TruncatedError("index", expected=f"{INDEX_HEADER.size_bytes} bytes", found=len(buffer))
    header = IndexHeader(*INDEX_HEADER.struct.unpack_from(buffer))
    return header if header.index_count > 0 else replace(header, index_count=1)


def encode_index_header(header: IndexHeader) -> bytes:
    """Returns the 40 bytes of a header."""
    return INDEX_HEADER.struct.pack(*astuple(header))


def key_hash(key: str) -> int:
    """Returns the hash of ``topic#key``: the magnitude of Java's hash, 0 for the one without."""
    magnitude = abs(java_string_hash(key))
    return magnitude if magnitude <= MAX_INT else 0


def index_file_name(made_at: datetime) -> str:
    """Returns the name of a file made at that local time: ``yyyyMMddHHmmssSSS``."""
    return f"{made_at:%Y%m%d%H%M%S}{made_at.microsecond // 1000:03d}"


def is_index_file_name(name: str) -> bool:
    """Returns whether RocketMQ would load a file of that name as ours."""
    return _FILE_NAME.fullmatch(name) is not None
