"""The journal of an undo pack: what a repair is about to change, as it was, so that it can be put back.

A journal is a row of entries, each a head, a path, data, and a CRC-32C of all of that. Paths are relative to
the store. First come the time and every file and folder of the store with length, rights, time and CRC-32C
of its content; then what the repair does to names and the bytes that it writes over; then the end. A second
file of the same form has the files as the repair left them.

Truth: that of the store before the repair. A journal gets its name when it is whole, so one that is cut or
changed is damage and no leftover; nothing is undone by it.

Source: seglog's own. RocketMQ knows nothing of ``<store>/seglog/``.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

import crc32c

from seglog.errors import CorruptError, TruncatedError
from seglog.storage.format.layout import Buffer, Field, Layout

UNDO_MAGIC: Final = 0x554E444F
UNDO_VERSION: Final = 1
MAX_DATA_BYTES: Final = 4 << 20
"""Longer stretches of old bytes take several entries."""
_MAX_PATH_BYTES: Final = 1 << 16

UNDO_ENTRY: Final = Layout(
    "Undo journal, one entry",
    "seglog/undo/NUMBER/journal in the store",
    (
        Field("magic", "u32", "–", "0x554E444F, UNDO in ASCII"),
        Field("kind", "i32", "–", "what the entry says"),
        Field("path_bytes", "i32", "bytes", "length of the path that follows, UTF-8"),
        Field("data_bytes", "i32", "bytes", "length of the data behind the path"),
        Field("position_bytes", "i64", "bytes", "where in the file; a number where the kind says so"),
        Field("size_bytes", "i64", "bytes", "length of the file or of the stretch"),
        Field("mode", "i32", "bits", "rights of the file"),
        Field("modified_ns", "i64", "ns", "when the file was changed last"),
        Field("content_crc32c", "u32", "–", "CRC-32C of the whole file"),
    ),
)

UNDO_ENTRY_END: Final = Layout(
    "Undo journal, end of an entry",
    "seglog/undo/NUMBER/journal in the store",
    (Field("crc32c", "u32", "–", "CRC-32C of head, path and data"),),
)


class UndoKind(enum.IntEnum):
    """What an entry says."""

    BEGIN = 1
    """First entry: ``position_bytes`` is the version, ``size_bytes`` when the repair began, in ms."""
    FILE = 2
    """A file: its length, rights, time and checksum."""
    FOLDER = 3
    """A folder that is there; ``position_bytes`` is 1 for a folder of the log beside ``commitlog``."""
    BYTES = 4
    """A stretch that is written over, as it was; zeros at its end are left out of the data."""
    KEPT = 5
    """A file that goes: it is in the pack under the number in ``position_bytes``."""
    MOVED = 6
    """A file that gets another name, which is the data."""
    CREATED = 7
    """A file that comes."""
    MADE = 8
    """A folder that comes; ``position_bytes`` as for a folder that is there."""
    END = 9
    """Last entry: ``position_bytes`` is the number of entries before it."""
    RENAMED = 10
    """A file that gets another name, which is the data. Another such file may have that name: meanwhile each
    is in the pack, under the number in ``position_bytes``."""


@dataclass(frozen=True, slots=True)
class UndoEntry:
    """One entry; fields as :data:`UNDO_ENTRY` has them."""

    kind: UndoKind
    path: str = ""
    data: bytes = b""
    position_bytes: int = 0
    size_bytes: int = 0
    mode: int = 0
    modified_ns: int = 0
    content_crc32c: int = 0


def encode_undo_entry(entry: UndoEntry) -> bytes:
    """Returns the bytes of an entry."""
    path = entry.path.encode("utf-8", "surrogateescape")
    head = UNDO_ENTRY.struct.pack(
        UNDO_MAGIC,
        entry.kind,
        len(path),
        len(entry.data),
        entry.position_bytes,
        entry.size_bytes,
        entry.mode,
        entry.modified_ns,
        entry.content_crc32c,
    )
    body = head + path + entry.data
    return body + UNDO_ENTRY_END.struct.pack(crc32c.crc32c(body))


def undo_entry_bytes(head: Buffer) -> int:
    """Returns how long the entry is that begins with a head.

    Args:
        head: At least :data:`UNDO_ENTRY` bytes.

    Raises:
        TruncatedError: Fewer.
        CorruptError: No head.
    """
    if len(head) < UNDO_ENTRY.size_bytes:
        raise TruncatedError("undo-entry", expected=f"{UNDO_ENTRY.size_bytes} bytes", found=len(head))
    magic, _kind, path_bytes, data_bytes, *_others = UNDO_ENTRY.struct.unpack_from(head)
    if magic != UNDO_MAGIC:
        raise CorruptError("undo-magic", expected=f"{UNDO_MAGIC:#x}", found=f"{magic:#x}")
    if not (0 <= path_bytes <= _MAX_PATH_BYTES and 0 <= data_bytes <= MAX_DATA_BYTES):
        raise CorruptError("undo-lengths", expected="a path and data", found=(path_bytes, data_bytes))
    return int(UNDO_ENTRY.size_bytes + path_bytes + data_bytes + UNDO_ENTRY_END.size_bytes)


def decode_undo_entry(whole: Buffer) -> UndoEntry:
    """Returns an entry.

    Args:
        whole: Its bytes, as many as :func:`undo_entry_bytes` says.

    Raises:
        TruncatedError: Fewer bytes.
        CorruptError: Not as it was written, or of a kind that is not known here.
    """
    size = undo_entry_bytes(whole)
    if len(whole) < size:
        raise TruncatedError("undo-entry", expected=f"{size} bytes", found=len(whole))
    view = memoryview(whole)[:size]
    (stated,) = UNDO_ENTRY_END.struct.unpack_from(view, size - UNDO_ENTRY_END.size_bytes)
    crc = crc32c.crc32c(view[: -UNDO_ENTRY_END.size_bytes])
    if crc != stated:
        raise CorruptError("undo-crc", expected=f"{stated:#x}", found=f"{crc:#x}")
    _magic, kind, path_bytes, data_bytes, *values = UNDO_ENTRY.struct.unpack_from(view)
    if kind not in UndoKind.__members__.values():
        raise CorruptError("undo-kind", expected=f"up to {max(UndoKind)}", found=kind)
    data_at = UNDO_ENTRY.size_bytes + path_bytes
    path = bytes(view[UNDO_ENTRY.size_bytes : data_at]).decode("utf-8", "surrogateescape")
    return UndoEntry(UndoKind(kind), path, bytes(view[data_at : data_at + data_bytes]), *values)
