"""Puts together what the splits of a plan saw: the log, its queues, and what is wrong.

A survey (:mod:`seglog.storage.survey.store_survey`) says the same of a store, for any splits: both stand on
:mod:`seglog.storage.scan`. But records that a mend brings back are called repairable here, as readers call
them. A survey reads one file after the other, and holds a row of every record; splits may be
walked at once, and send runs.

A record that can be read but names a wrong queue is a few looks at the log away: splits with such records are
walked once more as they are with the mend, so what the mend explains is not named.

Three steps. :func:`~seglog.storage.audit.plan.plan_audit` lists the files and cuts the log into splits.
:class:`~seglog.storage.splits.split_scan.SplitScan` walks splits. :func:`conclude` puts them together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace

from seglog.storage.audit.all_queues import IntervalQueues
from seglog.storage.audit.plan import AuditPlan
from seglog.storage.audit.report import AuditReport
from seglog.storage.certain_mends import Mend, mends_in_holes, mends_of_places
from seglog.storage.certain_mends.bits import DamagedLog
from seglog.storage.certain_mends.mended_files import MendedFiles
from seglog.storage.certain_mends.repairable import name_repairable, repairable_offsets
from seglog.storage.certain_mends.withheld import not_restated
from seglog.storage.files.files import Files
from seglog.storage.overlay import BatchQueueState, QueueState
from seglog.storage.scan.conclusion import Conclusion, WalkedLog
from seglog.storage.scan.conclusion import conclude as conclude_walk
from seglog.storage.scan.doubt import earlier_doubt
from seglog.storage.scan.message_counts import count_messages, lost_of_store
from seglog.storage.scan.queue_overlays import Overlays, batch_topics, overlay_queues
from seglog.storage.splits.split_scan import SplitScan, Watch
from seglog.storage.splits.splits import owner
from seglog.storage.splits.stitch import LogOutcome, stitch
from seglog.storage.splits.stretches import Stretch


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
        return self.plan.log_start(self.log.end_phy_offset)


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
        with closing(
            SplitScan(files, plan.root, plan.geometry, plan.batch_topics, verify=plan.verify, watch=watch)
        ) as scan:
            log = stitch(plan.splits, first, seen, scan)
            walked_again += log.walked_again
            told = _told_batch_topics(plan, log)
            if not told:
                return Stitched(plan, log, walked_again)
        plan = replace(plan, batch_topics=plan.batch_topics | told)
        seen, again = _with_batch_topics(plan, seen, told, files, watch)
        walked_again += again


@dataclass(frozen=True, slots=True)
class _Concluded:
    """What follows from a log: its queues, and what is wrong."""

    seen: IntervalQueues
    queues: Overlays
    conclusion: Conclusion
    mends: list[Mend]


def report_on(stitched: Stitched, files: Files, watch: Watch | None = None) -> AuditReport:
    """Holds queues, checkpoint and what is known of earlier losses against the log.

    Args:
        stitched: The log.
        files: Where the store is.
        watch: Looks on where splits are walked again.
    """
    plan, log = stitched.plan, stitched.log
    concluded = _conclude(stitched, files, asks_readable=True)
    mends = concluded.mends
    in_holes = _in_holes(stitched, concluded.queues, files)
    if moved := not_restated(mends, concluded.queues.plain):
        shown = MendedFiles(files, plan.root, plan.geometry.segment_size_bytes, moved)
        stitched = _walked_mended(stitched, moved, shown, watch)
        log = stitched.log
        concluded = _conclude(stitched, shown, asks_readable=False)
    seen, queues, conclusion = concluded.seen, concluded.queues, concluded.conclusion
    if mends := [*in_holes, *mends]:
        back = repairable_offsets(mends, queues.plain, queues.batch)
        conclusion = name_repairable(plan, _walked(log), conclusion, mends, back, queues.plain)
    audited = seen.audited(queues)
    states: list[QueueState | BatchQueueState] = [*queues.plain.values(), *queues.batch.values()]
    lost = lost_of_store(conclusion.lost_in_holes, states, conclusion.lost_tail, conclusion.standing)
    return AuditReport(
        plan.root,
        plan.mode,
        plan.verify,
        sum(stretch.records for stretch in log.stretches),
        sum(stretch.size_bytes for stretch in log.stretches),
        tuple(audited),
        log.holes,
        stitched.start,
        log.end_phy_offset,
        tuple(conclusion.findings),
        len(plan.splits),
        stitched.walked_again,
        replace(count_messages(audited, lost), earlier=earlier_doubt(conclusion.standing)),
    )


def _conclude(stitched: Stitched, files: Files, *, asks_readable: bool) -> _Concluded:
    """Returns what follows from a log, with the mends of records that can be read if these are asked for."""
    plan, log = stitched.plan, stitched.log
    mends: list[Mend] = []
    with closing(IntervalQueues(plan, log, files)) as seen:
        queues = overlay_queues(plan, seen, plan.batch_topics, files)
        conclusion = conclude_walk(plan, _walked(log), queues, files)
        if asks_readable:
            with suppress(FileNotFoundError):  # a writer wrote meanwhile: then nothing is damaged
                mends = mends_of_places(seen.excerpt(plan, queues, log.end_phy_offset), files)
    return _Concluded(seen, queues, conclusion, mends)


def _in_holes(stitched: Stitched, queues: Overlays, files: Files) -> list[Mend]:
    plan, log = stitched.plan, stitched.log
    damaged = DamagedLog(
        plan.root,
        plan.geometry.segment_size_bytes,
        log.holes,
        log.end_phy_offset,
        log.tail is not None,
        queues.plain,
        queues.batch,
    )
    return mends_in_holes(damaged, files)


def _walked_mended(stitched: Stitched, mends: Sequence[Mend], files: Files, watch: Watch | None) -> Stitched:
    """Walks the splits again that hold records with mends, which the files show as made."""
    plan = stitched.plan
    splits = [owner(plan.splits, mend.phy_offset) for mend in mends]
    concerned = {split.number for split in splits if split is not None}
    seen = [stretch for stretch in stitched.log.stretches if stretch.split not in concerned]
    seen += _walk_again(plan, concerned, files, watch)
    again = conclude_log(plan, seen, files, watch)
    return replace(again, walked_again=stitched.walked_again + len(concerned) + again.walked_again)


def _walked(log: LogOutcome) -> WalkedLog:
    newest_ms = max((stretch.max_store_timestamp_ms for stretch in log.stretches), default=None)
    last_ms = log.stretches[-1].last_store_timestamp_ms if log.stretches else 0
    # Only the tags codes of tombstones depend on the record CRC, and nothing here does on those.
    return WalkedLog(log.holes, log.tail, log.end_phy_offset, newest_ms, last_ms, record_crc=False)


def _told_batch_topics(plan: AuditPlan, log: LogOutcome) -> frozenset[str]:
    """Returns the topics with batch queues that only inner batches in the log show."""
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
    return found + _walk_again(plan, concerned, files, watch), len(concerned)


def _walk_again(
    plan: AuditPlan, numbers: Collection[int], files: Files, watch: Watch | None
) -> list[Stretch]:
    """Returns what some splits see now."""
    with closing(
        SplitScan(files, plan.root, plan.geometry, plan.batch_topics, verify=plan.verify, watch=watch)
    ) as scan:
        return [stretch for number in sorted(numbers) for stretch in scan.run(plan.splits[number])]
