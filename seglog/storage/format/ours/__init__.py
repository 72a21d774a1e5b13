"""Formats of seglog's own files under ``<store>/seglog/``: seals, recovery points, attic, undo packs.

Pure: bytes to values and back, each with a checksum over all of it.

Called by the rooms that keep such files.
Truth: the tables here; RocketMQ never reads these files.
"""

from __future__ import annotations

from seglog.storage.format.ours.attic_entry import ATTIC_HEAD_BYTES, encode_entry
from seglog.storage.format.ours.crc_of_zeros import crc_of_zeros
from seglog.storage.format.ours.offset_history import (
    ChangeKind,
    DecodedChanges,
    OffsetChange,
    decode_changes,
    encode_changes,
)
from seglog.storage.format.ours.seal import SEAL_BLOCK_BYTES, Seal, checksum
from seglog.storage.format.ours.undo_journal import (
    MAX_DATA_BYTES,
    UNDO_ENTRY,
    UNDO_VERSION,
    UndoEntry,
    UndoKind,
    decode_undo_entry,
    encode_undo_entry,
    undo_entry_bytes,
)

__all__ = [
    "ATTIC_HEAD_BYTES",
    "MAX_DATA_BYTES",
    "SEAL_BLOCK_BYTES",
    "UNDO_ENTRY",
    "UNDO_VERSION",
    "ChangeKind",
    "DecodedChanges",
    "OffsetChange",
    "Seal",
    "UndoEntry",
    "UndoKind",
    "checksum",
    "crc_of_zeros",
    "decode_changes",
    "decode_undo_entry",
    "encode_changes",
    "encode_entry",
    "encode_undo_entry",
    "undo_entry_bytes",
]
