"""One entry of the attic: bytes of a file of the store, as an opening found them before it wrote over them.

A file of the attic is a row of entries, each a head, the name of the file relative to the store, and the
bytes. It is written from front to end before anything of the store is changed, so an entry that is cut is
the end of what was kept. Damage that spares the lengths of an entry costs only that entry, if entries follow
each other from its end to that of the file.

Truth: none. What comes back from here has to prove itself.

Source: seglog's own. RocketMQ knows nothing of ``<store>/seglog/``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import crc32c

from seglog.errors import CorruptError
from seglog.storage.format.layout import Field, Layout

ATTIC_MAGIC: Final = 0x41545443
MAX_KEPT_BYTES: Final = 4 << 20
"""Longer stretches take several entries."""
MAX_KEPT_NAME_BYTES: Final = 1 << 10

ATTIC_ENTRY: Final = Layout(
    "Attic, head of an entry",
    "seglog/attic/GENERATION.kept in the store",
    (
        Field("magic", "u32", "–", "0x41545443, ATTC in ASCII"),
        Field("name_bytes", "i32", "bytes", "length of the name that follows, UTF-8, from the store down"),
        Field("data_bytes", "i32", "bytes", "length of the bytes behind the name"),
        Field("position_bytes", "i64", "bytes", "where in the file they were"),
        Field("crc32c", "u32", "–", "CRC-32C of the head with 0 here, the name and the bytes"),
    ),
)
ATTIC_HEAD_BYTES: Final = ATTIC_ENTRY.size_bytes


@dataclass(frozen=True, slots=True)
class AtticHead:
    """The head of an entry."""

    name_bytes: int
    data_bytes: int
    position_bytes: int
    crc32c: int

    @property
    def rest_bytes(self) -> int:
        """How long name and data are."""
        return self.name_bytes + self.data_bytes


def encode_entry(name: bytes, position_bytes: int, data: bytes | memoryview) -> bytes:
    """Returns an entry; ``data`` is at most :data:`MAX_KEPT_BYTES` long."""
    crc = _checksum(position_bytes, name, data)
    head = ATTIC_ENTRY.struct.pack(ATTIC_MAGIC, len(name), len(data), position_bytes, crc)
    return b"".join((head, name, data))


def decode_head(buffer: memoryview) -> AtticHead:
    """Returns the head of an entry.

    Raises:
        CorruptError: It is none.
    """
    if len(buffer) < ATTIC_HEAD_BYTES:
        raise CorruptError("attic", expected=f"{ATTIC_HEAD_BYTES} bytes", found=len(buffer))
    magic, name_bytes, data_bytes, position, crc = ATTIC_ENTRY.struct.unpack_from(buffer)
    if magic != ATTIC_MAGIC:
        raise CorruptError("attic", expected=f"{ATTIC_MAGIC:#x}", found=f"{magic:#x}")
    if not (0 < name_bytes <= MAX_KEPT_NAME_BYTES and 0 <= data_bytes <= MAX_KEPT_BYTES and position >= 0):
        raise CorruptError("attic", expected="lengths of an entry", found=(name_bytes, data_bytes, position))
    return AtticHead(name_bytes, data_bytes, position, crc)


def entry_bytes(buffer: memoryview) -> int:
    """Returns how long the entry is that begins with a head, by its lengths alone; 0 if they cannot be."""
    if len(buffer) < ATTIC_HEAD_BYTES:
        return 0
    _magic, name_bytes, data_bytes, _position, _crc = ATTIC_ENTRY.struct.unpack_from(buffer)
    if not (0 < name_bytes <= MAX_KEPT_NAME_BYTES and 0 <= data_bytes <= MAX_KEPT_BYTES):
        return 0
    return ATTIC_HEAD_BYTES + int(name_bytes) + int(data_bytes)


def decode_rest(head: AtticHead, rest: memoryview) -> tuple[str, bytes]:
    """Returns the name and the bytes behind a head.

    Raises:
        CorruptError: They are cut, or not what they were.
    """
    name, data = bytes(rest[: head.name_bytes]), bytes(rest[head.name_bytes : head.rest_bytes])
    found = _checksum(head.position_bytes, name, data)
    if len(rest) < head.rest_bytes or found != head.crc32c:
        raise CorruptError("attic", expected=f"{head.crc32c:#x}", found=f"{found:#x}")
    return name.decode("utf-8", "surrogateescape"), data


def _checksum(position_bytes: int, name: bytes, data: bytes | memoryview) -> int:
    head = ATTIC_ENTRY.struct.pack(ATTIC_MAGIC, len(name), len(data), position_bytes, 0)
    value: int = crc32c.crc32c(data, crc32c.crc32c(name, crc32c.crc32c(head)))
    return value
