"""Puts together what the splits of a plan saw: the log, its queues, and what is not as it should be.

What this says of a store is what :func:`seglog.storage.survey.survey` says, whatever the splits: the same
records, holes, end, queues and findings, but that records in holes which a mend brings back are called
repairable here, as readers call them. A survey reads one file after the other, and holds a row of every
record; here whoever walks the splits may do so at once, and sends runs.

Three steps. :func:`~seglog.storage.audit.plan.plan_audit` lists the files and cuts the log into splits.
:class:`~seglog.storage.audit.split_scan.SplitScan` walks splits. :func:`conclude` puts them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from seglog.storage.audit.all_queues import conclude_queues
from seglog.storage.audit.plan import AuditPlan
from seglog.storage.audit.report import AuditReport
from seglog.storage.audit.split_scan import SplitScan, Watch
from seglog.storage.audit.stitch import LogOutcome, stitch
from seglog.storage.audit.stretches import Stretch
from seglog.storage.certain_mends.withheld import as_repairable
from seglog.storage.derived_findings import LogEnd, checkpoint_findings
from seglog.storage.files import Files
from seglog.storage.listing import no_queue_length
from seglog.storage.log_gone import log_gone
from seglog.storage.lost_tail import lost_findings
from seglog.storage.message_counts import count_messages, lost_of_store, standing_losses
from seglog.storage.survey import batch_topics, log_findings, log_start, tombstone_findings


@dataclass(frozen=True, slots=True)
class Stitched:
    """The log of a store, put together.

    Attributes:
        plan: The plan, which knows all batch topics now.
        log: The log.
        walked_again: How many splits had to be walked again.
    """

    plan: AuditPlan
    log: LogOutcome
    walked_again: int

    @property
    def start(self) -> int:
        """Where the log starts; -1 without any segment."""
        return log_start(self.plan.log_files, self.log.end_phy_offset)


def conclude(plan: AuditPlan, seen: Iterable[Stretch], files: Files) -> AuditReport:
    """Puts together what the splits of a plan saw.

    Args:
        plan: The plan.
        seen: The stretches of all its splits; those of one split in order.
        files: Where the store is.
    """
    return report_on(conclude_log(plan, seen, files), files)


def conclude_log(
    plan: AuditPlan, seen: Iterable[Stretch], files: Files, watch: Watch | None = None
) -> Stitched:
    """Puts the log together.

    Args:
        plan: The plan.
        seen: The stretches of all its splits; those of one split in order.
        files: Where the store is.
        watch: Looks on where splits are walked again.
    """
    first = plan.log_files[0].first_offset if plan.log_files else 0
    seen = list(seen)
    walked_again = 0
    while True:
        scan = SplitScan(files, plan.root, plan.geometry, plan.batch_topics, verify=plan.verify, watch=watch)
        try:
            log = stitch(plan.splits, first, seen, scan)
            walked_again += log.walked_again
            told = _told_batch_topics(plan, log)
            if not told:
                return Stitched(plan, log, walked_again)
        finally:
            scan.close()
        plan = replace(plan, batch_topics=plan.batch_topics | told)
        seen, again = _with_batch_topics(plan, seen, told, files, watch)
        walked_again += again


def report_on(stitched: Stitched, files: Files) -> AuditReport:
    """Holds queues, checkpoint and what is known of earlier losses against the log.

    Args:
        stitched: The log.
        files: Where the store is.
    """
    plan, log, start = stitched.plan, stitched.log, stitched.start
    concluded = conclude_queues(plan, log, start, files)
    queues = concluded.queues
    findings = list(plan.findings)
    if any(queue.kind == "plain" for queue in queues):
        findings += no_queue_length(plan.geometry, findings)
    walked = (plan.log_files, plan.geometry, list(log.holes), log.tail, log.end_phy_offset)
    findings += log_findings(*walked, concluded.lost)
    segment, extent = plan.geometry.segment_size_bytes, (max(0, start), log.end_phy_offset)
    standing = standing_losses(files, plan.root, segment, extent, log.holes)
    findings += tombstone_findings(standing, segment)
    if full := [stretch for stretch in log.stretches if stretch.records]:
        newest_ms = max(stretch.max_store_timestamp_ms for stretch in full)
        log_end = LogEnd(newest_ms, full[-1].last_store_timestamp_ms, log.end_phy_offset)
        findings += checkpoint_findings(files, plan.root, plan.checkpoint, log_end, plan.mode)
    findings += concluded.findings
    queue_files = [*plan.queue_files.values(), *plan.batch_files.values()]
    if not plan.log_files and (gone := log_gone(files, plan.root, queue_files)):
        findings = gone + [one for one in findings if one.code != "queue-beyond-log"]
    if concluded.mends:
        told = log_findings(*walked, concluded.left)
        told += lost_findings(concluded.lost_tail, log.end_phy_offset, segment)
        findings = as_repairable(findings, told, concluded.mends, segment)
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
        tuple(findings),
        len(plan.splits),
        stitched.walked_again,
        count_messages(
            queues, lost_of_store(concluded.left, concluded.states, concluded.lost_tail, standing)
        ),
    )


def _told_batch_topics(plan: AuditPlan, log: LogOutcome) -> frozenset[str]:
    """Returns the topics with batch queues of which only inner batches in the log tell."""
    told = {topic for stretch in log.stretches for topic in stretch.inner_topics}
    return batch_topics(told, plan.queue_files, plan.batch_files) - plan.batch_topics


def _with_batch_topics(
    plan: AuditPlan, seen: Sequence[Stretch], told: frozenset[str], files: Files, watch: Watch | None
) -> tuple[list[Stretch], int]:
    """Walks splits again that hold records of topics which they did not know to have batch queues.

    Rare: such a topic has lost its directory, and ``config/topics.json`` does not name it.
    """
    concerned = {
        stretch.split
        for stretch in seen
        if not told.isdisjoint([*stretch.inner_topics, *(interval.topic for interval in stretch.intervals)])
    }
    found = [stretch for stretch in seen if stretch.split not in concerned]
    scan = SplitScan(files, plan.root, plan.geometry, plan.batch_topics, verify=plan.verify, watch=watch)
    try:
        for number in sorted(concerned):
            found += scan.run(plan.splits[number])
    finally:
        scan.close()
    return found, len(concerned)
