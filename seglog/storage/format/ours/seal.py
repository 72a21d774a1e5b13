"""The seal of a full commit-log segment: what its bytes and its records were when it was written.

A segment that the log has rolled past never changes again, so its checksums can be kept beside it, one
for each 64 KiB block. They find every flipped bit at the speed of the memory; the checksums inside of
records leave a third of them unseen in stores without ``__CRC32#``. A seal belongs to the segment of its
first offset, length and bytes; no inode or modification time is part of it, so copies keep their seals.

Truth: none; a seal can be rebuilt from a segment whose records all prove themselves.

Source: seglog's own. RocketMQ knows nothing of ``<store>/seglog/``, and may cut the log within a sealed
segment and write on from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.errors import CorruptError, TruncatedError
from seglog.storage.format.layout import Buffer, Field, Layout
from seglog.storage.format.record.record import FILLER_BYTES

SEAL_MAGIC: Final = 0x5345414C
SEAL_VERSION: Final = 1
SEAL_BLOCK_BYTES: Final = 64 << 10
SEAL_NO_RECORD: Final = -1
"""``first_record_at`` of a block that no record starts in."""

_SOURCE: Final = "seglog/seals/ in the store"

SEAL_HEAD: Final = Layout(
    "Seal of a commit-log segment, head",
    _SOURCE,
    (
        Field("magic", "u32", "–", "0x5345414C, SEAL in ASCII"),
        Field("version", "i32", "–", "1"),
        Field("first_phy_offset", "i64", "bytes from log start", "where the segment starts; its file's name"),
        Field("segment_bytes", "i64", "bytes", "length of the segment"),
        Field("block_bytes", "i32", "bytes", "length of each block but the last"),
        Field("block_count", "i32", "–", "blocks that follow this head"),
        Field("record_count", "i64", "–", "records in the segment"),
        Field("end_phy_offset", "i64", "bytes from log start", "where its last record ends"),
        Field("first_store_timestamp_ms", "i64", "ms", "of its first record; 0 without records"),
        Field("last_store_timestamp_ms", "i64", "ms", "of its last record; 0 without records"),
        Field("created_ms", "i64", "ms", "when it was sealed"),
        Field("segment_crc32c", "u32", "–", "CRC-32C of the whole segment"),
    ),
)

SEAL_BLOCK: Final = Layout(
    "Seal of a commit-log segment, one block",
    _SOURCE,
    (
        Field("crc32c", "u32", "–", "CRC-32C of the block"),
        Field("record_count", "i32", "–", "records that start in it"),
        Field(
            "first_record_at",
            "i32",
            "bytes from block start",
            "where the first of them does; -1 without",
        ),
    ),
)

SEAL_END: Final = Layout(
    "Seal of a commit-log segment, end",
    _SOURCE,
    (Field("crc32c", "u32", "–", "CRC-32C of head and blocks"),),
)

Blocks = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True, eq=False)
class Seal:
    """A decoded seal.

    Attributes:
        first_phy_offset: Where its segment starts.
        segment_bytes: Length of the segment.
        record_count: Records in it.
        end_phy_offset: Where the last of them ends.
        first_store_timestamp_ms: Store time of the first record, 0 without.
        last_store_timestamp_ms: Store time of the last record, 0 without.
        created_ms: When it was sealed.
        segment_crc32c: Of all bytes of the segment.
        blocks: ``(n,) SEAL_BLOCK.dtype``, one row a block.
    """

    first_phy_offset: int
    segment_bytes: int
    record_count: int
    end_phy_offset: int
    first_store_timestamp_ms: int
    last_store_timestamp_ms: int
    created_ms: int
    segment_crc32c: int
    blocks: Blocks

    def records_touching(self, first_block: int, end_block: int) -> int:
        """Returns how many records had bytes in blocks ``first_block`` to ``end_block - 1``."""
        begun = int(self.blocks["record_count"][first_block:end_block].sum())
        start = self.first_phy_offset + first_block * SEAL_BLOCK_BYTES
        # Records are side by side from the segment's start on, so a block that begins with none is run into.
        run_into = start < self.end_phy_offset and int(self.blocks["first_record_at"][first_block]) != 0
        return begun + run_into

    @property
    def used_blocks(self) -> int:
        """How many blocks hold records or the filler behind them; the bytes of others mean nothing."""
        used_bytes = self.end_phy_offset - self.first_phy_offset + FILLER_BYTES
        return min(len(self.blocks), -(-used_bytes // SEAL_BLOCK_BYTES))


def checksum(data: Buffer, crc: int = 0, *, keeps_gil: bool = False) -> int:
    """Returns the CRC-32C of ``data``, going on from ``crc``.

    Args:
        data: What to sum.
        crc: That of the bytes before.
        keeps_gil: Whether other threads of Python must wait: for short pieces beside a busy thread, which
            would give the interpreter back only after 5 ms each time.
    """
    from crc32c import crc32c

    return crc32c(data, crc, gil_release_mode=0 if keeps_gil else -1)


def block_count(segment_bytes: int) -> int:
    """Returns how many blocks a segment has."""
    return -(-segment_bytes // SEAL_BLOCK_BYTES)


def encode_seal(seal: Seal) -> bytes:
    """Returns the bytes of a seal file."""
    head = SEAL_HEAD.struct.pack(
        SEAL_MAGIC,
        SEAL_VERSION,
        seal.first_phy_offset,
        seal.segment_bytes,
        SEAL_BLOCK_BYTES,
        len(seal.blocks),
        seal.record_count,
        seal.end_phy_offset,
        seal.first_store_timestamp_ms,
        seal.last_store_timestamp_ms,
        seal.created_ms,
        seal.segment_crc32c,
    )
    data = head + seal.blocks.tobytes()
    return data + SEAL_END.struct.pack(checksum(data))


def decode_seal(data: bytes) -> Seal:
    """Returns the seal that a file holds.

    Raises:
        TruncatedError: The file is too short.
        CorruptError: It is no seal, one of another version, or not as it was written.
    """
    if len(data) < SEAL_HEAD.size_bytes + SEAL_END.size_bytes:
        least = SEAL_HEAD.size_bytes + SEAL_END.size_bytes
        raise TruncatedError("seal-short", expected=f"at least {least} bytes", found=len(data))
    head = SEAL_HEAD.struct.unpack_from(data)
    magic, version, first, segment_bytes, block_bytes, blocks = head[:6]
    if magic != SEAL_MAGIC:
        raise CorruptError("seal-magic", expected=f"{SEAL_MAGIC:#x}", found=f"{magic:#x}")
    end = len(data) - SEAL_END.size_bytes
    own, stored = checksum(memoryview(data)[:end]), SEAL_END.struct.unpack_from(data, end)[0]
    if own != stored:
        raise CorruptError("seal-crc", position_bytes=end, expected=f"{stored:#x}", found=f"{own:#x}")
    if version != SEAL_VERSION or block_bytes != SEAL_BLOCK_BYTES:
        expected = f"version {SEAL_VERSION} with blocks of {SEAL_BLOCK_BYTES}"
        raise CorruptError("seal-version", expected=expected, found=f"{version} with {block_bytes}")
    if blocks != block_count(segment_bytes) or end != SEAL_HEAD.size_bytes + blocks * SEAL_BLOCK.size_bytes:
        raise CorruptError("seal-lengths", expected=f"{block_count(segment_bytes)} blocks", found=blocks)
    rows = np.frombuffer(data, SEAL_BLOCK.dtype, blocks, SEAL_HEAD.size_bytes)
    records, records_end, first_ms, last_ms, created_ms, crc = head[6:]
    return Seal(first, segment_bytes, records, records_end, first_ms, last_ms, created_ms, crc, rows)
