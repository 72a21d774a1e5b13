"""Runs the phases of a compaction in this process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from seglog.doctor.check.check import check_store
from seglog.doctor.check.check_report import CheckReport
from seglog.spark.compact.phases import KEYED, decide_part, keyed_rows, losers_of
from seglog.spark.compact.queues import write_queue
from seglog.spark.compact.records import Key
from seglog.spark.compact.summary import QueuePart
from seglog.spark.compact.task import Task
from seglog.spark.compact.writing import (
    QueueSlice,
    SegmentPlan,
    WrittenSegment,
    write_segment,
)
from seglog.storage.audit.plan import AuditPlan
from seglog.storage.files.files import RestoringFiles
from seglog.storage.splits.split_scan import SplitScan
from seglog.storage.splits.stretches import Stretch


class LocalRunner:
    """Runs all phases in this process, one after the other."""

    def __init__(self, files: RestoringFiles) -> None:
        self._files = files

    def scan(self, plan: AuditPlan) -> Iterable[Stretch]:
        """Walks the log."""
        scan = SplitScan(self._files, plan.root, plan.geometry, plan.batch_topics, verify=plan.verify)
        try:
            for split in plan.splits:
                yield from scan.run(split)
        finally:
            scan.close()

    def check(self, root: Path) -> CheckReport:
        """Checks a store."""
        return check_store(root)

    def decide(self, task: Task, staged: Path | None) -> Sequence[QueuePart]:
        """Runs phases 1 to 3."""
        parts = [keyed_rows(self._files, task, part) for part in range(task.parts)]
        losers = losers_of(task, np.concatenate([np.zeros(0, KEYED), *parts]))
        return [
            one
            for part in range(task.parts)
            for one in decide_part(self._files, task, part, losers[losers["part"] == part], staged)
        ]

    def write_segments(
        self, task: Task, staged: Path, plans: Sequence[SegmentPlan], begins: Mapping[Key, int]
    ) -> Sequence[WrittenSegment]:
        """Runs phase 4."""
        return [write_segment(self._files, task, staged, plan, begins) for plan in plans]

    def write_queues(
        self, staged: Path, queues: Mapping[Key, Sequence[QueueSlice]], file_bytes: int
    ) -> Mapping[Key, int]:
        """Runs phase 5."""
        return {
            key: write_queue(self._files, staged, *key, slices, file_bytes) for key, slices in queues.items()
        }
