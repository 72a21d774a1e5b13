"""Plans a compaction of a store, and puts the new store in its place."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from seglog.clock import Clock, SystemClock
from seglog.errors import InvalidArgumentError, NotFoundError
from seglog.spark.compact.phases import Runner, by_queue
from seglog.spark.compact.plan import (
    CompactionPlan,
    check_audit,
    check_movable,
    compaction_topics,
    make_plan,
    make_task,
)
from seglog.spark.compact.policy import Policy
from seglog.spark.compact.staging import (
    begin_staging,
    finish_staging,
    keep_empty_queues,
    write_compaction_logs,
)
from seglog.spark.compact.swap import (
    Manifest,
    check_swappable,
    clear_rubbish,
    files_around,
    finish_swap,
    new_store,
    old_store,
    state_of_store,
    write_manifest,
)
from seglog.storage.audit import conclude_log, plan_audit, report_on
from seglog.storage.files import SwappingFiles
from seglog.storage.format.names import segment_file_name
from seglog.storage.splits import DEFAULT_SPLIT_BYTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PARTS_OF_A_SEGMENT = 16
"""So that a new segment ends at most a sixteenth short."""
_SALT_BITS = 63


@dataclass(frozen=True, slots=True)
class Compacted:
    """What was done.

    Attributes:
        plan: What was asked, and what came of it.
        is_done: Whether there is a new store; False where nothing was to be dropped.
        was_finished: Whether an earlier run had been interrupted, and all that was done is finishing it.
        old: Where the old store is until it is discarded; None if nothing was done.
    """

    plan: CompactionPlan | None
    is_done: bool
    was_finished: bool
    old: Path | None


@dataclass(frozen=True, slots=True)
class Compaction:
    """A compaction of one store.

    Attributes:
        root: The store directory; every machine of the cluster must see it there.
        policies: What is asked, by topic; None for what topics say themselves.
        allow_undelivered: Whether messages may go that a group has still to read.
        split_bytes: Bytes of the log that a task reads at a time; None for what suits its segments.
        runner: Who runs the phases; Spark if None.
        files: Where the store is, and the folder beside it; None for the real ones.
        clock: The time.
        draw: Returns a random number of so many bits.
    """

    root: Path
    policies: Mapping[str, Policy] | None = None
    allow_undelivered: bool = False
    split_bytes: int | None = None
    runner: Runner | None = None
    files: SwappingFiles | None = None
    clock: Clock = SystemClock()  # noqa: RUF009 - it has no state
    draw: Callable[[int], int] = secrets.randbits

    def plan(self, spark: SparkSession | None = None) -> CompactionPlan:
        """Returns what would be done; writes nothing.

        Raises:
            NotFoundError: There is no store, or no topic of which anything is asked.
            StoreError: The store is damaged or was not closed.
            UnsupportedStoreError: Its records cannot be moved.
        """
        return self._plan(spark, None)

    def apply(self, spark: SparkSession | None = None) -> Compacted:
        """Makes a new store and puts it in place; first finishes what an interrupted run left to do.

        Raises:
            As :meth:`plan`, and:
            StoreLockedError: A broker or another process has the store open.
            InvalidArgumentError: What was the store before the last compaction is still there.
            FullError: No space; the store is as it was.
        """
        root, files = self.root.resolve(), self._files
        if not files.exists(root) and not finish_swap(files, root):
            raise NotFoundError(f"there is no store at {root}")
        lock = files.lock(root)
        try:
            if files.exists(new_store(root)) and finish_swap(files, root):
                return Compacted(None, is_done=True, was_finished=True, old=old_store(root))
            clear_rubbish(files, root)
            if files.exists(old_store(root)):
                return self._nothing_to_do(spark)
            staged = new_store(root)
            plan = self._plan(spark, staged)
            if not plan.dropped:
                clear_rubbish(files, root)
                return Compacted(plan, is_done=False, was_finished=False, old=None)
            self._write(spark, plan, staged)
            finish_swap(files, root)
            return Compacted(plan, is_done=True, was_finished=False, old=old_store(root))
        finally:
            lock.release()

    @property
    def _files(self) -> SwappingFiles:
        return self.files or files_around(self.root.resolve())

    def _nothing_to_do(self, spark: SparkSession | None) -> Compacted:
        plan = self._plan(spark, None)
        if plan.dropped:
            raise InvalidArgumentError(
                f"{old_store(plan.root)} is what the last compaction replaced",
                help="discard it first, or put it back",
            )
        return Compacted(plan, is_done=False, was_finished=False, old=old_store(plan.root))

    def _plan(self, spark: SparkSession | None, staged: Path | None) -> CompactionPlan:
        files, root = self._files, self.root.resolve()
        listed = plan_audit(root, files, split_bytes=DEFAULT_SPLIT_BYTES)
        segment = listed.geometry.segment_size_bytes
        split_bytes = self.split_bytes or min(DEFAULT_SPLIT_BYTES, max(1024, segment // _PARTS_OF_A_SEGMENT))
        listed = plan_audit(root, files, split_bytes=split_bytes)
        runner = self._runner(spark)
        stitched = conclude_log(listed, runner.scan(listed), files)
        audit = report_on(stitched, files)
        check_audit(audit)
        check_movable(files, root, audit)
        check_swappable(files, root)
        policies = self.policies
        if policies is None:
            policies = dict.fromkeys(sorted(compaction_topics(files, root)), Policy(compact=True))
        task = make_task(
            files,
            stitched.plan,
            stitched.log,
            audit,
            policies,
            now_ms=self.clock.now_ms(),
            salt=self.draw(_SALT_BITS),
            allow_undelivered=self.allow_undelivered,
        )
        if staged is not None:
            begin_staging(files, root, staged)
        return make_plan(task, audit, runner, staged, allow=self.allow_undelivered)

    def _write(self, spark: SparkSession | None, plan: CompactionPlan, staged: Path) -> None:
        files, runner = self._files, self._runner(spark)
        written = runner.write_segments(plan.task, staged, plan.segments, plan.begins)
        slices = by_queue(one for segment in written for one in segment.slices)
        keep_empty_queues(files, plan, staged)
        write_compaction_logs(files, plan, staged, slices)
        runner.write_queues(staged, slices, plan.task.geometry.queue_file_size_bytes)
        finish_staging(files, plan, staged, written, runner, self.clock)
        manifest = Manifest(
            plan.segments[0].first,
            state_of_store(files, plan.root),
            state_of_store(files, staged),
            self.clock.now_ms(),
            tuple((segment_file_name(one.first), one.used_bytes, one.records, one.crc) for one in written),
        )
        _sync_tree(files, staged)
        write_manifest(files, plan.root, manifest)

    def _runner(self, spark: SparkSession | None) -> Runner:
        if self.runner is not None:
            return self.runner
        if spark is None:
            raise InvalidArgumentError("no Spark session and no runner")
        from seglog.spark.compact.job import SparkRunner

        return SparkRunner(spark)


def _sync_tree(files: SwappingFiles, folder: Path) -> None:
    """Brings a new store to the disk, whole, before anything says that it is."""
    for entry in files.list_dir(folder):
        if entry.is_dir:
            _sync_tree(files, folder / entry.name)
            continue
        handle = files.open(folder / entry.name, writable=True)
        handle.sync()
        handle.close()
    files.sync_dir(folder)
