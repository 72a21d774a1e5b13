"""The checkpoint file: 4096 bytes of which the head says how far the parts of the store were flushed.

Truth: none. It only lets recovery start late instead of at the first record; a missing or zero file
means a full walk. The 5.5.0 field ``logics_phy_offset`` is kept as it was found.

Source: ``store/.../StoreCheckpoint.java``.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Final

from seglog.storage.format.layout import Field, Layout

CHECKPOINT: Final = Layout(
    "checkpoint",
    "store/.../StoreCheckpoint.java flush",
    (
        Field("physic_timestamp_ms", "i64", "ms", "store time of the newest flushed commit-log data"),
        Field("logics_timestamp_ms", "i64", "ms", "store time of the last unit put into any queue"),
        Field("index_timestamp_ms", "i64", "ms", "end time of the last full index file"),
        Field("master_flushed_offset", "i64", "bytes from log start", "replication"),
        Field(
            "confirm_phy_offset",
            "i64",
            "bytes from log start",
            "start of the last valid record after recovery",
        ),
        Field("logics_phy_offset", "i64", "bytes from log start", "5.5.0 and later"),
    ),
)

CHECKPOINT_FILE_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Values of the checkpoint file; all 0 for a store that has none."""

    physic_timestamp_ms: int = 0
    logics_timestamp_ms: int = 0
    index_timestamp_ms: int = 0
    master_flushed_offset: int = 0
    confirm_phy_offset: int = 0
    logics_phy_offset: int = 0


def decode_checkpoint(data: bytes) -> Checkpoint:
    """Returns the values; a short or empty file counts as all 0, as RocketMQ takes it."""
    if len(data) < CHECKPOINT.size_bytes:
        return Checkpoint()
    return Checkpoint(*CHECKPOINT.struct.unpack_from(data))


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    """Returns the 4096 bytes of the file."""
    return CHECKPOINT.struct.pack(*astuple(checkpoint)).ljust(CHECKPOINT_FILE_BYTES, b"\0")
