"""Verifies the log of a store: sealed segments by the checksums of their blocks, others by their records.

Nothing is written unless seals are asked for. Index and tables are not looked at: they are made from the log,
and ``check`` holds them against it. Queues are asked only whether they know of records where the log's files
hold none: zeros behind the last record are no damage by themselves.

A record without ``__CRC32#`` has a checksum of its body alone: nothing tells a flipped bit in its head or its
properties until its segment is sealed. Such records are counted, so that the report can say so.
"""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.clock import Clock, SystemClock
from seglog.errors import CorruptError, NotFoundError
from seglog.storage.directory.directory_listing import check_is_store, list_store
from seglog.storage.directory.geometry import NOTHING_KNOWN, FileSizes
from seglog.storage.directory.lengths import last_records
from seglog.storage.directory.log_files import LogFile, LogReader
from seglog.storage.directory.log_gone import demand_log
from seglog.storage.directory.misnamed import as_stated
from seglog.storage.directory.queue_files import QueueFiles
from seglog.storage.directory.reading_root import ReadingRoot
from seglog.storage.files import Files, StoreRoot
from seglog.storage.findings import Finding, Severity
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.ours.seal import Seal
from seglog.storage.format.record.properties import CRC_NAME, CRC_PROPERTY_BYTES
from seglog.storage.format.record.record import FILLER, FILLER_BYTES, Damage, examine
from seglog.storage.kernels.walk import Rows
from seglog.storage.scan.file_findings import log_findings
from seglog.storage.seals.seal import make_seal
from seglog.storage.seals.seal_check import BlockCheck, Concerned, check_blocks, judge, segment_path
from seglog.storage.seals.seal_files import list_seals, read_seal, remove_seal, seal_file, write_seal
from seglog.storage.walk import Hole, LogScan, Progress
from seglog.storage.walk.segment_walk import ZERO

_WINDOW_BYTES: Final = 4 << 20
_CRC_NAME: Final = np.frombuffer(CRC_NAME, np.uint8)


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What a verification found.

    Attributes:
        segment_size_bytes: Length of every segment.
        by_seal: First offsets of the segments that were held against their seals.
        by_records: First offsets of those that were walked record by record.
        sealed: First offsets of those that were sealed by this run.
        records: Records in the segments that are as they should be, or could be read.
        bare_records: Those of them whose head and properties no checksum covered in this run.
        read_bytes: How much of the log was looked at.
        findings: Everything that is not as it should be.
        concerned: Messages in damaged places of sealed segments that can still be told.
        elapsed_ms: How long it took.
    """

    segment_size_bytes: int
    by_seal: tuple[int, ...]
    by_records: tuple[int, ...]
    sealed: tuple[int, ...]
    records: int
    bare_records: int
    read_bytes: int
    findings: tuple[Finding, ...]
    concerned: tuple[Concerned, ...]
    elapsed_ms: float

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing to find but notes."""
        return all(finding.severity is Severity.NOTE for finding in self.findings)


def verify_store(
    path: str | os.PathLike[str],
    files: Files | None = None,
    progress: Progress | None = None,
    *,
    seal: bool = False,
    clock: Clock | None = None,
    given: FileSizes = NOTHING_KNOWN,
) -> VerifyReport:
    """Verifies a store, also one that is open for writing here or by a broker.

    Args:
        path: The store directory.
        files: Where it is.
        progress: Told bytes read and bytes in all.
        seal: Whether to seal full segments that have no seal, or one that is stale or unreadable. Damaged
            segments are never sealed.
        clock: The time that goes into seals.
        given: Lengths of files that the caller knows.

    Raises:
        NotFoundError: There is nothing at ``path``.
        LogMissingError: There is no log, but other files know of one.
        NotAStoreError: Something else is there.
        UnsupportedStoreError: A store of another kind.
        InvalidArgumentError: Its files prove another length than is given.
        FullError: No space for a seal.
    """
    root = Path(path).absolute()
    files = files or (StoreRoot(root) if seal else ReadingRoot(root))
    if not check_is_store(files, root):
        raise NotFoundError(f"there is no store at {root}")
    demand_log(files, root)
    placed = as_stated(files, root)
    report = _Verification(placed, root, clock or SystemClock(), progress, given).run(seal=seal)
    if isinstance(files, ReadingRoot):
        return replace(report, findings=(*report.findings, *files.findings))
    return report


class _Verification:
    """One run over a store, and what it has found so far."""

    def __init__(
        self, files: Files, root: Path, clock: Clock, progress: Progress | None, given: FileSizes
    ) -> None:
        self._files = files
        self._root = root
        self._clock = clock
        self._progress = progress
        listing = list_store(files, root, given)
        self._geometry = listing.geometry
        self._segment = listing.geometry.segment_size_bytes
        self._log_files, self._findings = listing.log_files, listing.findings
        self._total_bytes = sum(file.size_bytes for file in self._log_files)
        self._read_bytes = 0
        self._reader = LogReader(files, root, self._segment)
        self._concerned: list[Concerned] = []
        self._records = 0
        self._bare_records = 0
        self._newest_ms = 0
        self._queues = [*listing.queue_files.values(), *listing.batch_files.values()]
        self._end = 0

    def run(self, *, seal: bool) -> VerifyReport:
        begun_ms = self._clock.monotonic_ms()
        # Before the walk: what a writer does meanwhile makes the log longer than its queues were.
        known = [(queue, last_records(self._files, queue)) for queue in self._queues]
        try:
            seals = self._read_seals()
            listed = {file.first_offset for file in self._log_files}
            held = [known for first, known in seals.items() if first in listed]
            absent = [known for first, known in seals.items() if first not in listed]
            checks = check_blocks(self._files, self._root, held, self._count)
            # What its owner removed meanwhile, as retention does, is no loss.
            gone = {check.seal.first_phy_offset for check in checks if self._is_gone(check)}
            stale = {check.seal.first_phy_offset for check in checks if self._is_stale(check, gone)}
            by_seal = [known.first_phy_offset for known in held if known.first_phy_offset not in stale | gone]
            left = [file for file in self._log_files if file.first_offset not in gone.union(by_seal)]
            sealed = self._seal(left, stale) if seal else []
            left = [file for file in left if file.first_offset not in set(sealed)]
            self._walk(left)
            cut = self._find_lost(absent)
            for first in cut if seal else ():
                remove_seal(self._files, self._root, first)
            self._find_unsealed(left)
            last = self._log_files[-1].first_offset if self._log_files else 0
            if not any(file.first_offset == last for file in left):
                self._end = last + self._segment  # its seal covers all of it
            self._find_known(known, last + self._segment)
        finally:
            self._reader.close()
        return VerifyReport(
            self._segment,
            tuple(by_seal),
            tuple(file.first_offset for file in left),
            tuple(sealed),
            self._records,
            self._bare_records,
            self._read_bytes,
            tuple(self._findings),
            tuple(self._concerned),
            self._clock.monotonic_ms() - begun_ms,
        )

    def _count(self, more_bytes: int) -> None:
        self._read_bytes += more_bytes
        if self._progress is not None:
            self._progress(self._read_bytes, self._total_bytes)

    def _read_seals(self) -> dict[int, Seal]:
        seals: dict[int, Seal] = {}
        for first in list_seals(self._files, self._root):
            try:
                seal = read_seal(self._files, self._root, first)
                if seal.segment_bytes != self._segment:
                    raise CorruptError("seal-lengths", expected=self._segment, found=seal.segment_bytes)
                seals[first] = seal
            except CorruptError as error:
                detail = (f"{error.kind} {error.expected}", str(error.found))
                self._findings.append(
                    Finding("seal-unreadable", seal_file(first), error.position_bytes, 0, *detail)
                )
        return seals

    def _is_gone(self, check: BlockCheck) -> bool:
        return not self._files.exists(self._root / segment_path(check.seal.first_phy_offset))

    def _is_stale(self, check: BlockCheck, gone: set[int]) -> bool:
        """Takes note of how a sealed segment is; returns whether its seal says nothing about it any more."""
        seal = check.seal
        if seal.first_phy_offset in gone:
            return False
        self._newest_ms = max(self._newest_ms, seal.last_store_timestamp_ms)
        if not check.wrong.any():
            self._records += seal.record_count
            return False
        following_ms = self._first_store_ms(seal.first_phy_offset + self._segment)
        verdict = judge(self._files, self._root, check, following_ms)
        self._findings += verdict.findings
        self._concerned += verdict.concerned
        return verdict.is_stale

    def _first_store_ms(self, first_phy_offset: int) -> int | None:
        """Returns the store time of the first record of a segment, None if it has none."""
        head = self._reader.read(first_phy_offset, FILLER_BYTES)
        size = FILLER.struct.unpack(head)[0] if len(head) == FILLER_BYTES else 0
        record = self._reader.read(first_phy_offset, max(0, size))
        row = examine(record, 0, first_phy_offset)
        return None if isinstance(row, Damage) else row.store_timestamp_ms

    def _is_rolled_past(self, first_phy_offset: int) -> bool:
        # A file of zeros may follow the last segment: RocketMQ prepares one ahead.
        return self._first_store_ms(first_phy_offset + self._segment) is not None

    def _find_unsealed(self, walked: list[LogFile]) -> None:
        sealed = set(list_seals(self._files, self._root))
        for file in walked:
            if file.first_offset not in sealed and self._is_rolled_past(file.first_offset):
                self._findings.append(Finding("seal-missing", segment_path(file.first_offset)))

    def _seal(self, log_files: list[LogFile], stale: set[int]) -> list[int]:
        sealed: list[int] = []
        for file in log_files:
            first = file.first_offset
            if not self._is_rolled_past(first):
                if first in stale:
                    remove_seal(self._files, self._root, first)
                continue
            now_ms = self._clock.now_ms()
            made = make_seal(self._files, self._root, first, self._segment, now_ms, lambda: True)
            if isinstance(made, Seal):
                write_seal(self._files, self._root, made)
                sealed.append(first)
                self._records += made.record_count
                self._count_bare_of(file)
                self._count(self._segment)
        return sealed

    def _walk(self, log_files: list[LogFile]) -> None:
        """Walks segments record by record, each run of adjacent ones in one go."""
        firsts = np.array([file.first_offset for file in log_files], np.int64)
        breaks = np.flatnonzero(np.diff(firsts) != self._segment) + 1
        for numbers in np.split(np.arange(len(firsts)), breaks):
            if len(numbers):
                self._walk_run([log_files[number] for number in numbers.tolist()])

    def _walk_run(self, run: list[LogFile]) -> None:
        begun_bytes = self._read_bytes
        with closing(LogScan(LogReader(self._files, self._root, self._segment), run, self._segment)) as scan:
            # Window by window: the rows of a whole store might not fit into the memory.
            for rows in scan.iter_rows(
                lambda done, _total: self._count(begun_bytes + done - self._read_bytes)
            ):
                self._records += len(rows)
                self._count_bare(rows)
                self._newest_ms = max(self._newest_ms, int(rows["store_timestamp_ms"].max(initial=0)))
        holes, tail, end = list(scan.holes), scan.tail, scan.end_phy_offset
        self._end = end
        run_end = run[-1].first_offset + self._segment
        if end < run_end and run[-1] != self._log_files[-1]:
            # Nothing later in this run is a record, but the log goes on in the next segment.
            why = tail or ZERO
            holes.append(Hole(end, run_end - end, why.kind, str(why.expected), str(why.found)))
            tail, end = None, run_end
        self._findings += log_findings(run, self._geometry, holes, tail, end)

    def _count_bare_of(self, file: LogFile) -> None:
        with closing(
            LogScan(LogReader(self._files, self._root, self._segment), [file], self._segment, verify=False)
        ) as scan:
            for rows in scan.iter_rows():
                self._count_bare(rows)

    def _count_bare(self, rows: Rows) -> None:
        """Counts the records that do not end with ``__CRC32#``, which covers all before it."""
        starts = rows["phy_offset"].astype(np.int64) + rows["size_bytes"] - CRC_PROPERTY_BYTES
        # Windows of one segment each: a read does not go beyond its file.
        windows = starts // self._segment * self._segment + starts % self._segment // _WINDOW_BYTES
        for window in np.unique(windows).tolist():
            here = starts[windows == window]
            first, size = int(here[0]), int(here[-1] - here[0]) + len(CRC_NAME)
            data = np.frombuffer(self._reader.read(first, size), np.uint8)
            places = here - first
            places = places[places + len(CRC_NAME) <= len(data)]
            has_crc = (data[places[:, None] + np.arange(len(CRC_NAME))] == _CRC_NAME).all(axis=1)
            self._bare_records += len(here) - int(has_crc.sum())

    def _find_lost(self, absent: list[Seal]) -> list[int]:
        """Takes note of segments whose files are gone; returns those that were cut off by their owner."""
        for file, following in zip(self._log_files, self._log_files[1:], strict=False):
            end = file.first_offset + self._segment
            if following.first_offset > end:
                lost = [
                    seal.record_count
                    for seal in absent
                    if end <= seal.first_phy_offset < following.first_offset
                ]
                self._lose("log-file-missing", end, following.first_offset - end, sum(lost))
        last = self._log_files[-1].first_offset if self._log_files else -1
        cut: list[int] = []
        for seal in absent:
            # Seals in front of the log are those of segments that retention took.
            if seal.first_phy_offset < last:
                continue
            # Newer records in front of it: the log was cut before it and went on.
            if self._newest_ms >= seal.created_ms:
                cut.append(seal.first_phy_offset)
            code = "seal-stale" if cut[-1:] == [seal.first_phy_offset] else "log-file-missing"
            self._lose(code, seal.first_phy_offset, seal.segment_bytes, seal.record_count)
        return cut

    def _find_known(self, known: list[tuple[QueueFiles, npt.NDArray[np.int64]]], files_end: int) -> None:
        """Takes note of queues that know of records in files of the log where there is none."""
        found: list[Finding] = []
        witnesses = 0
        for queue, records in known:
            behind = records[(records[:, 0] >= self._end) & (records[:, 1] <= files_end)]
            if len(behind):
                witnesses += len(behind)
                file = f"{queue.name}/{segment_file_name(max(queue.sizes))}"
                expected = f"records up to {self._end}"
                found.append(Finding("queue-beyond-log", file, 0, 0, expected, f"up to {behind.max()}"))
        if witnesses > 1:  # one unit alone may be damaged
            self._findings += found

    def _lose(self, code: str, phy_offset: int, size: int, messages: int) -> None:
        self._findings.append(Finding(code, segment_path(phy_offset), 0, size, messages=messages))
