"""The part of an audit that runs on Spark: tasks walk splits and follow the chains of index files."""

from __future__ import annotations

import bisect
import itertools
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from seglog.doctor.check import SplitOutcome, StoreCheck, walk_split
from seglog.doctor.parts import CheckedFiles
from seglog.errors import CorruptError, SeglogError
from seglog.spark.checked_remote import checked_files
from seglog.spark.numbered_tasks import run_numbered
from seglog.spark.task_errors import ToldError, told_error
from seglog.storage.audit import AuditPlan
from seglog.storage.findings import Finding
from seglog.storage.format.ours import Seal
from seglog.storage.index_check import IndexFacts, chain_finding
from seglog.storage.seals import read_seal
from seglog.storage.splits import KnownRecords

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASKS_A_CORE: Final = 4
_TASK_BYTES: Final = 512 << 20
"""The amount that must be read again if a task is killed."""


@dataclass(frozen=True, slots=True, eq=False)
class StoreWalk:
    """The data that tasks need of one store; they read its seals and index entries from the store itself.

    Attributes:
        plan: The plan of the store, without the data that only a conclusion needs.
        sealed: First offsets of the segments that are compared with seals.
        index: The layout of its index.
        is_closed: Whether the last writer closed the store.
        store: Path or address of the store.
        known: Records of its log that were checked when they were written.
    """

    plan: AuditPlan
    sealed: frozenset[int]
    index: IndexFacts
    is_closed: bool
    store: str
    known: KnownRecords | None = None

    @classmethod
    def of(cls, check: StoreCheck, store: str) -> StoreWalk:
        """Returns the data that tasks need of a store that will be checked."""
        plan = replace(check.plan, queue_files={}, batch_files={}, log_files=[], findings=[])
        index = replace(check.index, findings=())
        return cls(plan, frozenset(check.seals.present), index, check.is_closed, store, check.known)

    @property
    def steps(self) -> int:
        """Number of steps: one for each split, then one for each index file."""
        return len(self.plan.splits) + len(self.index.outlines)

    def do(self, step: int, files: CheckedFiles) -> tuple[SplitOutcome | None, list[Finding]]:
        """Walks a split, or follows the chains of an index file.

        Args:
            step: Number of the step, below :attr:`steps`.
            files: Access to the store.

        Returns:
            The outcome of the split, None for an index file; the findings on an index file, and files that
            could not be read so far.
        """
        splits = self.plan.splits
        if step < len(splits):
            split = splits[step]
            seal = self._seal(split.segment_end - self.plan.geometry.segment_size_bytes, files)
            return walk_split(self.plan, files, split, seal, self.index, known=self.known), files.findings
        outline = self.index.outlines[step - len(splits)]
        finding = chain_finding(files, outline.file, is_closed=self.is_closed)
        return None, [*files.findings, *([finding] if finding is not None else [])]

    def _seal(self, first: int, files: CheckedFiles) -> Seal | None:
        if first not in self.sealed:
            return None
        try:
            return read_seal(files, self.plan.root, first)
        except CorruptError:  # the seal was changed after the driver read it
            return None


@dataclass(slots=True)
class Walked:
    """The results of the tasks for one store.

    Attributes:
        outcomes: The outcomes of all its splits, in order.
        of_chains: The findings on the chains of its index.
        unreadable: Files that the tasks could not read.
        error: Why the store could not be walked; all other attributes have no meaning then.
    """

    outcomes: list[SplitOutcome] = field(default_factory=list)
    of_chains: list[Finding] = field(default_factory=list)
    unreadable: list[Finding] = field(default_factory=list)
    error: SeglogError | None = None


def walk_on_spark(walks: Sequence[StoreWalk], spark: SparkSession, *, goes_on: bool = False) -> list[Walked]:
    """Walks all splits of stores in one job, and returns the results for each store.

    Args:
        walks: The data that tasks need of the stores.
        spark: The session.
        goes_on: Whether a store that fails during the job is reported, instead of ending the job.
    """
    firsts = [0, *itertools.accumulate(walk.steps for walk in walks)]

    def do_step(number: int) -> bytes:
        store = bisect.bisect_right(firsts, number) - 1
        walk = walks[store]
        try:
            seen = walk.do(number - firsts[store], checked_files(walk.store)[0])
        except (OSError, SeglogError) as error:
            if not goes_on:
                raise
            return pickle.dumps((store, told_error(error), []))
        return pickle.dumps((store, *seen))

    found = [Walked() for _walk in walks]
    tasks = _task_count(walks, spark.sparkContext.defaultParallelism)
    # One at a time: as Python objects the outcomes take many times the memory of their pickles.
    for made in run_numbered(spark, firsts[-1], tasks, do_step):
        store, outcome, findings = pickle.loads(made)  # noqa: S301 - written by our own tasks
        if isinstance(outcome, ToldError):
            found[store].error = found[store].error or outcome.error()
        elif outcome is not None:
            found[store].outcomes.append(outcome)
        for finding in findings:
            is_unreadable = finding.code == "file-unreadable"
            (found[store].unreadable if is_unreadable else found[store].of_chains).append(finding)
    for walked in found:
        walked.outcomes.sort(key=lambda outcome: outcome.split)
    return found


def _task_count(walks: Sequence[StoreWalk], parallelism: int) -> int:
    """Returns the number of tasks: a few for each core, and more if a task would read more than 512 MiB."""
    log_bytes = sum(split.end - split.start for walk in walks for split in walk.plan.splits)
    return max(_TASKS_A_CORE * parallelism, -(-log_bytes // _TASK_BYTES))
