"""Computes the seal of a segment, and reads segments block by block for comparison with their seals.

Only a segment that is full and whole is sealed: every record from its first byte to the filler at its end
proves itself. One that holds damage stays without seal, and is looked at record by record each time.

Reads go through ``pread``: the segments may belong to a running broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.directory.log_files import LogReader
from seglog.storage.files.files import Files, OpenFile
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.format.ours.seal import (
    SEAL_BLOCK,
    SEAL_BLOCK_BYTES,
    SEAL_NO_RECORD,
    Blocks,
    Seal,
    block_count,
    checksum,
)
from seglog.storage.format.record.record import Damage
from seglog.storage.kernels.block_sums import block_checksums
from seglog.storage.kernels.walk import QueueTable, Rows, Stop, walk
from seglog.storage.walk.segment_walk import ZERO

_CHUNK_BYTES: Final = 256 << 10
"""Bytes that stay in the cache of a core between the read and the sum: 6 GB/s, against 5 with 8 MiB."""
_WINDOW_BYTES: Final = 1 << 20

GoOn = Callable[[], bool]
"""Called between the pieces of a long operation, which ends at once if it returns False."""


def make_seal(
    files: Files, root: Path, first_phy_offset: int, segment_bytes: int, created_ms: int, go_on: GoOn
) -> Seal | Damage | None:
    """Reads a segment and returns its seal; writes nothing.

    Args:
        files: The file layer of the store.
        root: The store directory.
        first_phy_offset: Physical offset of the segment's first byte.
        segment_bytes: Its length.
        created_ms: The time now.
        go_on: Called between pieces of at most 1 MiB.

    Returns:
        The seal; the damage of a segment that is not full or not whole; None if ``go_on`` returned False.

    Raises:
        FileNotFoundError: The segment does not exist.
    """
    sums: list[int] = []
    whole = 0
    with closing(
        files.open(root / COMMIT_LOG / segment_file_name(first_phy_offset), writable=False)
    ) as handle:
        if handle.size_bytes != segment_bytes:
            return Damage("file-size", segment_bytes, handle.size_bytes)
        handle.sync()  # before the seal: after a power failure the disk must have the sealed bytes
        for chunk in iter_chunks(handle, 0, segment_bytes):
            if not go_on():
                return None
            sums += block_checksums(chunk)
            whole = checksum(chunk, whole)
    if len(sums) != block_count(segment_bytes):
        return Damage("file-size", segment_bytes, "a file that was cut meanwhile")
    tally = _Tally(first_phy_offset, segment_bytes)
    with closing(LogReader(files, root, segment_bytes)) as reader:
        damage = _walk(reader, tally, go_on)
    if damage is not None or not tally.is_complete:
        return damage
    tally.blocks["crc32c"] = sums
    return Seal(
        first_phy_offset,
        segment_bytes,
        tally.record_count,
        tally.end_phy_offset,
        tally.first_store_ms,
        tally.last_store_ms,
        created_ms,
        whole,
        tally.blocks,
    )


def iter_chunks(handle: OpenFile, start: int, end: int) -> Iterator[memoryview]:
    """Yields the bytes of a file from ``start``, a block's start, to ``end`` or to the end of the file.

    Each piece begins at a block's start, and is valid until the next iteration.
    """
    buffer = memoryview(bytearray(min(_CHUNK_BYTES, end - start)))
    for at in range(start, end, _CHUNK_BYTES):
        wanted = buffer[: end - at]
        count = handle.read_into(wanted, at)
        yield wanted[:count]
        if count < len(wanted):
            return


@dataclass(slots=True)
class _Tally:
    """The counts of a walk over a segment."""

    first_phy_offset: int
    segment_bytes: int
    end_phy_offset: int = 0
    record_count: int = 0
    first_store_ms: int = 0
    last_store_ms: int = 0
    is_complete: bool = False
    blocks: Blocks = field(init=False)

    def __post_init__(self) -> None:
        self.end_phy_offset = self.first_phy_offset
        self.blocks = np.zeros(block_count(self.segment_bytes), SEAL_BLOCK.dtype)
        self.blocks["first_record_at"] = SEAL_NO_RECORD

    def add(self, rows: Rows) -> None:
        if not len(rows):
            return
        if not self.record_count:
            self.first_store_ms = int(rows["store_timestamp_ms"][0])
        self.record_count += len(rows)
        self.last_store_ms = int(rows["store_timestamp_ms"][-1])
        starts: npt.NDArray[np.int64] = rows["phy_offset"] - self.first_phy_offset
        numbers = starts // SEAL_BLOCK_BYTES
        found, firsts, counts = np.unique(numbers, return_index=True, return_counts=True)
        self.blocks["record_count"][found] += counts.astype(np.int32)
        fresh = self.blocks["first_record_at"][found] == SEAL_NO_RECORD
        self.blocks["first_record_at"][found[fresh]] = starts[firsts[fresh]] % SEAL_BLOCK_BYTES


def _walk(reader: LogReader, tally: _Tally, go_on: GoOn) -> Damage | None:
    """Walks a whole segment; the tally is incomplete if the segment is damaged or ``go_on`` says stop."""
    queues = QueueTable()
    segment_end = tally.first_phy_offset + tally.segment_bytes
    need = _WINDOW_BYTES
    while go_on():
        at = tally.end_phy_offset
        asked = min(need, segment_end - at)
        window = reader.read(at, asked)
        result = walk(window, at, segment_end, queues)
        tally.add(result.rows)
        tally.end_phy_offset = at + result.position
        if result.stop in (Stop.END, Stop.BLANK):
            tally.is_complete = True
            return None
        if result.stop is not Stop.MORE or len(window) < asked:
            return result.damage or ZERO
        room = len(window) - result.position
        need = max(_WINDOW_BYTES, 2 * room)
    return None
