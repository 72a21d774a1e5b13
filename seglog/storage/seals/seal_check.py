"""Compares segments with their seals, and decides the meaning of a difference.

A block that differs from its seal is damaged, unless RocketMQ wrote it: after a crash RocketMQ may cut the
log in the middle of a sealed segment and continue there. Its records show that it did: they were stored after
the seal was written, have no gaps, the log continues behind them with records as new, and every block that
differs holds bytes of them. Then the seal is stale. It is not enough that the records of a block prove
themselves: without ``__CRC32#`` their checksums do not cover properties and times, and a third of all flipped
    bits would pass as new
records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.directory.log_files import LogFile, LogReader
from seglog.storage.files.files import Files, OpenFile
from seglog.storage.findings.findings import Finding
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.format.ours.seal import SEAL_BLOCK_BYTES, Seal
from seglog.storage.format.record import properties as props
from seglog.storage.kernels.block_sums import block_checksums
from seglog.storage.kernels.walk import ROW, Rows
from seglog.storage.seals.seal import iter_chunks
from seglog.storage.walk.log_scan import LogScan

_THREADS: Final = 2
"""Two cores read and sum 10 GB/s from the page cache, one core 6; no disk here is faster."""
_JOB_BLOCKS: Final = 512
_UNREADABLE: Final = -1


@dataclass(frozen=True, slots=True)
class Concerned:
    """A message in a damaged block that may be damaged itself.

    Attributes:
        file: The segment, relative to the store.
        position_bytes: Position of the record in it.
        is_readable: Whether its body's checksum is right; properties and times may be damaged nevertheless.
    """

    file: str
    position_bytes: int
    size_bytes: int
    topic: str
    queue_id: int
    queue_offset: int
    is_readable: bool


@dataclass(frozen=True, slots=True, eq=False)
class BlockCheck:
    """The comparison of a segment with its seal.

    Attributes:
        found: ``(n,) i8``, the CRC-32C of each block; -1 if it cannot be read.
    """

    seal: Seal
    found: npt.NDArray[np.int64]

    @property
    def wrong(self) -> npt.NDArray[np.bool_]:
        """Which blocks differ from the seal; ``(n,)``."""
        differs: npt.NDArray[np.bool_] = self.found != self.seal.blocks["crc32c"]
        return differs


@dataclass(frozen=True, slots=True)
class Verdict:
    """The meaning of the blocks that differ."""

    is_stale: bool
    findings: tuple[Finding, ...]
    concerned: tuple[Concerned, ...] = ()


def segment_path(first_phy_offset: int) -> str:
    """Returns the file of a segment relative to the store."""
    return f"{COMMIT_LOG}/{segment_file_name(first_phy_offset)}"


def check_blocks(
    files: Files, root: Path, seals: Sequence[Seal], on_bytes: Callable[[int], None]
) -> list[BlockCheck]:
    """Computes the checksums of all blocks of sealed segments.

    Args:
        files: Where the store is.
        root: The store directory.
        seals: The segments.
        on_bytes: Called with the number of further bytes read.
    """

    def run(job: tuple[Seal, int]) -> list[int]:
        return _sum_blocks(files, root, *job)

    jobs = [(seal, first) for seal in seals for first in range(0, len(seal.blocks), _JOB_BLOCKS)]
    sums: dict[int, list[int]] = {seal.first_phy_offset: [] for seal in seals}
    with ThreadPoolExecutor(_THREADS, "seglog-verify") as pool:
        for (seal, _first), found in zip(jobs, pool.map(run, jobs), strict=True):
            sums[seal.first_phy_offset] += found
            on_bytes(len(found) * SEAL_BLOCK_BYTES)
    return [BlockCheck(seal, np.array(sums[seal.first_phy_offset], np.int64)) for seal in seals]


def _sum_blocks(files: Files, root: Path, seal: Seal, first_block: int) -> list[int]:
    count = min(_JOB_BLOCKS, len(seal.blocks) - first_block)
    try:
        handle = files.open(root / segment_path(seal.first_phy_offset), writable=False)
    except FileNotFoundError:  # removed by its owner since it was listed
        return [_UNREADABLE] * count
    try:
        found = _sum_range(handle, seal, first_block, count)
    except OSError:
        # A bad sector: the blocks are read one by one, so that only the block around it counts as unreadable.
        found = []
        for block in range(first_block, first_block + count):
            with suppress(OSError):
                found += _sum_range(handle, seal, block, 1)
            found += [_UNREADABLE] * (block - first_block + 1 - len(found))
    finally:
        handle.close()
    return found + [_UNREADABLE] * (count - len(found))


def _sum_range(handle: OpenFile, seal: Seal, first_block: int, count: int) -> list[int]:
    start = first_block * SEAL_BLOCK_BYTES
    end = min(start + count * SEAL_BLOCK_BYTES, seal.segment_bytes)
    return [crc for chunk in iter_chunks(handle, start, end) for crc in block_checksums(chunk)]


def judge(files: Files, root: Path, check: BlockCheck, next_store_ms: int | None) -> Verdict:
    """Decides between damage and a stale seal for a segment with blocks that differ.

    Args:
        files: Where the store is.
        root: The store directory.
        check: The segment.
        next_store_ms: Store time of the first record of the next segment; None without one.
    """
    seal = check.seal
    readable = _Records.read(files, root, seal, verify=True)
    if _is_written_anew(check, readable.rows, next_store_ms):
        finding = Finding("seal-stale", segment_path(seal.first_phy_offset), messages=len(readable.rows))
        return Verdict(is_stale=True, findings=(finding,))
    legible = _Records.read(files, root, seal, verify=False)
    findings: list[Finding] = []
    concerned: dict[Concerned, None] = {}
    for first, end in _runs(check.wrong):
        there = readable.rows[_touching(readable.rows, seal, first, end)]
        whole = there["phy_offset"][_have_record_crc(files, root, seal, there)]
        findings.append(_rot(check, first, end, len(whole), readable))
        rows = legible.rows[_touching(legible.rows, seal, first, end)]
        rows = rows[~np.isin(rows["phy_offset"], whole)]
        concerned |= dict.fromkeys(_concerned(rows, legible.names, readable.rows["phy_offset"], seal))
    return Verdict(is_stale=False, findings=tuple(findings), concerned=tuple(concerned))


@dataclass(frozen=True, slots=True, eq=False)
class _Records:
    """The records of one segment that can be identified, the queues that they name, and their ends."""

    rows: Rows
    names: list[tuple[str, int]]
    end_phy_offset: int

    @classmethod
    def read(cls, files: Files, root: Path, seal: Seal, *, verify: bool) -> _Records:
        reader = LogReader(files, root, seal.segment_bytes)
        file = LogFile(seal.first_phy_offset, seal.segment_bytes)
        scan = LogScan(reader, [file], seal.segment_bytes, verify=verify)
        try:
            return cls(scan.run(), scan.queues.names, scan.end_phy_offset)
        except OSError:
            return cls(np.empty(0, ROW), [], seal.first_phy_offset)
        finally:
            scan.close()


def _have_record_crc(files: Files, root: Path, seal: Seal, rows: Rows) -> npt.NDArray[np.bool_]:
    """Returns which records carry ``__CRC32#``, which covers every byte of a record."""
    tails = (rows["phy_offset"] + rows["size_bytes"] - props.CRC_PROPERTY_BYTES).tolist()
    with closing(LogReader(files, root, seal.segment_bytes)) as reader:
        ends = [bytes(reader.read(at, len(props.CRC_NAME))) == props.CRC_NAME for at in tails]
    return np.array(ends, np.bool_)


def _is_written_anew(check: BlockCheck, rows: Rows, next_store_ms: int | None) -> bool:
    """Returns whether records that were stored after the sealing explain every block that differs."""
    seal = check.seal
    newer = np.flatnonzero(rows["store_timestamp_ms"] >= seal.created_ms)
    if not len(newer) or newer[-1] - newer[0] + 1 != len(newer):
        return False
    last = rows[newer[-1]]
    if next_store_ms is not None and next_store_ms < int(last["store_timestamp_ms"]):
        return False
    start = int(rows["phy_offset"][newer[0]]) - seal.first_phy_offset
    end = int(last["phy_offset"]) + int(last["size_bytes"]) - seal.first_phy_offset
    if newer[-1] == len(rows) - 1:
        end = seal.segment_bytes  # the filler, and what the next record would have overwritten
    blocks = np.flatnonzero(check.wrong)
    return bool(start < (blocks[0] + 1) * SEAL_BLOCK_BYTES and blocks[-1] * SEAL_BLOCK_BYTES < end)


def _runs(mask: npt.NDArray[np.bool_]) -> Iterable[tuple[int, int]]:
    """Returns start and end of each run of true values."""
    edges = np.flatnonzero(np.diff(mask, prepend=False, append=False))
    return zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _touching(rows: Rows, seal: Seal, first_block: int, end_block: int) -> npt.NDArray[np.bool_]:
    start = seal.first_phy_offset + first_block * SEAL_BLOCK_BYTES
    end = seal.first_phy_offset + end_block * SEAL_BLOCK_BYTES
    touching: npt.NDArray[np.bool_] = (rows["phy_offset"] < end) & (
        rows["phy_offset"] + rows["size_bytes"] > start
    )
    return touching


def _rot(check: BlockCheck, first: int, end: int, whole: int, readable: _Records) -> Finding:
    seal = check.seal
    file, position = segment_path(seal.first_phy_offset), first * SEAL_BLOCK_BYTES
    size = min(end * SEAL_BLOCK_BYTES, seal.segment_bytes) - position
    touched = seal.records_touching(first, end)
    has_end = readable.end_phy_offset == seal.first_phy_offset + seal.segment_bytes
    if first >= seal.used_blocks or (whole >= touched and has_end):
        return Finding("seal-rot-unused", file, position, size)
    crc = int(check.found[first])
    found = "a read error" if crc == _UNREADABLE else f"crc32c {crc:#010x}"
    return Finding(
        "seal-rot",
        file,
        position,
        size,
        f"block {first} crc32c {int(seal.blocks['crc32c'][first]):#010x}",
        f"{found}; {whole} of {touched} records there are whole for certain",
        max(0, touched - whole),
    )


def _concerned(
    rows: Rows, names: list[tuple[str, int]], readable: npt.NDArray[np.int64], seal: Seal
) -> list[Concerned]:
    is_readable = np.isin(rows["phy_offset"], readable)
    return [
        Concerned(
            segment_path(seal.first_phy_offset),
            int(row["phy_offset"]) - seal.first_phy_offset,
            int(row["size_bytes"]),
            *names[int(row["queue"])],
            int(row["queue_offset"]),
            bool(good),
        )
        for row, good in zip(rows, is_readable, strict=True)
    ]
