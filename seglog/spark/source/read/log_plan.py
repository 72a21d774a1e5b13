"""What of a log is to be read: splits that end where the log ends, and what is known to be lost.

A record after damage may be of an older life of the log, but only in a file after which no other begins
with a record (see :mod:`seglog.storage.walk.log_scan`). So one file at most has to be walked before the
splits can be cut, the last that begins with a record; in all others, all that proves itself is of the log.
Where there is damage in that one, the whole log is walked: all that comes before shows what is newer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from seglog.errors import InvalidArgumentError, NotFoundError
from seglog.storage.directory import (
    LogFile,
    LogReader,
    StoreGeometry,
    check_is_store,
    check_names,
    list_store,
)
from seglog.storage.files import Files, StoreRoot
from seglog.storage.format.record import Damage, examine
from seglog.storage.splits import DEFAULT_SPLIT_BYTES, MIN_SPLIT_BYTES
from seglog.storage.walk import MISSING, LogScan

_RECORD_BYTES: Final = 8 << 20
"""Longer than any record with the default limits."""


@dataclass(frozen=True, slots=True)
class LogSplit:
    """A range of one commit-log file; it owns the records whose first byte is in it.

    Attributes:
        start: Physical offset of its first byte.
        end: Physical offset after its last byte; no record goes beyond the end of the log.
        floor: A place at or before ``start`` where a record should begin: that of the file, or after damage
            that is known. A walk to the split's first record never has to begin before it.
        segment_end: Physical offset at which its file ends.
    """

    start: int
    end: int
    floor: int
    segment_end: int


@dataclass(frozen=True, slots=True)
class Loss:
    """A stretch of the log that holds no readable record.

    Attributes:
        phy_offset: Where it starts.
        end: Where records go on.
        why: A stable short word, as that of a finding's damage.
    """

    phy_offset: int
    end: int
    why: str
    expected: str = ""
    found: str = ""


@dataclass(frozen=True, slots=True)
class LogPlan:
    """The log of one store, to be read.

    Attributes:
        root: The store directory.
        geometry: Lengths of its files.
        splits: What there is to read, in log order.
        losses: What is known to be lost without reading the splits.
        end_phy_offset: Where the log ends.
    """

    root: Path
    geometry: StoreGeometry
    splits: tuple[LogSplit, ...]
    losses: tuple[Loss, ...]
    end_phy_offset: int

    def cut_again(self, split_bytes: int) -> LogPlan:
        """Returns the same with splits that are no longer than this."""
        pieces = (_pieces(split, split_bytes) for split in self.splits)
        return replace(self, splits=tuple(piece for found in pieces for piece in found))


def plan_log(
    root: Path, files: Files, *, split_bytes: int = DEFAULT_SPLIT_BYTES, verify: bool = True
) -> LogPlan:
    """Finds where a log ends, and cuts it into splits; reads one file of it, all of them after damage there.

    Args:
        root: The store directory.
        files: Where it is.
        split_bytes: Length of a split, at least 1024.
        verify: Whether to compute checksums.

    Raises:
        NotFoundError: There is nothing at ``root``.
        NotAStoreError: The path leads to something else.
        UnsupportedStoreError: The store is of another kind.
        InvalidArgumentError: ``split_bytes`` is too small.
        MisnamedFileError: A file of the log has the name of another one.
    """
    if split_bytes < MIN_SPLIT_BYTES:
        raise InvalidArgumentError(f"splits of {split_bytes} bytes are too short: at least {MIN_SPLIT_BYTES}")
    if not check_is_store(files, root):
        raise NotFoundError(f"there is no store at {root}")
    check_log_names(files, root)
    listing = list_store(files, root)
    segment = listing.geometry.segment_size_bytes
    end, holes = find_end(files, root, listing.log_files, segment, verify=verify)
    known = [file for file in listing.log_files if file.first_offset < end]
    extent = range(end)
    splits = tuple(split for file in known for split in cut_file(file, segment, extent, holes, split_bytes))
    return LogPlan(root, listing.geometry, splits, (*holes, *_missing(known, segment)), end)


def check_log_names(files: Files, root: Path) -> None:
    """Refuses a store whose log files have each other's names, of which tasks would find no record.

    At an address that is not looked for: it takes a request for each file.

    Raises:
        MisnamedFileError: There is one.
    """
    if isinstance(files, StoreRoot):
        check_names(files, root)


def find_end(
    files: Files, root: Path, log_files: list[LogFile], segment_size_bytes: int, *, verify: bool
) -> tuple[int, tuple[Loss, ...]]:
    """Returns where a log ends, and its holes as far as they decide that.

    Args:
        files: Where the store is.
        root: The store directory.
        log_files: The commit-log files in order.
        segment_size_bytes: Length that each should have.
        verify: Whether to compute checksums.
    """
    with closing(LogReader(files, root, segment_size_bytes)) as reader:
        begun = next((file for file in reversed(log_files) if _begins(reader, file)), None)
        last = log_files if begun is None else log_files[log_files.index(begun) :]
        scan = _scanned(reader, last, segment_size_bytes, verify=verify)
        if scan.holes and len(last) < len(log_files):
            scan = _scanned(reader, log_files, segment_size_bytes, verify=verify)
    first = last[0].first_offset if last else 0
    return scan.end_phy_offset, tuple(
        Loss(hole.phy_offset, hole.end, hole.why, hole.expected, hole.found)
        for hole in scan.holes
        if hole.end > first and hole.why != MISSING.kind
    )


def _begins(reader: LogReader, file: LogFile) -> bool:
    window = reader.read(file.first_offset, _RECORD_BYTES)
    return not isinstance(examine(window, 0, file.first_offset), Damage)


def _scanned(
    reader: LogReader, log_files: list[LogFile], segment_size_bytes: int, *, verify: bool
) -> LogScan:
    with closing(LogScan(reader, log_files, segment_size_bytes, verify=verify)) as scan:
        for _rows in scan.iter_rows():
            pass  # only where it ends is asked
    return scan


def _missing(log_files: Iterable[LogFile], segment_size_bytes: int) -> Iterator[Loss]:
    for one, other in pairwise(log_files):
        start = one.first_offset + segment_size_bytes
        if start < other.first_offset:
            yield Loss(start, other.first_offset, MISSING.kind, str(MISSING.expected), str(MISSING.found))


def cut_file(
    file: LogFile, segment_size_bytes: int, extent: range, holes: Iterable[Loss], split_bytes: int
) -> Iterator[LogSplit]:
    """Yields the splits of one file, without the holes.

    Args:
        file: The file.
        segment_size_bytes: Length that it should have.
        extent: What is wanted of the log, from the place of a record on.
        holes: Stretches of the log that are left out.
        split_bytes: Length of a split.
    """
    segment_end = file.first_offset + segment_size_bytes
    floor, end = max(extent.start, file.first_offset), min(segment_end, extent.stop)
    for hole in holes:
        if floor <= hole.phy_offset < end:
            whole = LogSplit(floor, hole.phy_offset, floor, segment_end)
            yield from _pieces(whole, split_bytes)
        if floor < hole.end and hole.phy_offset < end:
            floor = hole.end
    yield from _pieces(LogSplit(floor, end, floor, segment_end), split_bytes)


def _pieces(whole: LogSplit, split_bytes: int) -> Iterator[LogSplit]:
    for start in range(whole.start, whole.end, split_bytes):
        yield replace(whole, start=start, end=min(start + split_bytes, whole.end))
