"""The queues of a log of which splits saw runs of records, held against their files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace

from seglog.storage.audit.batch_audit import overlay_batch
from seglog.storage.audit.intact_queue import NO_UNITS, is_intact
from seglog.storage.audit.log_excerpt import LogExcerpt, excerpt
from seglog.storage.audit.log_lookup import LogLookup
from seglog.storage.audit.plan import AuditPlan
from seglog.storage.audit.queue_audit import LogExtent, audit_queue, overlay
from seglog.storage.audit.report import AuditQueue
from seglog.storage.directory.queue_files import QueueFiles
from seglog.storage.files.files import Files
from seglog.storage.overlay import BatchQueueState, QueueState
from seglog.storage.scan.queue_overlays import Key, Overlays
from seglog.storage.splits.stitch import LogOutcome
from seglog.storage.splits.stretches import BatchRun, Interval


class IntervalQueues:
    """The queues of a log: a :class:`~seglog.storage.scan.queue_overlays.SeenQueues`.

    Args:
        plan: What the listing shows.
        log: What the splits saw.
        files: Where the store is.
    """

    def __init__(self, plan: AuditPlan, log: LogOutcome, files: Files) -> None:
        self._files = files
        self._geometry = plan.geometry
        self._intervals: defaultdict[Key, list[Interval]] = defaultdict(list)
        self._runs: defaultdict[Key, list[BatchRun]] = defaultdict(list)
        for stretch in log.stretches:
            for interval in stretch.intervals:
                self._intervals[interval.topic, interval.queue_id].append(interval)
            for run in stretch.batch_runs:
                self._runs[run.topic, run.queue_id].append(run)
        self.plain: Collection[Key] = list(self._intervals)
        self.batch: Collection[Key] = list(self._runs)
        self._audited: dict[Key, AuditQueue] = {}
        self._lookup = LogLookup(files, plan.root, plan.geometry, log.stretches)
        start = plan.log_start(log.end_phy_offset)
        self._log = LogExtent(start, log.end_phy_offset, log.holes, plan.mode == "normal", self._lookup)

    def overlay(self, queue: QueueFiles) -> QueueState:
        """Returns what a plain queue must hold, held against its files."""
        key, size = (queue.topic, queue.queue_id), self._geometry.queue_file_size_bytes
        intervals = self._intervals[key]
        if is_intact(queue, intervals, self._log, self._files, size):
            # Its units need not be held, which they are of all queues that are not as they should be.
            first, end = intervals[0].first_queue_offset, intervals[-1].end_queue_offset
            return QueueState(*key, end, NO_UNITS, first, [], agrees=True)
        return overlay(queue, intervals, self._log, self._files, size)

    def overlay_batch(self, queue: QueueFiles) -> BatchQueueState:
        """Returns what a batch queue must hold, held against its files."""
        key, size = (queue.topic, queue.queue_id), self._geometry.batch_file_size_bytes
        state, self._audited[key] = overlay_batch(queue, self._runs[key], self._log, self._files, size)
        return state

    def audited(self, queues: Overlays) -> list[AuditQueue]:
        """Returns all queues as they are, sorted; what they know of lost messages was taken up."""
        found = [audit_queue(state, self._intervals[key]) for key, state in queues.plain.items()]
        for key, batch in queues.batch.items():
            audited = self._audited[key]
            found.append(replace(audited, min_offset=batch.min_offset, max_offset=batch.max_offset))
        return sorted(found, key=lambda queue: (queue.topic, queue.queue_id))

    def excerpt(self, plan: AuditPlan, queues: Overlays, end_phy_offset: int) -> LogExcerpt:
        """Returns the records that mends of readable records ask for."""
        return excerpt(plan, queues, self._intervals, self._lookup, end_phy_offset, self._files)

    def close(self) -> None:
        """Closes the file that was read last."""
        self._lookup.close()
