"""Looks at everything that a store directory holds, and says what is wrong; writes nothing.

The log is walked in splits (:mod:`seglog.doctor.check.log_walk`), which may be stopped and resumed; all else
follows from what they saw, and takes little time. Works on a store that was not closed, and
beside a process that writes to it: no lock is taken.
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
from seglog.doctor.check.broker_start import BrokerStart, broker_start
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
from seglog.storage.directory import NOTHING_KNOWN, FileSizes, LogReader, as_stated
from seglog.storage.findings import Finding, Severity
from seglog.storage.index_check import NO_DIFF, chain_finding, index_findings, load_index
from seglog.storage.seals import Concerned
from seglog.storage.small_files import read_log_origin
from seglog.storage.splits import KnownRecords
from seglog.storage.walk import Progress

SPLIT_BYTES: Final = 128 << 20
"""A multiple of the blocks of seals; at a stop two or three splits are finished first."""

_PAUSES_MS: Final = (0, 50, 100, 200, 400, 800)
"""Before each further look at a store that a process writes to."""

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
) -> CheckReport:
    """Checks a store.

    Args:
        path: The store directory.
        resume_file: Where to keep what was seen, so that a stopped check can go on; nothing is kept if None.
        resume: Whether to go on from that file.
        should_stop: Asked before each split of the log.
        progress: Told how many bytes of the log were read, and how many there are.
        clock: Measures the check.
        split_bytes: Length of a split, a multiple of 64 KiB.
        given: Lengths of files that the caller knows.
        follow: Folders directly in the store that may be links to folders elsewhere.

    Raises:
        NotFoundError: There is nothing at ``path``.
        NotAStoreError: Something else is there.
        UnsupportedStoreError: A store of another kind.
        InvalidArgumentError: The resume file is none of this store, or files prove another length than given.
        StoppedError: It was told to stop.
    """
    check = StoreCheck(Path(path), clock, split_bytes=split_bytes, given=given, follow=follow)
    return check.run(resume_file, should_stop, progress, resume=resume)


@dataclass(frozen=True, slots=True)
class _Log:
    """The log as it was seen."""

    stitched: Stitched
    report: AuditReport
    seen: Seen


class StoreCheck:
    """A check in its parts: what must be known before the log is walked, and what follows from the walk.

    :meth:`run` walks the splits of :attr:`plan` here. A caller that walks them elsewhere
    (:mod:`seglog.spark.audit`) passes what they saw to :meth:`conclude`.

    Args:
        root: The store directory.
        clock: Measures the check.
        split_bytes: Length of a split, a multiple of 64 KiB.
        verify: Whether to compute checksums; everything else is always checked.
        given: Lengths of files that the caller knows.
        follow: Folders directly in the store that may be links to folders elsewhere.
        files: Where the store is if not on this machine; :meth:`run` is for stores that are.
        address: How the store is named if not by ``root``.
        known: Records of its log that were walked as they were written.

    Raises:
        NotFoundError: There is nothing at ``root``.
        NotAStoreError: Something else is there.
        UnsupportedStoreError: A store of another kind.

    Attributes:
        plan: The files of the store, and the splits of its log.
        seals: Its seals.
        index: What its index must hold.
        known: As it was given.
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
        self._forgiving: CheckedFiles = ForgivingFiles(self._root, follow=follow) if files is None else files
        self._files = as_stated(self._forgiving, self._root)
        # In this order: what a writer does while we look makes queues and log longer than tables say.
        self.plan = plan_audit(self._root, self._files, split_bytes=split_bytes, verify=verify, given=given)
        self._holder = self._forgiving.lock_holder()
        self._tables = load_tables(self._files, self._root)
        is_live = self._holder is not None
        self._of_tree, self._has_rocksdb = tree_findings(self._forgiving, self._root, is_live=is_live)
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
        """Walks the log in threads, and returns what was found; arguments as :func:`check_store` has them."""
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
        """Whether its last writer closed it."""
        return self.plan.mode == "normal" and self._holder is None

    def conclude(
        self, outcomes: list[SplitOutcome], of_chains: list[Finding], unreadable: Iterable[Finding] = ()
    ) -> CheckReport:
        """Returns what was found.

        Args:
            outcomes: What all splits saw, in order.
            of_chains: What :func:`~seglog.storage.index_check.index_chains.chain_finding` says of the index
                files.
            unreadable: Files that could not be read where splits were walked elsewhere.
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
        unseen = blind_spots(report, seen, origin, is_live=is_live, has_rocksdb=self._has_rocksdb)
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
        return broker_start(self.plan, log.stitched, self._files, findings, is_live=is_live)

    def _keep(
        self, path: Path | None, files: ForgivingFiles, stamps: ResumeStamps, *, must: bool
    ) -> ResumeFile | None:
        """Returns the resume file, None where none was asked for or none can be written.

        Raises:
            InvalidArgumentError: It would lie in the store.
            OSError: It must be written and cannot.
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
            # It may have been written since, without another time of its file.
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
        """Returns the findings of a store that is being written which further looks find again.

        Log, queues and tables never are of one moment there: what is ahead of the others in one look is
        behind in the next. And a writer may stand between two of its steps (the record is in the log, its
        unit is not yet in the queue) for as long as the system runs something else. So what is more than a
        note must be there still once the log has grown, or has not for a while.

        Args:
            findings: What the first look found.
            outcomes: What it saw of the log.
            end: Where the log ended in it.
        """
        has_grown = False
        for pause_ms in _PAUSES_MS:
            self._pause(pause_ms)
            log = self._look_again(outcomes)
            seen = {_place(finding) for finding in [*log.report.findings, *self._other_findings(log)]}
            findings = [finding for finding in findings if _place(finding) in seen]
            if has_grown or all(finding.severity is Severity.NOTE for finding in findings):
                break
            has_grown = log.report.end_phy_offset > end  # the next look lists the files after that
        return findings

    def _pause(self, pause_ms: int) -> None:
        with (moved := threading.Condition()):
            self._clock.wait(moved, pause_ms)

    def _look_again(self, outcomes: list[SplitOutcome]) -> _Log:
        """Walks the newest file again, and holds everything against the log as it is now."""
        plan = self.plan
        last = plan.log_files[-1].first_offset if plan.log_files else 0
        again = plan_audit(
            self._root, self._files, split_bytes=self._split_bytes, verify=plan.verify, given=self._given
        )
        whole = [outcome for outcome in outcomes if plan.splits[outcome.split].start < last]
        if again.splits[: len(whole)] != plan.splits[: len(whole)]:
            whole = []  # retention took files meanwhile
        walk = LogWalk(again, self._files, self.seals.present, self.index)
        newest = walk.run(again.splits[len(whole) :], lambda: False)
        self._tables = load_tables(self._files, self._root)
        return self._conclude(again, whole + sorted(newest, key=lambda outcome: outcome.split), walk)


def _place(finding: Finding) -> tuple[str, str, int]:
    return finding.code, finding.file, finding.position_bytes


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
