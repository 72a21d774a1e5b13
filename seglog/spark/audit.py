"""Verifies every record of a store and holds its queues against them, in splits on Spark.

What it says of a store is what :func:`seglog.storage.survey.survey` says, whatever the splits: the same
records, holes, end, queues and findings. A survey reads one file after the other in one process; an audit
reads many at a time on as many machines as see the files.

Three steps. :func:`plan_audit` lists the files and cuts the log into splits. Tasks walk the splits and
send stretches (:mod:`seglog.spark.job`). :func:`conclude` puts them together on the driver. The first and
the last need no Spark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from seglog.errors import NotFoundError
from seglog.spark.log_lookup import LogLookup
from seglog.spark.queue_audit import LogView, audit_queue, overlay
from seglog.spark.report import AuditQueue, AuditReport
from seglog.spark.split_scan import SplitScan
from seglog.spark.splits import DEFAULT_SPLIT_BYTES, Split, plan_splits
from seglog.spark.stitch import LogOutcome, stitch
from seglog.spark.stretches import Interval, Stretch
from seglog.storage.files import Files, RealFiles
from seglog.storage.findings import Finding
from seglog.storage.format import names
from seglog.storage.geometry import StoreGeometry
from seglog.storage.log_files import LogFile, LogReader, list_log_files, place_log_files
from seglog.storage.log_records import RecordsBehind
from seglog.storage.lost_messages import LostMessages, lost_in_holes
from seglog.storage.lost_tail import TailFacts, find_lost_tail, lost_findings, take_up
from seglog.storage.queue_files import QueueFiles, list_queues
from seglog.storage.queue_overlay import QueueState, behind_findings
from seglog.storage.survey import (
    check_is_store,
    infer_geometry,
    living_queues,
    log_findings,
    log_start,
    queue_file_findings,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """What is known of a store before its records are read.

    Attributes:
        root: The store directory, absolute: tasks have folders of their own.
        geometry: Lengths of its files.
        mode: ``normal`` or ``abnormal``.
        log_files: Commit-log files in order.
        queue_files: The files of each queue that has a directory.
        splits: What the tasks read.
        verify: Whether to compute checksums.
        findings: What the listing already shows.
    """

    root: Path
    geometry: StoreGeometry
    mode: str
    log_files: list[LogFile]
    queue_files: dict[tuple[str, int], QueueFiles]
    splits: list[Split]
    verify: bool
    findings: list[Finding]


def audit_store(
    path: str | PathLike[str],
    *,
    spark: SparkSession | None = None,
    split_bytes: int = DEFAULT_SPLIT_BYTES,
    verify: bool = True,
) -> AuditReport:
    """Audits a store; reads only.

    Args:
        path: The store directory. Every machine of the cluster must see it there.
        spark: A session; None takes the active one, or starts one on this machine and stops it at the end.
            The workers of a session that was not made by :func:`seglog.spark.session.local_session` must
            have seglog installed.
        split_bytes: Bytes of the log that a task reads at a time, at least 1024.
        verify: Whether to compute checksums; everything else is always checked.

    Raises:
        NotFoundError: There is nothing at ``path``.
        NotAStoreError: Something else is there.
        UnsupportedStoreError: The store is of another kind.
        InvalidArgumentError: ``split_bytes`` is too small.
        MissingDependencyError: PySpark or Java is missing, and a session had to be made.
    """
    from seglog.spark.session import session_for

    files = RealFiles()
    plan = plan_audit(Path(path), files, split_bytes=split_bytes, verify=verify)
    with session_for(spark, "seglog audit") as session:
        from seglog.spark.job import scan_on_spark

        return conclude(plan, scan_on_spark(plan, session), files)


def plan_audit(
    root: Path, files: Files, *, split_bytes: int = DEFAULT_SPLIT_BYTES, verify: bool = True
) -> AuditPlan:
    """Lists the files of a store and cuts its log into splits.

    Raises:
        NotFoundError: There is nothing at ``root``.
        NotAStoreError: Something else is there.
        UnsupportedStoreError: The store is of another kind.
        InvalidArgumentError: ``split_bytes`` is too small.
    """
    if not check_is_store(files, root):
        raise NotFoundError(f"there is no store at {root}")
    log_files, findings = list_log_files(files, root)
    queue_files = {(queue.topic, queue.queue_id): queue for queue in list_queues(files, root)}
    geometry = infer_geometry(log_files, queue_files.values())
    log_files, misplaced = place_log_files(log_files, geometry.segment_size_bytes)
    findings += misplaced
    return AuditPlan(
        root.absolute(),
        geometry,
        "abnormal" if files.exists(root / names.ABORT_FILE) else "normal",
        log_files,
        queue_files,
        plan_splits(log_files, geometry.segment_size_bytes, split_bytes),
        verify,
        findings,
    )


def conclude(plan: AuditPlan, seen: Iterable[Stretch], files: Files) -> AuditReport:
    """Puts together what the splits of a plan saw.

    Args:
        plan: The plan.
        seen: The stretches of all its splits; those of one split in order.
        files: Where the store is.
    """
    scan = SplitScan(files, plan.root, plan.geometry, verify=plan.verify)
    try:
        first = plan.log_files[0].first_offset if plan.log_files else 0
        log = stitch(plan.splits, first, seen, scan)
    finally:
        scan.close()
    start = log_start(plan.log_files, log.end_phy_offset)
    queues, of_queues, lost = _conclude_queues(plan, log, start, files)
    findings = list(plan.findings)
    findings += log_findings(
        plan.log_files, plan.geometry, list(log.holes), log.tail, log.end_phy_offset, lost
    )
    return AuditReport(
        plan.root,
        plan.mode,
        plan.verify,
        sum(stretch.records for stretch in log.stretches),
        sum(stretch.size_bytes for stretch in log.stretches),
        tuple(queues),
        log.holes,
        start,
        log.end_phy_offset,
        tuple(findings + of_queues),
        len(plan.splits),
        log.walked_again,
    )


def _conclude_queues(
    plan: AuditPlan, log: LogOutcome, start: int, files: Files
) -> tuple[list[AuditQueue], list[Finding], list[list[LostMessages]]]:
    """Returns the queues, what is wrong with them, and what each hole of the log took."""
    intervals: defaultdict[tuple[str, int], list[Interval]] = defaultdict(list)
    for stretch in log.stretches:
        for interval in stretch.intervals:
            intervals[interval.topic, interval.queue_id].append(interval)
    batch_topics = {entry.name for entry in files.list_dir(plan.root / names.BATCH_CONSUME_QUEUE)}
    in_log = {key for key in intervals if key[0] not in batch_topics}
    living, findings = living_queues(files, plan.root, plan.mode, in_log, plan.queue_files.keys())
    findings += [Finding("batch-queues", names.BATCH_CONSUME_QUEUE)] if batch_topics else []
    file_size_bytes = plan.geometry.queue_file_size_bytes
    for queue in plan.queue_files.values():
        findings += queue_file_findings(queue, file_size_bytes)
    states: dict[tuple[str, int], QueueState] = {}
    lookup = LogLookup(files, plan.root, plan.geometry, log.stretches)
    try:
        view = LogView(start, log.end_phy_offset, log.holes, lookup)
        for topic, queue_id in living:
            queue = plan.queue_files.get((topic, queue_id)) or QueueFiles(topic, queue_id, plan.root)
            of_queue = intervals[topic, queue_id]
            states[topic, queue_id] = overlay(queue, of_queue, view, files, file_size_bytes)
    finally:
        lookup.close()
    lost = lost_in_holes(log.holes, states, {})
    findings += _take_up_lost(plan, log, states, files)
    queues: list[AuditQueue] = []
    for key, state in states.items():
        queues.append(audit_queue(state, intervals[key]))
        findings += state.findings + behind_findings(state, log.end_phy_offset, file_size_bytes)
    return queues, findings, lost


def _take_up_lost(
    plan: AuditPlan, log: LogOutcome, states: dict[tuple[str, int], QueueState], files: Files
) -> list[Finding]:
    """Takes up what the queues know of records behind the end of the log, as the survey does."""
    if not plan.log_files:
        return []
    segment = plan.geometry.segment_size_bytes
    reader = LogReader(files, plan.root, segment)
    behind = RecordsBehind(reader, log.end_phy_offset, segment)
    files_end = max(file.first_offset for file in plan.log_files) + segment
    # Only the exact places of tombstones depend on the record CRC, and nothing here does on those.
    facts = TailFacts(log.end_phy_offset, files_end, segment, record_crc=False, is_record=behind.has_record)
    try:
        lost = find_lost_tail(states, {}, facts)
    finally:
        reader.close()
    take_up(lost, states, {}, facts, log.stretches[-1].last_store_timestamp_ms if log.stretches else 1)
    return lost_findings(lost, segment)
