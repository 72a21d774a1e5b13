"""Reads and writes the checkpoint of a store in place, as RocketMQ does: the checkpoint is only a hint."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from seglog.storage.files.files import Files, read_start
from seglog.storage.format.checkpoint import (
    CHECKPOINT_FILE_BYTES,
    Checkpoint,
    decode_checkpoint,
    encode_checkpoint,
)
from seglog.storage.format.names import ABORT_FILE, CHECKPOINT_FILE


def read_checkpoint(files: Files, root: Path) -> Checkpoint:
    """Returns the checkpoint; all 0 if it is missing."""
    return decode_checkpoint(read_start(files, root / CHECKPOINT_FILE, CHECKPOINT_FILE_BYTES))


def write_checkpoint(files: Files, root: Path, checkpoint: Checkpoint) -> None:
    """Writes and syncs the checkpoint; never shortens the file, so a full disk cannot empty it."""
    path = root / CHECKPOINT_FILE
    data = encode_checkpoint(checkpoint)
    handle = files.open(path, writable=True) if files.exists(path) else files.create(path, len(data))
    with closing(handle):
        handle.write_at(data, 0)
        handle.sync()


def leave_to_rescan(files: Files, root: Path) -> None:
    """Leaves ``abort`` and an empty checkpoint: RocketMQ then walks the whole log and adds missing parts."""
    files.write_file(root / ABORT_FILE, b"")
    write_checkpoint(files, root, Checkpoint())
