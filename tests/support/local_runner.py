"""Runs the phases of a compaction in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from typing_extensions import override

from seglog.doctor.check.check import StoreCheck
from seglog.doctor.check.check_report import CheckReport
from seglog.spark.compact.phases import decide_part, keyed_rows, losers_of
from seglog.spark.compact.records import Asked
from seglog.spark.compact.summary import QueuePart
from seglog.spark.compact.task import Task, scan_split
from seglog.spark.compact.writing import SegmentPlan, WrittenSegment, write_segment
from seglog.spark.making.spills import Key
from seglog.storage.audit.plan import AuditPlan
from seglog.storage.files.files import RestoringFiles
from seglog.storage.kernels.key_winners import KEYED
from seglog.storage.splits.known_records import KnownRecords
from seglog.storage.splits.stretches import Stretch

T = TypeVar("T")
R = TypeVar("R")


class LocalRunner:
    """Runs all phases in this process, one after the other."""

    def __init__(self, files: RestoringFiles) -> None:
        self._files = files

    def scan(self, plan: AuditPlan, asked: Asked, staged: Path | None) -> Iterable[Stretch]:
        """Walks the log."""
        for number in range(len(plan.splits)):
            yield from scan_split(self._files, plan, asked, number, staged)

    def check(self, root: Path, known: KnownRecords | None) -> CheckReport:
        """Checks a store."""
        return StoreCheck(root, known=known).run(None, lambda: False, None, resume=False)

    def decide(self, task: Task, staged: Path | None) -> Sequence[QueuePart]:
        """Runs phases 2 to 4."""
        parts = [keyed_rows(self._files, task, part, staged) for part in range(task.parts)]
        losers = losers_of(np.concatenate([np.zeros(0, KEYED), *parts]))
        return [
            one
            for part in range(task.parts)
            for one in decide_part(self._files, task, part, losers[losers["part"] == part], staged)
        ]

    def write_segments(
        self, task: Task, staged: Path, plans: Sequence[SegmentPlan], begins: Mapping[Key, int]
    ) -> Sequence[WrittenSegment]:
        """Runs phase 5."""
        return [write_segment(self._files, task, staged, plan, begins) for plan in plans]

    def each(self, staged: Path, do: Callable[[RestoringFiles, T], R], work: Sequence[T]) -> Sequence[R]:
        """Calls a function for each piece of work."""
        return [do(self._files, one) for one in work]


class RepeatingRunner(LocalRunner):
    """Does each piece of work several times, as tasks do that are killed when they have written everything.

    Args:
        files: The files.
        times: How often.

    Attributes:
        repeated: How many pieces were done again.
    """

    def __init__(self, files: RestoringFiles, times: int) -> None:
        super().__init__(files)
        self._times = times
        self.repeated = 0

    @override
    def write_segments(
        self, task: Task, staged: Path, plans: Sequence[SegmentPlan], begins: Mapping[Key, int]
    ) -> Sequence[WrittenSegment]:
        return self.each(staged, lambda files, plan: write_segment(files, task, staged, plan, begins), plans)

    @override
    def decide(self, task: Task, staged: Path | None) -> Sequence[QueuePart]:
        return [super(RepeatingRunner, self).decide(task, staged) for _ in range(self._times)][-1]

    @override
    def each(self, staged: Path, do: Callable[[RestoringFiles, T], R], work: Sequence[T]) -> Sequence[R]:
        found = []
        for one in work:
            made = [do(self._files, one) for _ in range(self._times)]
            self.repeated += 1
            assert made == made[:1] * self._times
            found.append(made[-1])
        return found
