"""Verifies the log of a store: sealed segments by the checksums of their blocks, others by their records.

This is one cheap walk that answers one question: does anything in the log differ from what was written? Of
the queues only the last units are read, to see whether one leads to the end of the log or past it: zeros
after the last record are no damage by themselves. Index and tables are not read. If anything differs from
what was written, a whole check (:mod:`seglog.doctor.check.check`) states what that means. Nothing is written
unless the caller requests seals.

A record without ``__CRC32#`` has a checksum of its body alone: a flipped bit in its head or its properties is
not detected until its segment is sealed. Such records are counted for the report.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from typing_extensions import override

from seglog.clock import Clock, SystemClock
from seglog.doctor.check.check import check_store
from seglog.doctor.check.check_report import CheckReport
from seglog.doctor.check.seal_findings import first_store_ms, load_seals
from seglog.doctor.check.trailing_bytes import behind_end_findings
from seglog.storage.directory import (
    NOTHING_KNOWN,
    FileSizes,
    LogFile,
    LogPaths,
    LogReader,
    LogRoot,
    QueueFiles,
    ReadingRoot,
    as_stated,
    demand_log,
    demand_store,
    last_units,
    list_store,
)
from seglog.storage.files import Files
from seglog.storage.findings import LOG_CODES, Finding, Severity
from seglog.storage.format.names import COMMIT_LOG
from seglog.storage.format.ours import Seal
from seglog.storage.format.queue import BATCH_UNIT, batch_in_use, in_use
from seglog.storage.format.record import properties
from seglog.storage.kernels.walk import Rows
from seglog.storage.scan import log_findings, refusals
from seglog.storage.seals import (
    BlockCheck,
    Concerned,
    check_blocks,
    judge,
    list_seals,
    make_seal,
    remove_seal,
    segment_path,
    write_seal,
)
from seglog.storage.walk import LogScan, Progress

_WINDOW_BYTES: Final = 4 << 20
_CRC_NAME: Final = np.frombuffer(properties.CRC_NAME, np.uint8)
_OF_SOUND: Final = frozenset({"log-spare", "seal-missing"})
"""Findings that occur in logs that are as they were written."""
_OF_LOG: Final = frozenset({"queue-beyond-log", *LOG_CODES})
_OF_FILES: Final = frozenset({"file-kind", "file-unreadable"})
"""Findings that concern the log only if the file is one of the log."""


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The result of a verification.

    Attributes:
        segment_size_bytes: Length of every segment.
        by_seal: First offsets of the segments that were compared with their seals.
        by_records: First offsets of the segments that were walked record by record.
        sealed: First offsets of the segments that this run sealed.
        records: Number of records in the segments that are undamaged, or could be read.
        bare_records: Number of them whose head and properties no checksum covered in this run.
        read_bytes: Bytes of the log that were read.
        findings: Everything that is wrong.
        concerned: Messages in damaged places of sealed segments that can still be identified.
        elapsed_ms: Duration of the verification.
        checked: The check of the whole store, which says what is lost; None if nothing differs that this run
            looked at.
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
    checked: CheckReport | None = None

    @override
    def __repr__(self) -> str:
        return f"<VerifyReport of {self.records} records: {len(self.findings)} findings>"

    @property
    def is_clean(self) -> bool:
        """Whether there are no findings but notes."""
        return all(finding.severity is Severity.NOTE for finding in self.findings)


def verify_store(
    path: str | os.PathLike[str],
    files: Files | None = None,
    progress: Progress | None = None,
    *,
    seal: bool = False,
    clock: Clock | None = None,
    given: FileSizes = NOTHING_KNOWN,
    follow: Sequence[str] = (),
    log: LogPaths | None = None,
) -> VerifyReport:
    """Verifies a store, also one that is open for writing in this process or by a broker.

    Args:
        path: The store directory.
        files: Access to the files.
        progress: Called with bytes read and bytes in all; begins again at 0 if a check follows.
        seal: Whether to seal full segments that have no seal, or one that is stale or unreadable. Damaged
            segments are never sealed.
        clock: The time that is written into seals.
        given: Lengths of files that the caller knows.
        follow: Folders directly in the store that may be links to folders elsewhere.
        log: The folders of the log that a configuration states; None to take ``broker.conf`` in the store.

    Raises:
        NotFoundError: There is nothing at ``path``.
        LogMissingError: There is no log, but other files refer to one.
        NotAStoreError: ``path`` is not a store.
        UnsupportedStoreError: A store of another kind.
        InvalidArgumentError: Its files prove another length than given.
        FullError: No space for a seal.
    """
    root = Path(path).absolute()
    files = files or (LogRoot if seal else ReadingRoot)(root, follow=follow, log=log)
    demand_store(files, root)
    demand_log(files, root)
    clock = clock or SystemClock()
    # The check opens files of its own: it continues after a file that cannot be read.
    conclude = partial(check_store, root, progress=progress, clock=clock, given=given, follow=follow, log=log)
    return _Verification(files, root, clock, progress, given).run(conclude, seal=seal)


def _is_of_log(finding: Finding) -> bool:
    is_within = Path(finding.file).parts[:1] == (COMMIT_LOG,)
    return is_within if finding.code in _OF_FILES else finding.code in _OF_LOG


class _Verification:
    """One verification of a store, and its results so far."""

    def __init__(
        self, files: Files, root: Path, clock: Clock, progress: Progress | None, given: FileSizes
    ) -> None:
        self._given_files = files
        self._files = files = as_stated(files, root)
        self._root = root
        self._clock = clock
        self._progress = progress
        listing = list_store(files, root, given)
        self._geometry = listing.geometry
        self._segment = listing.geometry.segment_size_bytes
        self._log_files, self._findings = listing.log_files, listing.findings
        self._is_as_written = True
        self._total_bytes = sum(file.size_bytes for file in self._log_files)
        self._read_bytes = 0
        self._reader = LogReader(files, root, self._segment)
        self._concerned: list[Concerned] = []
        self._records = 0
        self._bare_records = 0
        self._newest_ms = 0
        # Read before the walk: a writer makes the log longer meanwhile than its queues were.
        queues = [*listing.queue_files.values(), *listing.batch_files.values()]
        self._known_end = max((_end_of(files, queue) for queue in queues), default=-1)
        self._end = 0

    def run(self, conclude: Callable[[], CheckReport], *, seal: bool) -> VerifyReport:
        """Verifies the log.

        Args:
            conclude: Checks the whole store; called if anything in the log differs from what was written.
            seal: As in :func:`verify_store`.
        """
        begun_ms = self._clock.monotonic_ms()
        try:
            seals = load_seals(self._files, self._root, self._log_files, self._segment)
            self._findings += seals.findings
            held = list(seals.present.values())
            checks = check_blocks(self._files, self._root, held, self._count)
            # A segment that its owner removed meanwhile, as retention does, is no loss.
            gone = {check.seal.first_phy_offset for check in checks if self._is_gone(check)}
            stale = {check.seal.first_phy_offset for check in checks if self._is_stale(check, gone)}
            by_seal = [known.first_phy_offset for known in held if known.first_phy_offset not in stale | gone]
            left = [file for file in self._log_files if file.first_offset not in gone.union(by_seal)]
            sealed = self._seal(left, stale) if seal else []
            left = [file for file in left if file.first_offset not in set(sealed)]
            self._walk(left)
            cut = self._find_lost(seals.absent)
            for first in cut if seal else ():
                remove_seal(self._files, self._root, first)
            self._find_unsealed(left)
            last = self._log_files[-1].first_offset if self._log_files else 0
            if not any(file.first_offset == last for file in left):
                self._end = last + self._segment  # its seal covers all of it
            self._findings += log_findings(self._log_files, self._geometry, [], None, self._end)
            self._is_as_written &= not self._is_anything_behind()
        finally:
            self._reader.close()
        if isinstance(self._given_files, ReadingRoot):
            # In which folder a file of the log is says nothing about its bytes.
            self._findings += [one for one in self._given_files.findings if one.code != "log-folder"]
        checked = None
        if not self._is_as_written or any(
            _is_of_log(finding) and finding.code not in _OF_SOUND for finding in self._findings
        ):
            checked = conclude()
            self._findings = self._concluded(checked.findings)
        if any(finding.severity is not Severity.NOTE for finding in self._findings):
            self._findings += refusals(self._files, self._root)  # what to do depends on it
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
            checked,
        )

    def _concluded(self, checked: Sequence[Finding]) -> list[Finding]:
        """Returns a check's findings on the log, and this run's own findings on seals and other files."""
        of_log = [finding for finding in checked if _is_of_log(finding)]
        of_seals = {
            finding.file for finding in of_log if finding.code.startswith(("seal-", "log-file-missing"))
        }
        own = [
            finding
            for finding in self._findings
            if (finding.code.startswith("seal-") and finding.file not in of_seals) or not _is_of_log(finding)
        ]
        return of_log + own

    def _is_anything_behind(self) -> bool:
        """Returns whether a queue leads past the log's end, or bytes other than zero are after it."""
        if first_store_ms(self._reader, self._end) is not None:
            return False  # a writer continued meanwhile
        return self._known_end >= self._end or bool(
            behind_end_findings(self._reader, self._log_files, self._segment, self._end)
        )

    def _count(self, more_bytes: int) -> None:
        self._read_bytes += more_bytes
        if self._progress is not None:
            self._progress(self._read_bytes, self._total_bytes)

    def _is_gone(self, check: BlockCheck) -> bool:
        return not self._files.exists(self._root / segment_path(check.seal.first_phy_offset))

    def _is_stale(self, check: BlockCheck, gone: set[int]) -> bool:
        """Records the state of a sealed segment; returns whether its seal is stale."""
        seal = check.seal
        if seal.first_phy_offset in gone:
            return False
        self._newest_ms = max(self._newest_ms, seal.last_store_timestamp_ms)
        if not check.wrong.any():
            self._records += seal.record_count
            return False
        following_ms = first_store_ms(self._reader, seal.first_phy_offset + self._segment)
        verdict = judge(self._files, self._root, check, following_ms)
        self._findings += verdict.findings
        self._concerned += verdict.concerned
        return verdict.is_stale

    def _is_rolled_past(self, first_phy_offset: int) -> bool:
        # A file of zeros may follow the last segment: RocketMQ allocates one ahead.
        return first_store_ms(self._reader, first_phy_offset + self._segment) is not None

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
        """Walks segments record by record, each run of adjacent segments in one scan."""
        firsts = np.array([file.first_offset for file in log_files], np.int64)
        breaks = np.flatnonzero(np.diff(firsts) != self._segment) + 1
        for numbers in np.split(np.arange(len(firsts)), breaks):
            if len(numbers):
                self._walk_run([log_files[number] for number in numbers.tolist()])

    def _walk_run(self, run: list[LogFile]) -> None:
        begun_bytes = self._read_bytes
        with closing(LogScan(LogReader(self._files, self._root, self._segment), run, self._segment)) as scan:
            # Window by window: the rows of a whole store might not fit into memory.
            for rows in scan.iter_rows(
                lambda done, _total: self._count(begun_bytes + done - self._read_bytes)
            ):
                self._records += len(rows)
                self._count_bare(rows)
                self._newest_ms = max(self._newest_ms, int(rows["store_timestamp_ms"].max(initial=0)))
        self._end = scan.end_phy_offset
        # Only the last run may end within a segment: after every other run the log continues.
        is_whole = run[-1] == self._log_files[-1] or self._end == run[-1].first_offset + self._segment
        self._is_as_written &= is_whole and not scan.holes and scan.tail is None

    def _count_bare_of(self, file: LogFile) -> None:
        with closing(
            LogScan(LogReader(self._files, self._root, self._segment), [file], self._segment, verify=False)
        ) as scan:
            for rows in scan.iter_rows():
                self._count_bare(rows)

    def _count_bare(self, rows: Rows) -> None:
        """Counts the records that do not end with ``__CRC32#``, which covers all bytes before it."""
        starts = rows["phy_offset"].astype(np.int64) + rows["size_bytes"] - properties.CRC_PROPERTY_BYTES
        # Windows of one segment each: a read does not cross the end of a file.
        windows = starts // self._segment * self._segment + starts % self._segment // _WINDOW_BYTES
        for window in np.unique(windows).tolist():
            here = starts[windows == window]
            first, size = int(here[0]), int(here[-1] - here[0]) + len(properties.CRC_NAME)
            data = np.frombuffer(self._reader.read(first, size), np.uint8)
            places = here - first
            places = places[places + len(properties.CRC_NAME) <= len(data)]
            has_crc = (data[places[:, None] + np.arange(len(properties.CRC_NAME))] == _CRC_NAME).all(axis=1)
            self._bare_records += len(here) - int(has_crc.sum())

    def _find_lost(self, absent: list[Seal]) -> list[int]:
        """Records segments whose files are missing; returns those that their owner cut off."""
        firsts = np.array([file.first_offset for file in self._log_files], np.int64)
        last = int(firsts.max(initial=-1))
        # Seals before the start of the log belong to segments that retention removed.
        behind = [seal for seal in absent if seal.first_phy_offset >= last]
        self._is_as_written &= not behind and not np.any(np.diff(firsts) != self._segment)
        # Records before it are newer than the seal: the log was cut before it and continued.
        cut = [seal for seal in behind if self._newest_ms >= seal.created_ms]
        self._findings += [
            Finding(
                "seal-stale",
                segment_path(seal.first_phy_offset),
                0,
                seal.segment_bytes,
                messages=seal.record_count,
            )
            for seal in cut
        ]
        return [seal.first_phy_offset for seal in cut]


def _end_of(files: Files, queue: QueueFiles) -> int:
    """Returns where the last record begins that a queue leads to, as a check sees it; -1 for none."""
    units = last_units(files, queue)
    used = batch_in_use(units) if queue.layout is BATCH_UNIT else in_use(units)
    return int(units["phy_offset"][used].max(initial=-1))
