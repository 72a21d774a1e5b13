"""Formats of seglog's own files under ``<store>/seglog/``: seals, recovery points, attic, undo packs.

Pure: bytes to values and back, each with a checksum over all of it.

Called by the rooms that keep such files.
Truth: the tables here; RocketMQ never reads these files.
"""

from seglog.storage.format.ours.attic_entry import ATTIC_HEAD_BYTES as ATTIC_HEAD_BYTES
from seglog.storage.format.ours.attic_entry import encode_entry as encode_entry
from seglog.storage.format.ours.offset_history import ChangeKind as ChangeKind
from seglog.storage.format.ours.offset_history import DecodedChanges as DecodedChanges
from seglog.storage.format.ours.offset_history import OffsetChange as OffsetChange
from seglog.storage.format.ours.offset_history import decode_changes as decode_changes
from seglog.storage.format.ours.offset_history import decode_offsets as decode_offsets
from seglog.storage.format.ours.offset_history import encode_changes as encode_changes
from seglog.storage.format.ours.offset_history import file_print as file_print
from seglog.storage.format.ours.seal import SEAL_BLOCK_BYTES as SEAL_BLOCK_BYTES
from seglog.storage.format.ours.seal import Seal as Seal
from seglog.storage.format.ours.seal import checksum as checksum
from seglog.storage.format.ours.undo_journal import MAX_DATA_BYTES as MAX_DATA_BYTES
from seglog.storage.format.ours.undo_journal import UNDO_ENTRY as UNDO_ENTRY
from seglog.storage.format.ours.undo_journal import UNDO_VERSION as UNDO_VERSION
from seglog.storage.format.ours.undo_journal import UndoEntry as UndoEntry
from seglog.storage.format.ours.undo_journal import UndoKind as UndoKind
from seglog.storage.format.ours.undo_journal import decode_undo_entry as decode_undo_entry
from seglog.storage.format.ours.undo_journal import encode_undo_entry as encode_undo_entry
from seglog.storage.format.ours.undo_journal import undo_entry_bytes as undo_entry_bytes
from seglog.storage.format.ours.zeros_crc import crc_of_zeros as crc_of_zeros
