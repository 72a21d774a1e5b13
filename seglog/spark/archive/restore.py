"""Restores a store from an archive, or adds to a store the archived messages after its queues' ends.

As with a compaction, the store is made or copied beside its place, checked, and put in place at once. Tasks
write its log, its queues and its key index; the driver opens no store and does no work for each message. The
result of an audit of the whole new store decides whether it is put in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog.clock import Clock, SystemClock
from seglog.errors import (
    FullError,
    InvalidArgumentError,
    NotFoundError,
    StoreError,
    StoreMismatchError,
)
from seglog.spark.archive.beforehand import check_is_free, find_archived, warn_of_unknown
from seglog.spark.archive.columns import LAST_COLUMNS
from seglog.spark.archive.continuity import is_still
from seglog.spark.archive.folder import ArchiveFolder, Key, check_apart
from seglog.spark.archive.held import check_rows, damage_named
from seglog.spark.archive.made.staging import StoreRows
from seglog.spark.archive.manifest import Interval, LastRecord
from seglog.spark.archive.ordered_rows import ordered_rows
from seglog.spark.archive.record_crc import record_crc_sql
from seglog.spark.archive.restore_base import RestoreBase, Sizes, check_sizes, copied_base, new_base
from seglog.spark.archive.restore_plan import RestorePlan, SpaceNeeded, plan_restore
from seglog.spark.archive.restored_files import finish_files, note_losses
from seglog.spark.archive.restored_log import write_log
from seglog.spark.archive.rows import read_archive
from seglog.spark.archive.store_facts import StoreFacts
from seglog.spark.audit.stores import audit_store
from seglog.spark.compact.swap import (
    Manifest,
    check_swappable,
    clear_rubbish,
    files_around,
    finish_swap,
    new_store,
    old_store,
    state_of_store,
    work_folder,
    write_manifest,
)
from seglog.spark.small_frames import small_frame
from seglog.spark.task_errors import job_errors
from seglog.storage.files import StoreRoot
from seglog.storage.findings import Severity
from seglog.text import size_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_IS_BEHIND: Final = "queueOffset >= coalesce(storeEnd, 0)"
_GAP_BYTES: Final = 150
"""Approximate bytes of a placeholder or a tombstone."""


@dataclass(frozen=True, slots=True)
class Restored:
    """The result, or the plan, of a restore.

    Attributes:
        messages: Number of messages that are restored.
        placeholders: Number of placeholders that are written: those of a compaction, and one for each queue
            offset that is missing because retention or a compaction removed it.
        skipped: Number of archived records that the store already has.
        intervals: The queue offsets that each queue gets.
        is_new: Whether the store is new.
        old: Path of the former store; None for a new store, or if nothing was done.
        lost: Number of tombstones that are written, one for each queue offset whose message is lost.
        was_finished: Whether an earlier restore or compaction had made the store and was interrupted before
            the store was put in place, which was done now.
    """

    messages: int
    placeholders: int
    skipped: int
    intervals: tuple[Interval, ...]
    is_new: bool
    old: Path | None
    lost: int = 0
    was_finished: bool = False


@job_errors()
def restore_store(
    folder: Path,
    root: Path,
    spark: SparkSession,
    *,
    store: str | None = None,
    topics: Sequence[str] = (),
    apply: bool = False,
    sizes: Sizes | None = None,
    clock: Clock | None = None,
    files: StoreRoot | None = None,
) -> Restored:
    """Restores archived messages with their topic, queue, queue offset and all other fields.

    Args:
        folder: The archive.
        root: The store directory; a store is created if there is none.
        spark: The session.
        store: Name of the store in the archive; optional if the archive has one store.
        topics: Topics to restore, all if empty.
        apply: Whether to restore; otherwise only the plan is returned.
        sizes: Lengths of the files of a new store.
        clock: The time.
        files: Access to the store's folder and the folder beside it; None for the real files.

    Raises:
        NotFoundError: There is no archive, or nothing to restore in it.
        DataLossError: Files of the archive differ from its manifests.
        ConfigError: A manifest cannot be read, or is missing.
        StoreError: Queue offsets are missing between the store and the archive, or within the archive without
            being listed there.
        StoreMismatchError: The last messages of the store differ from those of the archive.
        StoreLockedError: Another process has the store open.
        InvalidArgumentError: The old store of the last compaction or restore was not discarded yet; the
            archive has several stores, and none was named; one of store and archive is in the other; or
            ``sizes`` are not those of the store's files.
        UnsupportedStoreError: There are other files in the folder where a new store is made.
        FullError: The file system of the store, or that of Spark's temporary files, has no space left.
        ReadOnlyError: It is mounted read-only.
    """
    check_apart(root, folder)
    root = root.resolve()
    restore = _Restore(
        folder,
        root,
        files or files_around(root),
        spark,
        store,
        frozenset(topics),
        sizes or Sizes(),
        clock or SystemClock(),
    )
    was_finished = False
    if not restore.files.exists(restore.root):
        was_finished = apply and finish_swap(restore.files, restore.root)
        if not was_finished:
            return restore.into_new(apply=apply)
    if not apply:
        check_is_free(restore.root)
        return restore.into_existing(apply=False, was_finished=False)
    lock = restore.files.lock(restore.root)
    try:
        return restore.into_existing(apply=apply, was_finished=was_finished)
    finally:
        lock.release()


class _Restore:
    def __init__(
        self,
        folder: Path,
        root: Path,
        files: StoreRoot,
        spark: SparkSession,
        store: str | None,
        topics: frozenset[str],
        sizes: Sizes,
        clock: Clock,
    ) -> None:
        self.files = files
        self.root = root
        self._spark = spark
        self._sizes = sizes
        self._clock = clock
        self._size_bytes = self._records = 0
        found = find_archived(folder, store, topics)
        self._runs = found.runs
        self._topics = topics
        rows = read_archive(spark, folder, found.name)
        if rows is None:
            raise NotFoundError(f"{folder} holds nothing of {found.name}", help="archive something first")
        warn_of_unknown(folder, topics, found)
        self._rows = rows if not topics else rows.where(rows.topic.isin(*topics))
        self._folder = folder

    def into_new(self, *, apply: bool) -> Restored:
        plan, done = self._plan({})
        base = new_base(self._sizes, begins_at_0=_begins_at_0(plan))
        if not apply:
            return done
        clear_rubbish(self.files, self.root)
        self._check_space(plan)
        staged = new_store(self.root)
        with self._cleared():
            self._make(self._rows, plan, staged, base)
            self.files.rename(staged, self.root)
            self.files.sync_dir(self.root.parent)
        self.files.remove_dir(work_folder(self.root))
        return done

    def into_existing(self, *, apply: bool, was_finished: bool) -> Restored:
        files, root = self.files, self.root
        check_swappable(files, root)
        if apply:
            was_begun = files.exists(new_store(root))
            was_finished |= finish_swap(files, root) and was_begun
            clear_rubbish(files, root)
        check_sizes(files, root, self._sizes)
        queues = audit_store(root, spark=self._spark).queues
        ends = {(queue.topic, queue.queue_id): queue.max_offset for queue in queues}
        self._check_is_same(ends)
        plan, done = self._plan(ends)
        if not apply or not (done.messages or done.placeholders or done.lost):
            is_kept = was_finished and files.exists(old_store(root))
            return replace(done, was_finished=was_finished, old=old_store(root) if is_kept else None)
        if files.exists(old_store(root)):
            raise InvalidArgumentError(
                f"{old_store(root)} is what the store was before", help="discard it first"
            )
        self._check_space(plan)
        staged = new_store(root)
        with self._cleared():
            files.make_dirs(work_folder(root))
            base = copied_base(files, root, staged, self._sizes, begins_at_0=_begins_at_0(plan))
            self._make(self._behind(ends).where(_IS_BEHIND), plan, staged, base)
            states = state_of_store(files, root), state_of_store(files, staged)
            write_manifest(files, root, Manifest(base.first, *states, self._clock.now_ms(), ()))
        finish_swap(files, root)
        return replace(done, old=old_store(root), was_finished=was_finished)

    def _plan(self, ends: Mapping[Key, int]) -> tuple[RestorePlan, Restored]:
        """Compares the archive with its manifests; returns the plan of the restore, and its numbers.

        Args:
            ends: The ends of the store's queues; empty for a new store.
        """
        plan = plan_restore(self._runs, ends, self._topics)
        counted = check_rows(self._spark, ArchiveFolder(self._folder), self._runs, self._topics, ends)
        self._size_bytes = counted.size_bytes
        self._records = counted.messages + counted.placeholders
        return plan, Restored(
            counted.messages,
            counted.placeholders + plan.placeholders,
            counted.rows - counted.messages - counted.placeholders,
            plan.intervals,
            is_new=not self.files.exists(self.root),
            old=None,
            lost=plan.lost,
        )

    def _check_is_same(self, ends: Mapping[Key, int]) -> None:
        """Refuses a store if the last record of a queue differs from the archived record of that offset.

        Raises:
            StoreMismatchError: It differs.
        """
        lasts = small_frame(
            self._spark,
            "topic string, queueId int, queueOffset bigint",
            [(topic, queue_id, end - 1) for (topic, queue_id), end in ends.items() if end],
        )
        crc = record_crc_sql("concat(head, body, tail)")
        found = self._rows.join(lasts, ["topic", "queueId", "queueOffset"]).selectExpr(
            *(f"{crc} AS crc" if name == "recordCrc" else name for name in LAST_COLUMNS)
        )
        with damage_named():
            lasts_held = [LastRecord(*row) for row in found.collect()]
        archived_lasts = {(one.topic, one.queue_id): one for one in lasts_held}
        with StoreFacts(self.root) as facts:
            own = {key: facts.record_of(*key, one.queue_offset) for key, one in archived_lasts.items()}
        unknown = [archived_lasts[key] for key, record in own.items() if record is None]
        if unknown:  # their queue files end before the log
            logged = StoreRows(self._spark, self.root, (), verify=True).look_up(unknown)
            own |= {key: one.found for key, one in logged.items()}
        for key, one in archived_lasts.items():
            record = own[key]
            # A tombstone replaces a message that was lost when it was written and that a later run has
            # archived.
            if record is not None and not record.message.is_tombstone and not is_still(one, record):
                raise StoreMismatchError(
                    f"{self.root} is not what was archived: {one.topic}/{one.queue_id} at queue offset"
                    f" {one.queue_offset}: expected the archived record of CRC {one.crc:08x}, found one of"
                    f" CRC {record.crc:08x}",
                    help="nothing was restored; restore into a new store",
                )

    def _behind(self, ends: Mapping[Key, int]) -> DataFrame:
        """Returns all rows, with the ends of their queues: :data:`_IS_BEHIND` marks rows after these ends."""
        table = small_frame(
            self._spark,
            "topic string, queueId int, storeEnd bigint",
            [(topic, queue_id, end) for (topic, queue_id), end in ends.items()],
        )
        return self._rows.join(table, ["topic", "queueId"], "left")

    def _make(self, rows: DataFrame, plan: RestorePlan, staged: Path, base: RestoreBase) -> None:
        """Makes the store, and checks all of it.

        Raises:
            StoreError: The new store has a fault.
        """
        size_bytes = self._size_bytes + (plan.placeholders + plan.lost) * _GAP_BYTES
        ordered = ordered_rows(self._spark, self._rows, rows, plan)
        needed = self._needed(plan)
        with self._space_said(needed):
            segments = write_log(self._spark, self.files, staged, ordered, size_bytes, base)
        needed = self._needed(plan, sum(one.keys for one in segments))
        with self._space_said(needed):
            finish_files(self._spark, self.files, staged, base, segments, self._clock)
        note_losses(self._spark, self.files, staged, plan.gaps, base.queue_file_bytes, self._clock.now_ms())
        self._check(staged, plan, has_index=base.lengths.index is not None)

    def _needed(self, plan: RestorePlan, keys: int | None = None) -> SpaceNeeded:
        gaps = plan.placeholders + plan.lost
        return SpaceNeeded.of(self._records + gaps, self._size_bytes + gaps * _GAP_BYTES, keys)

    def _check_space(self, plan: RestorePlan) -> None:
        """Refuses to begin if there is not enough space for the log and the queues alone.

        Raises:
            FullError: There is not enough space.
        """
        around, needed = self.root.parent, self._needed(plan)
        try:
            free_bytes = self.files.usage(around).available_bytes
        except FileNotFoundError:  # the folder will be created with the store
            return
        if needed.certain_bytes > free_bytes:
            raise FullError(
                f"{around}: {size_text(free_bytes)} are free, and until it is done this restore takes"
                f" {needed.text}",
                help=f"{self._as_it_was()}; free space there, restore to another file system, or one topic"
                " after the other with --topic",
            )

    @contextmanager
    def _space_said(self, needed: SpaceNeeded) -> Iterator[None]:
        """Adds the needed space to the error of a restore that runs out of space.

        Raises:
            FullError: It runs out of space.
        """
        try:
            with job_errors():
                yield
        except FullError as error:
            error.help = (
                f"{self._as_it_was()}; until it is done this restore takes {needed.text}, in"
                f" {self.root.parent}, and Spark sorts {size_text(needed.log_bytes / 2)} of records in"
                " spark.local.dir"
            )
            raise

    def _check(self, staged: Path, plan: RestorePlan, *, has_index: bool) -> None:
        report = audit_store(staged, spark=self._spark)
        wrong = [
            finding
            for finding in report.findings
            if finding.severity is not Severity.NOTE and (has_index or finding.code != "index-missing")
        ]
        if wrong:
            raise StoreError(
                f"the restored store is not as it should be: {wrong[0]}",
                help=f"{self._as_it_was()}; if `seglog check` finds nothing in it, put the archive back from"
                " a copy",
            )
        ends = {(queue.topic, queue.queue_id): queue.max_offset for queue in report.queues}
        for one in plan.intervals:
            found = ends.get((one.topic, one.queue_id))
            if found != one.end:
                raise StoreError(
                    f"{one.topic}/{one.queue_id} of the restored store: expected its end at {one.end}, found"
                    f" {found}",
                    help=f"{self._as_it_was()}; put the archive back from a copy",
                )

    def _as_it_was(self) -> str:
        return f"{self.root} is as it was" if self.files.exists(self.root) else f"{self.root} was not made"

    @contextmanager
    def _cleared(self) -> Iterator[None]:
        """Removes a store that was not put in place."""
        try:
            yield
        except BaseException:
            clear_rubbish(self.files, self.root)
            raise


def _begins_at_0(plan: RestorePlan) -> bool:
    return not any(one.first for one in plan.intervals)
