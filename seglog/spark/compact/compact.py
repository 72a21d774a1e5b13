"""Plans a compaction of a store, and replaces the store by the new one."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from seglog.clock import Clock, SystemClock
from seglog.errors import InvalidArgumentError, SeglogError
from seglog.spark.compact.compaction_logs import compaction_queues, write_compaction_log
from seglog.spark.compact.phases import Runner
from seglog.spark.compact.plan import (
    CompactionPlan,
    ask,
    check_audit,
    check_movable,
    compaction_topics,
    make_plan,
    make_task,
)
from seglog.spark.compact.policy import Policy
from seglog.spark.compact.staging import (
    begin_staging,
    check_staged,
    copy_tables,
    finish_staging,
    keep_empty_queues,
)
from seglog.spark.compact.swap import (
    Manifest,
    check_swappable,
    clear_rubbish,
    files_around,
    finish_swap,
    new_store,
    old_store,
    read_manifest,
    state_of_store,
    turn_back_text,
    write_manifest,
)
from seglog.spark.compact.writing import WrittenSegment
from seglog.spark.making.derived import by_queue
from seglog.spark.making.index_files import plan_index, write_index_file
from seglog.spark.making.made_tree import sync_tree
from seglog.spark.making.queues import write_queue
from seglog.spark.task_errors import job_errors
from seglog.storage.audit import conclude_log, plan_audit, report_on
from seglog.storage.directory import demand_own_parts, demand_store, no_store
from seglog.storage.files import SwappingFiles, check_writable, explained
from seglog.storage.format.names import INDEX, segment_file_name
from seglog.storage.format.queue import COMPACTION, POSITION_FILE, encode_positions
from seglog.storage.small_files import dropped_offsets, note_dropped
from seglog.storage.splits import DEFAULT_SPLIT_BYTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PARTS_OF_A_SEGMENT = 16
"""A segment has this many parts at least, so a new segment ends at most a sixteenth short."""
_SALT_BITS = 63


@dataclass(frozen=True, slots=True)
class Compacted:
    """The result of a compaction.

    Attributes:
        plan: The plan that was carried out.
        is_done: Whether there is a new store; False if there was nothing to drop.
        was_finished: Whether this run only finished an earlier run that was interrupted.
        old: Path of the old store until it is discarded; None if nothing was done.
    """

    plan: CompactionPlan | None
    is_done: bool
    was_finished: bool
    old: Path | None


@dataclass(frozen=True, slots=True)
class Compaction:
    """A compaction of one store.

    Attributes:
        root: The store directory; every machine of the cluster must be able to read it.
        policies: The policies, by topic; None takes them from the attributes of the topics.
        allow_undelivered: Whether messages may be dropped that a group has not read.
        split_bytes: Bytes of the log that a task reads at a time; None derives it from the segment size.
        runner: Runs the phases; None for Spark.
        files: Access to the store and the folder beside it; None for the real files.
        clock: The time.
        draw: Returns a random number of the given number of bits.
    """

    root: Path
    policies: Mapping[str, Policy] | None = None
    allow_undelivered: bool = False
    split_bytes: int | None = None
    runner: Runner | None = None
    files: SwappingFiles | None = None
    clock: Clock = SystemClock()  # noqa: RUF009 - it has no state
    draw: Callable[[int], int] = secrets.randbits

    @explained()
    def check(self, *, apply: bool = False) -> None:
        """Checks that there is a store, or a new store that waits to replace it; needs no Spark.

        Args:
            apply: Whether :meth:`apply` follows, and not :meth:`plan`.

        Raises:
            NotFoundError: There is no store.
            NotAStoreError: The path is not a store.
            UnsupportedStoreError: A store of another kind, or its folder cannot be exchanged for another.
            ReadOnlyError: Its file system is mounted read-only.
            StoreError: The parent folder may not be written.
        """
        root, files = self.root.resolve(), self._files
        if apply:
            check_writable(root.parent)
        if apply and not files.exists(root) and read_manifest(files, root) is not None:
            return
        demand_store(files, root)
        demand_own_parts(files, root)
        check_swappable(files, root)

    @job_errors()
    def plan(self, spark: SparkSession | None = None) -> CompactionPlan:
        """Returns the plan; writes nothing.

        Raises:
            NotFoundError: There is no store, or no topic with a policy.
            StoreError: The store is damaged or was not closed.
            UnsupportedStoreError: Its records cannot be moved.
        """
        return self._plan(spark, None)

    @job_errors()
    def apply(self, spark: SparkSession | None = None) -> Compacted:
        """Writes a new store and puts it in place; finishes an interrupted run first.

        Raises:
            As :meth:`plan`, and:
            StoreLockedError: A broker or another process has the store open.
            InvalidArgumentError: The old store of the last compaction was not discarded yet.
            FullError: No space; the store is unchanged.
            ReadOnlyError: The file system is mounted read-only.
        """
        root, files = self.root.resolve(), self._files
        if not files.exists(root) and not finish_swap(files, root):
            raise no_store(root)
        lock = files.lock(root)
        try:
            if files.exists(new_store(root)) and finish_swap(files, root):
                return Compacted(None, is_done=True, was_finished=True, old=old_store(root))
            clear_rubbish(files, root)
            if files.exists(old_store(root)):
                return self._nothing_to_do(spark)
            staged = new_store(root)
            try:
                plan = self._plan(spark, staged)
            except SeglogError:
                clear_rubbish(files, root)
                raise
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
                help=turn_back_text(plan.root),
            )
        return Compacted(plan, is_done=False, was_finished=False, old=old_store(plan.root))

    def _plan(self, spark: SparkSession | None, staged: Path | None) -> CompactionPlan:
        files, root = self._files, self.root.resolve()
        demand_own_parts(files, root)
        listed = plan_audit(root, files, split_bytes=DEFAULT_SPLIT_BYTES)
        segment = listed.geometry.segment_size_bytes
        split_bytes = self.split_bytes or min(DEFAULT_SPLIT_BYTES, max(1024, segment // _PARTS_OF_A_SEGMENT))
        listed = plan_audit(root, files, split_bytes=split_bytes)
        runner = self._runner(spark)
        policies = self.policies
        if policies is None:
            policies = dict.fromkeys(sorted(compaction_topics(files, root)), Policy(compact=True))
        asked = ask(listed, policies, self.draw(_SALT_BITS))
        if staged is not None:
            begin_staging(files, staged)
        stitched = conclude_log(listed, runner.scan(listed, asked, staged), files)
        audit = report_on(stitched, files)
        division = listed.index_division(files)
        check_audit(audit, is_left=listed.is_rescan_due and division is None)
        check_movable(files, root, audit)
        check_swappable(files, root)
        task = make_task(
            files,
            stitched.plan,
            stitched.log,
            audit,
            policies,
            asked,
            now_ms=self.clock.now_ms(),
            allow_undelivered=self.allow_undelivered,
        )
        if staged is not None:
            copy_tables(files, root, staged)
        return make_plan(task, audit, division, runner, staged, allow=self.allow_undelivered)

    def _write(self, spark: SparkSession | None, plan: CompactionPlan, staged: Path) -> None:
        files, runner = self._files, self._runner(spark)
        written = runner.write_segments(plan.task, staged, plan.segments, plan.begins)
        keep_empty_queues(files, plan, staged)
        index_full_ms = self._write_derived(runner, plan, staged, written)
        finish_staging(files, plan, staged, written, index_full_ms, self.clock)
        note_dropped(files, staged, dropped_offsets(files, plan.root), plan.dropped_in_front)
        check_staged(files, plan, staged, written, runner)
        manifest = Manifest(
            plan.segments[0].first,
            state_of_store(files, plan.root),
            state_of_store(files, staged),
            self.clock.now_ms(),
            tuple(
                (segment_file_name(one.first), one.used_bytes, one.derived.records, one.crc)
                for one in written
            ),
        )
        sync_tree(files, staged)
        write_manifest(files, plan.root, manifest)

    def _write_derived(
        self, runner: Runner, plan: CompactionPlan, staged: Path, written: Sequence[WrittenSegment]
    ) -> int:
        """Writes the files derived from the segments; returns the end time of the last full index file."""
        files, task = self._files, plan.task
        slices = by_queue(one for segment in written for one in segment.derived.slices)
        file_bytes = task.geometry.queue_file_size_bytes
        counts = [(one.first, one.keys) for one in written]
        index = plan_index(files, staged, counts, plan.index_division, self.clock.now_ms())
        if index:
            files.make_dirs(staged / INDEX)
        logs = compaction_queues(files, plan.root)
        work = [
            *(partial(write_index_file, staged=staged, plan=one) for one in index),
            *(
                partial(write_compaction_log, task=task, staged=staged, key=key, slices=slices.get(key, ()))
                for key in logs
            ),
            *(
                partial(write_queue, staged=staged, key=key, slices=own, file_bytes=file_bytes)
                for key, own in slices.items()
            ),
        ]
        done = runner.each(staged, lambda around, write: write(around), work)
        if logs:
            positions = dict(zip(logs, done[len(index) :], strict=False))
            files.make_dirs(staged / COMPACTION)
            files.write_file(staged / COMPACTION / POSITION_FILE, encode_positions(positions).encode())
        return next((end for end in reversed(done[: len(index)]) if end), 0)

    def _runner(self, spark: SparkSession | None) -> Runner:
        if self.runner is not None:
            return self.runner
        if spark is None:
            raise InvalidArgumentError("no Spark session and no runner")
        from seglog.spark.compact.job import SparkRunner

        return SparkRunner(spark)
