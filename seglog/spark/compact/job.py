"""The phases of a compaction on Spark: one job each. No record is ever on the driver or in Java.

Tasks pass data to other tasks in files beside the new store, which every machine must see. A task that runs
twice writes the same bytes under the same name. A plan writes no files: it shuffles the same rows instead, 37
bytes for every record with a key (queue, hash, place), then 9 for every record that is dropped. Many rows are
packed into one value, so that neither Java nor Python handles each row separately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from seglog.doctor.check import CheckReport
from seglog.spark.audit.stores import audit_store
from seglog.spark.compact.phases import LOSER, decide_alone, decide_parts, keyed_rows_of, losers_of, share_of
from seglog.spark.compact.records import Asked
from seglog.spark.compact.shares import (
    KEYED_ROWS,
    LOSERS,
    Groups,
    load_rows,
    packed,
    save_rows,
    unpacked,
)
from seglog.spark.compact.summary import QueuePart
from seglog.spark.compact.swap import files_around
from seglog.spark.compact.task import Task, scan_split
from seglog.spark.compact.writing import SegmentPlan, WrittenSegment, write_segment
from seglog.spark.making.each import run_each, task_count
from seglog.spark.making.spills import Key
from seglog.spark.numbered_tasks import keeping, numbered, run_numbered
from seglog.storage.audit import AuditPlan
from seglog.storage.files import RestoringFiles
from seglog.storage.kernels.key_winners import KEYED
from seglog.storage.splits import KnownRecords, Stretch, UnitFiles

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

_TOGETHER: Final = 1 << 21
"""Number of records that one task compares, or decides on: 37 bytes each with keys, 16 for their table."""
Packed = tuple[int, bytes]
"""The number of the receiving task, and rows of one dtype as bytes."""
T = TypeVar("T")
R = TypeVar("R")


class SparkRunner:
    """Runs the phases in a session.

    Args:
        spark: The session.
        together: Number of records that one task compares, or decides on. A single task decides on a log with
            no more records, because saving two jobs and the files of rows is worth more than a second core.
    """

    def __init__(self, spark: SparkSession, together: int = _TOGETHER) -> None:
        self._spark = spark
        self._together = together

    def scan(self, plan: AuditPlan, asked: Asked, staged: Path | None) -> Iterator[Stretch]:
        """Walks the log."""
        plan = replace(plan, queue_files={}, batch_files={}, log_files=[], findings=[])  # what tasks need

        def walk(numbers: Iterable[int]) -> Iterator[list[Stretch]]:
            files = files_around(plan.root)
            units = UnitFiles(files, plan.root, plan.geometry.queue_file_size_bytes)
            for number in numbers:
                yield list(scan_split(files, plan, asked, number, staged, units))

        count = len(plan.splits)
        for stretches in numbered(self._spark, count, task_count(self._spark, count), walk).collect():
            yield from stretches

    def check(self, root: Path, known: KnownRecords | None) -> CheckReport:
        """Checks a store."""
        return audit_store(root, spark=self._spark, known=known)

    def decide(self, task: Task, staged: Path | None) -> Sequence[QueuePart]:
        """Runs phases 2 to 4: as one task, as jobs that pass rows in files, or as jobs with a shuffle."""
        cores = self._spark.sparkContext.defaultParallelism
        shares = max(cores, -(-task.records // self._together))
        groups = Groups(task.parts, shares)  # more tasks would take longer to start than to run
        if staged is None:
            found = self._shuffled(task, shares, groups).collect()
        elif _compares(task) and not task.compaction and task.records <= self._together:
            found = self._alone(task, staged)
        else:
            found = self._left(task, staged, shares, groups)
        every = (one for parts in found for one in parts)
        return sorted(every, key=lambda one: (one.part, one.topic, one.queue_id))

    def write_segments(
        self, task: Task, staged: Path, plans: Sequence[SegmentPlan], begins: Mapping[Key, int]
    ) -> Sequence[WrittenSegment]:
        """Runs phase 5 as one job, one task for each segment."""
        return self.each(staged, lambda files, plan: write_segment(files, task, staged, plan, begins), plans)

    def each(self, staged: Path, do: Callable[[RestoringFiles, T], R], work: Sequence[T]) -> Sequence[R]:
        """Calls a function for each piece of work, as one job whose tasks take several pieces each."""
        return run_each(self._spark, staged.parent.parent, do, work)

    def _alone(self, task: Task, staged: Path) -> list[list[QueuePart]]:
        """Decides in one task."""
        root = task.root
        return self._run(1, lambda _number: decide_alone(files_around(root), task, staged))

    def _left(self, task: Task, staged: Path, shares: int, groups: Groups) -> list[list[QueuePart]]:
        """Decides in jobs that pass rows in files beside the new store."""
        root = task.root
        makers, shared = staged / KEYED_ROWS, staged / LOSERS

        def scan(group: int) -> None:
            rows = keyed_rows_of(files_around(root), task, groups.parts(group), staged)
            save_rows(files_around(root), makers / str(group), rows, share_of(rows, shares), shares)

        def compare(share: int) -> None:
            files = files_around(root)
            every = (makers / str(group) for group in range(groups.count))
            losers = losers_of(load_rows(files, every, KEYED, share))
            save_rows(files, shared / str(share), losers, groups.of(losers["part"]), groups.count)

        def decide(group: int) -> list[QueuePart]:
            files = files_around(root)
            every = (shared / str(share) for share in range(shares))
            losers = load_rows(files, every, LOSER, group)
            return decide_parts(files, task, groups.parts(group), losers, staged)

        if _compares(task):
            self._run(groups.count, scan)
            self._run(shares, compare)
        else:
            shares = 0
        return self._run(groups.count, decide)

    def _shuffled(self, task: Task, shares: int, groups: Groups) -> RDD[list[QueuePart]]:
        """Decides in jobs that pass rows by Spark's shuffle."""
        root = task.root

        def scan(numbers: Iterable[int]) -> Iterator[Packed]:
            for group in numbers:
                rows = keyed_rows_of(files_around(root), task, groups.parts(group), None)
                yield from packed(rows, share_of(rows, shares), shares)

        def compare(found: Iterable[Packed]) -> Iterator[Packed]:
            losers = losers_of(unpacked(found, KEYED))
            return packed(losers, groups.of(losers["part"]), groups.count)

        def decide(group: int, found: Iterable[Packed]) -> Iterator[list[QueuePart]]:
            yield decide_parts(files_around(root), task, groups.parts(group), unpacked(found, LOSER), None)

        if _compares(task):
            keyed = numbered(self._spark, groups.count, groups.count, scan)
            losers = keyed.partitionBy(shares, int).mapPartitions(keeping(compare))
            losers = losers.partitionBy(groups.count, int)
        else:
            losers = numbered(self._spark, groups.count, groups.count, lambda _numbers: iter(()))
        return losers.mapPartitionsWithIndex(decide)

    def _run(self, count: int, do: Callable[[int], R]) -> list[R]:
        return run_numbered(self._spark, count, task_count(self._spark, count), do)


def _compares(task: Task) -> bool:
    """Whether any keys are compared."""
    return any(policy.compact for policy in task.policies.values())
