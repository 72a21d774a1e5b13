"""Checks everything that a store directory holds, and reports what is wrong; writes nothing.

The log is walked in splits (:mod:`seglog.doctor.check.log_walk`); the walk can be stopped and resumed. All
other checks use the results of the walk and take little time. A check takes no lock: it works on a store that
was not closed, and beside a process that writes to the store.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from seglog.clock import Clock, SystemClock
from seglog.doctor.check.broker_start import BrokerStart, broker_start, if_as_long, unqueued_messages
from seglog.doctor.check.check_progress_file import ResumeFile, load_outcomes
from seglog.doctor.check.check_progress_stamps import ResumeStamps
from seglog.doctor.check.check_report import CheckReport
from seglog.doctor.check.directory_check import tree_findings
from seglog.doctor.check.limitations import blind_spots
from seglog.doctor.check.log_walk import LogWalk, SplitOutcome
from seglog.doctor.check.record_observer import Seen
from seglog.doctor.check.rescan import excuse_rescanned
from seglog.doctor.check.seal_findings import Seals, load_seals, seal_findings
from seglog.doctor.check.told_once import each_once
from seglog.doctor.check.trailing_bytes import behind_end_findings
from seglog.doctor.parts.offset_check import group_lags
from seglog.doctor.parts.other_files import state_findings
from seglog.doctor.parts.parts_check import check_parts
from seglog.doctor.parts.tolerant_files import CheckedFiles, ForgivingFiles
from seglog.doctor.plans.unfinished import unfinished_findings
from seglog.doctor.tables.config_tables import load_tables
from seglog.errors import InvalidArgumentError, StoppedError
from seglog.storage.audit import AuditPlan, AuditReport, Stitched, conclude_log, plan_audit, report_on
from seglog.storage.directory import NOTHING_KNOWN, FileSizes, LogPaths, LogReader, as_stated
from seglog.storage.findings import Finding, Severity
from seglog.storage.index_check import NO_DIFF, chain_finding, index_findings, load_index
from seglog.storage.seals import Concerned
from seglog.storage.small_files import read_log_origin
from seglog.storage.splits import KnownRecords
from seglog.storage.walk import Progress

SPLIT_BYTES: Final = 128 << 20
"""A multiple of the block size of seals; after a stop request two or three splits are finished first."""

_PAUSES_MS: Final = (0, 50, 100, 200, 400, 800)
"""Waits before each further look at a store that a process writes to."""

ShouldStop = Callable[[], bool]


def check_store(
    path: str | os.PathLike[str],
    *,
    resume_file: Path | None = None,
    resume: bool = False,
    should_stop: ShouldStop = lambda: False,
    progress: Progress | None = None,
    clock: Clock | None = None,
    split_bytes: int = SPLIT_BYTES,
    given: FileSizes = NOTHING_KNOWN,
    follow: Sequence[str] = (),
    log: LogPaths | None = None,
) -> CheckReport:
    """Checks a store.

    Args:
        path: The store directory.
        resume_file: File for the results of the splits, so that a stopped check can be resumed; None for no
            file.
        resume: Whether to resume from that file.
        should_stop: Called before each split of the log; True stops the check.
        progress: Called with the bytes of the log that were read, and the bytes in all.
        clock: Measures the duration of the check.
        split_bytes: Length of a split, a multiple of 64 KiB.
        given: Lengths of files that the caller knows.
        follow: Folders directly in the store that may be links to folders elsewhere.
        log: The folders of the log that a configuration states; None to take ``broker.conf`` in the store.

    Raises:
        NotFoundError: There is nothing at ``path``.
        NotAStoreError: ``path`` is not a store.
        UnsupportedStoreError: A store of another kind.
        InvalidArgumentError: The resume file belongs to another store, or files prove another length than
            given.
        StoppedError: ``should_stop`` returned True.
    """
    check = StoreCheck(Path(path), clock, split_bytes=split_bytes, given=given, follow=follow, log=log)
    return check.run(resume_file, should_stop, progress, resume=resume)


@dataclass(frozen=True, slots=True)
class _Log:
    """The log as the walk saw it."""

    stitched: Stitched
    report: AuditReport
    seen: Seen


class StoreCheck:
    """A check in two parts: the facts that the walk of the log needs, and the conclusions from the walk.

    :meth:`run` walks the splits of :attr:`plan` in this process. A caller that walks them elsewhere
    (:mod:`seglog.spark.audit`) passes their outcomes to :meth:`conclude`.

    Args:
        root: The store directory.
        clock: Measures the duration of the check.
        split_bytes: Length of a split, a multiple of 64 KiB.
        verify: Whether to compute checksums; everything else is always checked.
        given: Lengths of files that the caller knows.
        follow: Folders directly in the store that may be links to folders elsewhere.
        log: As for :func:`check_store`.
        files: Access to a store that is not on this machine; :meth:`run` needs a store on this machine.
        address: Name of the store in the report, if not ``root``.
        known: Records of the log that were checked when they were written.

    Raises:
        NotFoundError: There is nothing at ``root``.
        NotAStoreError: ``root`` is not a store.
        UnsupportedStoreError: A store of another kind.

    Attributes:
        plan: The files of the store, and the splits of its log.
        seals: The seals of the store.
        index: The entries that the key index must hold.
        known: The argument ``known``.
    """

    def __init__(
        self,
        root: Path,
        clock: Clock | None = None,
        *,
        split_bytes: int = SPLIT_BYTES,
        verify: bool = True,
        given: FileSizes = NOTHING_KNOWN,
        follow: Sequence[str] = (),
        log: LogPaths | None = None,
        files: CheckedFiles | None = None,
        address: str = "",
        known: KnownRecords | None = None,
    ) -> None:
        self.known = known
        self._given = given
        self._address = address
        self._root = root.absolute()
        self._clock = clock or SystemClock()
        self._begun_ms = self._clock.monotonic_ms()
        self._split_bytes = split_bytes
        own = ForgivingFiles(self._root, follow=follow, log=log) if files is None else files
        self._forgiving: CheckedFiles = own
        self._files = as_stated(self._forgiving, self._root)
        # Tables are loaded before the walk: a writer then makes queues and log longer than the tables state.
        self.plan = plan_audit(self._root, self._files, split_bytes=split_bytes, verify=verify, given=given)
        self._holder = self._forgiving.lock_holder()
        self._tables = load_tables(self._files, self._root)
        is_live = self._holder is not None
        rocksdb = self.plan.rocksdb
        self._of_tree = tree_findings(self._forgiving, self._root, rocksdb, is_live=is_live)
        self.seals = load_seals(
            self._files, self._root, self.plan.log_files, self.plan.geometry.segment_size_bytes
        )
        self.index = load_index(self.plan, self._files, is_live=is_live)
        self._resumed_bytes = 0

    def run(
        self,
        resume_file: Path | None,
        should_stop: ShouldStop,
        progress: Progress | None,
        *,
        resume: bool,
    ) -> CheckReport:
        """Walks the log in threads and returns the report; the arguments are those of :func:`check_store`."""
        local = self._forgiving
        if not isinstance(local, ForgivingFiles):
            raise InvalidArgumentError(f"{self._address} is not on this machine", help="seglog spark audit")
        walk = LogWalk(self.plan, self._files, self.seals.present, self.index, self.known)
        stamps = ResumeStamps(self.plan, local, self.index)
        known = load_outcomes(resume_file, self.plan, stamps) if resume_file is not None and resume else []
        kept = self._keep(resume_file, local, stamps, must=resume)
        with ThreadPoolExecutor(1, "seglog-chains") as beside:
            follow = partial(chain_finding, self._files, is_closed=self.is_closed)
            chains = [beside.submit(follow, outline.file) for outline in self.index.outlines]
            try:
                outcomes = self._walk(walk, kept, known, should_stop, progress)
            except BaseException:
                beside.shutdown(cancel_futures=True)
                raise
            of_chains = [finding for chain in chains if (finding := chain.result()) is not None]
        report = self.conclude(outcomes, of_chains)
        if kept is not None:
            kept.remove()
        return report

    @property
    def is_closed(self) -> bool:
        """Whether the last writer closed the store."""
        return self.plan.mode == "normal" and self._holder is None

    def conclude(
        self, outcomes: list[SplitOutcome], of_chains: list[Finding], unreadable: Iterable[Finding] = ()
    ) -> CheckReport:
        """Returns the report of the check.

        Args:
            outcomes: The outcomes of all splits, in order.
            of_chains: The results of :func:`~seglog.storage.index_check.index_chains.chain_finding` for the
                index files.
            unreadable: Files that could not be read, if the splits were walked elsewhere.
        """
        for finding in unreadable:
            self._forgiving.add(finding)
        seals, index = self.seals, self.index
        walk = LogWalk(self.plan, self._files, seals.present, index)
        log = self._conclude(self.plan, outcomes, walk)
        end = log.report.end_phy_offset
        of_seals, concerned = self._seal_findings(seals, outcomes, log)
        ends = log.report.min_phy_offset, end
        of_index = index_findings(self.plan, self._files, index, of_chains, log.seen.keys, ends)
        of_log = [*log.report.findings, *self._other_findings(log)]
        if self._holder is not None:
            of_log = self._lasting(of_log, outcomes, end)
        findings = state_findings(self._files, self._root, self._holder) + of_log + of_seals + of_index
        findings += self._of_tree + self._forgiving.findings + unfinished_findings(self._files, self._root)
        if self._holder is None:
            findings = excuse_rescanned(findings, self.plan)
        report, seen = log.report, log.seen
        queues = {(queue.topic, queue.queue_id): queue for queue in report.queues}
        state = "clean" if report.mode == "normal" else "crashed"
        is_live = self._holder is not None
        origin = read_log_origin(self._forgiving, self._root)
        told = each_once(findings)
        unseen = blind_spots(report, seen, origin, self.plan.rocksdb, is_live=is_live)
        return CheckReport(
            self._root,
            self.plan.geometry,
            "open" if is_live else state,
            self._holder,
            tuple(self.plan.log_files),
            report.holes,
            report.min_phy_offset,
            end,
            report.records,
            seen.with_crc,
            report.queues,
            replace(report.counts, placeholders=seen.placeholders),
            tuple(group_lags(self._tables, queues)),
            seen.minutes,
            len(seals.present),
            seen.keys.keys,
            tuple(told),
            tuple(concerned),
            tuple(unseen),
            sum(map(self._bytes_of, outcomes)) - self._resumed_bytes,
            self._resumed_bytes,
            self._clock.monotonic_ms() - self._begun_ms,
            self._broker_start(log, told),
            self._address,
        )

    def _broker_start(self, log: _Log, findings: Sequence[Finding]) -> BrokerStart:
        is_live = self._holder is not None
        unqueued = unqueued_messages(findings, log.report.queues, log.report.counts)
        found = broker_start(self.plan, log.stitched, self._files, findings, unqueued, is_live=is_live)
        return if_as_long(found, self.plan.geometry)

    def _keep(
        self, path: Path | None, files: ForgivingFiles, stamps: ResumeStamps, *, must: bool
    ) -> ResumeFile | None:
        """Returns the resume file, None if the caller requested none or none can be written.

        Raises:
            InvalidArgumentError: It would be inside the store.
            OSError: The caller named the file, and it cannot be written.
        """
        if path is None:
            return None
        kept = ResumeFile(path, self.plan, stamps)
        try:
            kept.begin(files)
        except OSError:
            if must:
                raise
            return None
        return kept

    def _walk(
        self,
        walk: LogWalk,
        kept: ResumeFile | None,
        known: list[SplitOutcome],
        should_stop: ShouldStop,
        progress: Progress | None,
    ) -> list[SplitOutcome]:
        last = self.plan.log_files[-1].first_offset if self.plan.log_files else 0
        if self._holder is not None or self.plan.mode != "normal":
            # A writer may have written to the last file since, without a change of the file's time.
            known = [outcome for outcome in known if self.plan.splits[outcome.split].start < last]
        done = {outcome.split for outcome in known}
        outcomes = list(known)
        self._resumed_bytes = read_bytes = sum(map(self._bytes_of, outcomes))
        total_bytes = sum(file.size_bytes for file in self.plan.log_files)
        try:
            for outcome in outcomes:
                if kept is not None:
                    kept.add(outcome)
            left = [split for split in self.plan.splits if split.number not in done]
            for outcome in walk.run(left, should_stop):
                outcomes.append(outcome)
                if kept is not None:
                    kept.add(outcome)
                read_bytes += self._bytes_of(outcome)
                if progress is not None:
                    progress(read_bytes, total_bytes)
        finally:
            if kept is not None:
                kept.close()
        if len(outcomes) < len(self.plan.splits):
            raise StoppedError(
                f"the check was stopped after {read_bytes} of {total_bytes} bytes of the log",
                str(kept.path) if kept is not None else "",
            )
        return sorted(outcomes, key=lambda outcome: outcome.split)

    def _bytes_of(self, outcome: SplitOutcome) -> int:
        split = self.plan.splits[outcome.split]
        return min(split.end, max((one.end for one in outcome.stretches), default=split.end)) - split.start

    def _conclude(self, plan: AuditPlan, outcomes: Sequence[SplitOutcome], walk: LogWalk) -> _Log:
        watch = walk.watch()
        stretches = [stretch for outcome in outcomes for stretch in outcome.stretches]
        stitched = conclude_log(plan, stretches, self._files, watch)
        report = report_on(stitched, self._files, watch)
        seen = {
            stretch.start: one
            for outcome in outcomes
            for stretch, one in zip(outcome.stretches, outcome.seen, strict=True)
        } | watch.seen
        together = _sum(seen[stretch.start] for stretch in stitched.log.stretches)
        return _Log(stitched, report, together)

    def _seal_findings(
        self, seals: Seals, outcomes: list[SplitOutcome], log: _Log
    ) -> tuple[list[Finding], list[Concerned]]:
        newest_ms = max((one.max_store_timestamp_ms for one in log.stitched.log.stretches), default=0)
        return seal_findings(self.plan, seals, outcomes, self._files, newest_ms)

    def _other_findings(self, log: _Log) -> list[Finding]:
        plan, end = log.stitched.plan, log.report.end_phy_offset
        queues = {(queue.topic, queue.queue_id): queue for queue in log.report.queues}
        findings: list[Finding] = []
        if self._holder is None and log.stitched.log.tail is None:
            segment = plan.geometry.segment_size_bytes
            with closing(LogReader(self._files, plan.root, segment)) as reader:
                findings += behind_end_findings(reader, plan.log_files, segment, end)
        return findings + check_parts(plan, self._files, self._tables, queues, end)

    def _lasting(self, findings: list[Finding], outcomes: list[SplitOutcome], end: int) -> list[Finding]:
        """Returns the findings of a store that is being written which further looks confirm.

        Log, queues and tables are never from the same moment then: the one that is ahead of the others in one
        look is behind in the next. And the writer may be between two of its steps (the record is in the log,
        its unit is not yet in the queue) for as long as the system does not schedule it. So a finding above a
        note counts only if it still exists after the log has grown, or after a wait in which it has not.

        Args:
            findings: The findings of the first look.
            outcomes: The outcomes of its splits.
            end: The end of the log in the first look, a physical offset.
        """
        has_grown = False
        for pause_ms in _PAUSES_MS:
            self._pause(pause_ms)
            log = self._look_again(outcomes)
            seen = {finding.place for finding in [*log.report.findings, *self._other_findings(log)]}
            findings = [finding for finding in findings if finding.place in seen]
            if has_grown or all(finding.severity is Severity.NOTE for finding in findings):
                break
            has_grown = log.report.end_phy_offset > end  # the next look lists the files after that
        return findings

    def _pause(self, pause_ms: int) -> None:
        with (moved := threading.Condition()):
            self._clock.wait(moved, pause_ms)

    def _look_again(self, outcomes: list[SplitOutcome]) -> _Log:
        """Walks the newest file again, and compares everything with the log as it is now."""
        plan = self.plan
        last = plan.log_files[-1].first_offset if plan.log_files else 0
        again = plan_audit(
            self._root, self._files, split_bytes=self._split_bytes, verify=plan.verify, given=self._given
        )
        whole = [outcome for outcome in outcomes if plan.splits[outcome.split].start < last]
        if again.splits[: len(whole)] != plan.splits[: len(whole)]:
            whole = []  # retention removed files meanwhile
        walk = LogWalk(again, self._files, self.seals.present, self.index)
        newest = walk.run(again.splits[len(whole) :], lambda: False)
        self._tables = load_tables(self._files, self._root)
        return self._conclude(again, whole + sorted(newest, key=lambda outcome: outcome.split), walk)


def _sum(parts: Iterable[Seen]) -> Seen:
    records = with_crc = placeholders = 0
    counts: Counter[int] = Counter()
    sizes: Counter[int] = Counter()
    keys = NO_DIFF
    for part in parts:
        records += part.records
        with_crc += part.with_crc
        placeholders += part.placeholders
        keys += part.keys
        for minute, count, size in part.minutes:
            counts[minute] += count
            sizes[minute] += size
    minutes = tuple((minute, counts[minute], sizes[minute]) for minute in sorted(counts))
    return Seen(records, with_crc, placeholders, minutes, keys)
