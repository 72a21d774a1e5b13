"""The part of an audit that runs on Spark: every split of every store is walked by some task."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from seglog.doctor.check import StoreCheck
from seglog.doctor.forgiving_files import ForgivingFiles
from seglog.doctor.index_entries import IndexEntries
from seglog.doctor.log_walk import LogWalk, SplitOutcome
from seglog.doctor.record_watch import IndexFacts
from seglog.errors import CorruptError, NotFoundError
from seglog.spark.audit.outcome_rows import from_table, spark_schema, to_batch
from seglog.storage.audit.plan import AuditPlan
from seglog.storage.audit.splits import DEFAULT_SPLIT_BYTES
from seglog.storage.findings import Finding
from seglog.storage.format.seal import Seal
from seglog.storage.seal_files import read_seal

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class StoreWalk:
    """What tasks must know of one store; its seals and index they read where they are.

    Attributes:
        plan: Its plan, without what only a conclusion needs.
        sealed: First offsets of the segments that are held against seals.
        has_tags: Whether tags are among the keys of its index.
        end_phy_offset: Records from here on need no entries in the index.
    """

    plan: AuditPlan
    sealed: frozenset[int]
    has_tags: bool
    end_phy_offset: int

    @classmethod
    def of(cls, check: StoreCheck) -> StoreWalk:
        """Returns what tasks must know of a store that is to be checked."""
        plan = replace(check.plan, queue_files={}, batch_files={}, log_files=[], findings=[])
        index = check.index
        return cls(plan, frozenset(check.seals.present), index.has_tags, index.end_phy_offset)

    def open(self, files: ForgivingFiles) -> LogWalk:
        """Returns the walk over the store."""
        root = self.plan.root

        def seal_of(first: int) -> Seal | None:
            if first not in self.sealed:
                return None
            try:
                return read_seal(files, root, first)
            except (CorruptError, NotFoundError, FileNotFoundError):  # it was there a moment ago
                return None

        entries = IndexEntries(files, root, is_closed=False)
        return LogWalk(self.plan, files, seal_of, IndexFacts(entries, self.has_tags, self.end_phy_offset))


@dataclass(slots=True)
class Walked:
    """What the tasks saw of one store.

    Attributes:
        outcomes: Of all its splits, in order.
        unreadable: Files that they could not read.
    """

    outcomes: list[SplitOutcome] = field(default_factory=list)
    unreadable: list[Finding] = field(default_factory=list)


def walk_on_spark(walks: Sequence[StoreWalk], spark: SparkSession) -> list[Walked]:
    """Walks all splits of stores in one job, and returns what was seen of each."""
    found = [Walked() for _walk in walks]
    if any(walk.plan.splits for walk in walks):
        for store, outcome, unreadable in from_table(outcomes_frame(walks, spark).toArrow()):
            found[store].outcomes.append(outcome)
            found[store].unreadable += unreadable
    for walked in found:
        walked.outcomes.sort(key=lambda outcome: outcome.split)
    return found


def outcomes_frame(walks: Sequence[StoreWalk], spark: SparkSession) -> DataFrame:
    """Returns the table of outcomes, :data:`~seglog.spark.audit.outcome_rows.OUTCOME`, not computed yet."""
    firsts = [0, *itertools.accumulate(len(walk.plan.splits) for walk in walks)]
    count = firsts[-1]
    numbers = spark.range(0, count, 1, _task_count(walks, count, spark.sparkContext.defaultParallelism))
    return numbers.mapInArrow(_walker(walks, firsts), spark_schema())


def _walker(
    walks: Sequence[StoreWalk], firsts: Sequence[int]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns what a task does: it takes numbers of splits, counted over all stores."""

    def walk_splits(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        opened: tuple[int, ForgivingFiles, LogWalk] | None = None
        for batch in batches:
            for number in batch.column(0).to_pylist():
                store = bisect.bisect_right(firsts, number) - 1
                if opened is None or opened[0] != store:
                    files = ForgivingFiles(walks[store].plan.root)
                    opened = store, files, walks[store].open(files)
                _store, files, walk = opened
                outcome = walk.look_at(walks[store].plan.splits[number - firsts[store]])
                yield to_batch(store, outcome, files.findings)

    return walk_splits


def _task_count(walks: Sequence[StoreWalk], splits: int, parallelism: int) -> int:
    """Returns one task for each split, or for as many small ones as make a split of the default length."""
    log_bytes = sum(split.end - split.start for walk in walks for split in walk.plan.splits)
    return max(1, min(splits, max(parallelism, -(-log_bytes // DEFAULT_SPLIT_BYTES))))
