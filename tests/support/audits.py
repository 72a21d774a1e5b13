"""Audits without Spark: the same plan, walk and conclusion, split after split in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from pathlib import Path

from seglog.storage.audit.conclude import conclude_log, report_on
from seglog.storage.audit.plan import AuditPlan, plan_audit
from seglog.storage.audit.report import AuditReport
from seglog.storage.certain_mends import damaged_log, mends_in_holes, mends_of_places
from seglog.storage.certain_mends.withheld import withhold
from seglog.storage.files.files import Files, RealFiles
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.splits.split_scan import SplitScan
from seglog.storage.splits.stretches import Stretch
from seglog.storage.survey.store_survey import Survey, survey


def audit(root: Path, split_bytes: int, *, verify: bool = True, files: Files | None = None) -> AuditReport:
    """Returns what an audit finds."""
    files = files or RealFiles()
    plan = plan_audit(root, files, split_bytes=split_bytes, verify=verify)
    return conclude(plan, walk_splits(plan, files), files)


def walk_splits(plan: AuditPlan, files: Files | None = None) -> Iterator[Stretch]:
    """Yields what the splits of a plan see."""
    scan = SplitScan(files or RealFiles(), plan.root, plan.geometry, plan.batch_topics, verify=plan.verify)
    try:
        for split in plan.splits:
            yield from scan.run(split)
    finally:
        scan.close()


def assert_agrees(report: AuditReport, found: Survey) -> None:
    """Asserts that an audit found what a survey found, all of it, and calls repairable what a reader does."""
    assert report.mode == found.mode
    assert report.records == len(found.rows)
    assert report.bytes == int(found.rows["size_bytes"].sum())
    assert list(report.holes) == found.holes
    assert (report.min_phy_offset, report.end_phy_offset) == (found.min_phy_offset, found.max_phy_offset)
    expected = [
        (*name, state.min_offset, state.max_offset, kind)
        for kind, states in (("plain", found.queues), ("batch", found.batch_queues))
        for name, state in states.items()
    ]
    assert [
        (queue.topic, queue.queue_id, queue.min_offset, queue.max_offset, queue.kind)
        for queue in report.queues
    ] == sorted(expected)
    assert sorted(report.findings, key=repr) == sorted(as_audited(found).findings, key=repr)


def as_audited(found: Survey) -> Survey:
    """Returns a survey that names repairable what an audit names so: all but tags."""
    files = RealFiles()
    mends = [*mends_in_holes(damaged_log(found), files), *mends_of_places(found, files)]
    return withhold(copy(found), mends, files, lambda mended: survey(found.root, mended))


def audit_as_survey(root: Path, *split_bytes: int, verify: bool = True) -> AuditReport:
    """Returns an audit that agrees with the survey of the store for any splits."""
    found = survey(root, RealFiles(), verify=verify)
    reports = [audit(root, size, verify=verify) for size in split_bytes]
    for report in reports:
        assert_agrees(report, found)
    return reports[-1]


def write_log(root: Path, log: bytes, segment_size_bytes: int) -> None:
    """Writes commit-log files that hold ``log`` from offset 0 on, the last one filled up with zeros."""
    (root / COMMIT_LOG).mkdir(parents=True, exist_ok=True)
    for start in range(0, len(log), segment_size_bytes):
        content = log[start : start + segment_size_bytes].ljust(segment_size_bytes, b"\0")
        (root / COMMIT_LOG / segment_file_name(start)).write_bytes(content)


def conclude(plan: AuditPlan, seen: Iterable[Stretch], files: Files) -> AuditReport:
    """Puts together what the splits of a plan saw.

    Args:
        plan: The plan.
        seen: The stretches of all its splits; those of one split in order.
        files: Where the store is.
    """
    return report_on(conclude_log(plan, seen, files), files)
