"""The splits of a log to read, which end where the log ends, and the losses that are known.

A record after damage may belong to an older life of the log, but only after the last record of the present
life: new records have overwritten everything before it. So the end of the log determines the splits, and
tasks may accept all valid records in them. The end is found without a walk if the queues fit the log
(:mod:`seglog.spark.source.read.log_end`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from seglog.errors import InvalidArgumentError
from seglog.spark.source.read.log_end import find_log_end
from seglog.spark.source.read.losses import Loss
from seglog.spark.source.read.queue_units import look_at_store
from seglog.spark.source.read.store_times import files_of_times
from seglog.spark.source.wanted.selection import ALL, Span
from seglog.storage.directory import (
    LogFile,
    LogReader,
    StoreGeometry,
    check_names,
    demand_store,
)
from seglog.storage.files import Files, StoreRoot
from seglog.storage.splits import DEFAULT_SPLIT_BYTES, MIN_SPLIT_BYTES
from seglog.storage.walk import MISSING


@dataclass(frozen=True, slots=True)
class LogSplit:
    """A range of one commit-log file; it owns the records whose first byte is in it.

    Attributes:
        start: Physical offset of its first byte.
        end: Physical offset after its last byte; no record extends past the end of the log.
        floor: A place at or before ``start`` where a record should begin: the start of the file, or the end
            of known damage. A walk to the split's first record never has to begin before it.
        segment_end: Physical offset at which its file ends.
    """

    start: int
    end: int
    floor: int
    segment_end: int


@dataclass(frozen=True, slots=True)
class LogPlan:
    """The parts of a store's log to read.

    Attributes:
        root: The store directory.
        geometry: Lengths of its files.
        splits: The splits to read, in log order.
        losses: Losses that are known without reading the splits.
        end_phy_offset: End of the log.
    """

    root: Path
    geometry: StoreGeometry
    splits: tuple[LogSplit, ...]
    losses: tuple[Loss, ...]
    end_phy_offset: int

    def cut_again(self, split_bytes: int) -> LogPlan:
        """Returns the plan with splits that are no longer than a length."""
        pieces = (_pieces(split, split_bytes) for split in self.splits)
        return replace(self, splits=tuple(piece for found in pieces for piece in found))


def plan_log(
    root: Path,
    files: Files,
    *,
    split_bytes: int = DEFAULT_SPLIT_BYTES,
    verify: bool = True,
    times_ms: Span = ALL,
) -> LogPlan:
    """Finds the end of a log, and divides the log into splits.

    Args:
        root: The store directory.
        files: Access to the store.
        split_bytes: Length of a split, at least 1024.
        verify: Whether to compute checksums.
        times_ms: Store times to read: files without any of them are left out.

    Raises:
        NotFoundError: There is nothing at ``root``.
        NotAStoreError: ``root`` is not a store.
        UnsupportedStoreError: A store of another kind.
        InvalidArgumentError: ``split_bytes`` is too small.
        MisnamedFileError: A file of the log has the name of another file.
    """
    if split_bytes < MIN_SPLIT_BYTES:
        raise InvalidArgumentError(f"splits of {split_bytes} bytes are too short: at least {MIN_SPLIT_BYTES}")
    demand_store(files, root)
    check_log_names(files, root)
    listing, queues = look_at_store(files, root)
    segment = listing.geometry.segment_size_bytes
    end = find_log_end(files, root, listing, queues, verify=verify)
    known = [file for file in listing.log_files if file.first_offset < end.phy_offset]
    extent = range(end.phy_offset)
    with closing(LogReader(files, root, segment)) as reader:
        wanted = files_of_times(reader, known, times_ms)
    splits = tuple(
        split for file in wanted for split in cut_file(file, segment, extent, end.holes, split_bytes)
    )
    losses = (*end.holes, *missing_files(known, segment), *end.lost)
    return LogPlan(root, listing.geometry, splits, losses, end.phy_offset)


def check_log_names(files: Files, root: Path) -> None:
    """Refuses a store whose log files have each other's names, because tasks would find no record.

    At an address this is not checked, because it takes a request for each file.

    Raises:
        MisnamedFileError: There is such a file.
    """
    if isinstance(files, StoreRoot):
        check_names(files, root)


def missing_files(log_files: Iterable[LogFile], segment_size_bytes: int) -> Iterator[Loss]:
    """Yields the files that are missing between others."""
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
        extent: The range of the log to read, which begins at the place of a record.
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
