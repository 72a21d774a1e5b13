"""Makes a store of an archive, or adds to a store what the archive has after its queues' ends.

As with a compaction, the store is made or copied beside its place, checked, and put there at once. Queues,
key index and checkpoint are made by the engine's recovery when it first opens the log, on the driver: 40
bytes of its memory for each message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from seglog.clock import Clock, SystemClock
from seglog.doctor.copies import make_backup
from seglog.errors import InvalidArgumentError, NotFoundError, StoreError, StoreMismatchError
from seglog.spark.archive.chunks import CHUNKS, Chunk, place_chunks, write_chunks, write_placed
from seglog.spark.archive.columns import LAST_COLUMNS
from seglog.spark.archive.continuity import is_still
from seglog.spark.archive.folder import ArchiveFolder, Key, archived
from seglog.spark.archive.manifest import Interval, LastRecord
from seglog.spark.archive.names import choose_store
from seglog.spark.archive.ordered_rows import ORDER, ordered_rows
from seglog.spark.archive.record_crc import record_crc_sql
from seglog.spark.archive.restore_plan import RestorePlan, plan_restore
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
from seglog.storage.directory import DEFAULT_SEGMENT_BYTES, list_store
from seglog.storage.files import StoreRoot, remove_tree
from seglog.storage.findings import Severity
from seglog.storage.format.index import IndexGeometry
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.format.record import FILLER, MAGIC_BLANK
from seglog.storage.store import MessageStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SHARE_BYTES: Final = 128 << 20
_PLACEHOLDER_BYTES: Final = 150
_CHUNK_ROW: Final = "partition int, number int, name string, size_bytes bigint, records bigint"
_CHUNK_SCHEMA: Final = pa.schema(
    [
        ("partition", pa.int32()),
        ("number", pa.int32()),
        ("name", pa.string()),
        ("size_bytes", pa.int64()),
        ("records", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Lengths of the files of a new store; None for RocketMQ's defaults.

    Attributes:
        segment_bytes: Of a commit-log file.
        queue_file_bytes: Of a queue file.
        index: Division of an index file.
    """

    segment_bytes: int | None = None
    queue_file_bytes: int | None = None
    index: IndexGeometry | None = None


@dataclass(frozen=True, slots=True)
class Restored:
    """What was, or would be, restored.

    Attributes:
        messages: Messages that come into the store.
        placeholders: Placeholders that do: those of a compaction, and one for each missing queue offset.
        skipped: Records of the archive that the store has already.
        intervals: What comes into each queue.
        is_new: Whether the store is new.
        old: Where the store is as it was; None for a new one, or where nothing was done.
    """

    messages: int
    placeholders: int
    skipped: int
    intervals: tuple[Interval, ...]
    is_new: bool
    old: Path | None


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
    """Puts archived messages back where they were: topic, queue, queue offset and all that they say.

    Args:
        folder: The archive.
        root: The store directory; a store is made where nothing is.
        spark: The session.
        store: Which store of the archive; may be left out where there is one.
        topics: Topics that are wanted, all if empty.
        apply: Whether to do it; else it is only said what would be done.
        sizes: For a new store.
        clock: The time.
        files: Those of the store's folder and of the one beside it; those of the system if None.

    Raises:
        NotFoundError: There is no archive, or nothing wanted in it.
        StoreError: Queue offsets are missing between the store and the archive, or within the archive without
            being named there.
        StoreMismatchError: The store has other messages than the archive where it ends.
        StoreLockedError: Somebody has the store open.
        InvalidArgumentError: What the store was before its last compaction or restore is still there; or the
            archive has several stores, and none was named.
    """
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
    if not restore.files.exists(restore.root) and not (apply and finish_swap(restore.files, restore.root)):
        return restore.into_new(apply=apply)
    lock = restore.files.lock(restore.root)
    try:
        return restore.into_existing(apply=apply)
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
        runs = ArchiveFolder(folder).runs()
        name = choose_store(store, runs, folder)
        self._runs = [run for run in runs if run.name == name]
        self._topics = topics
        rows = read_archive(spark, folder, name)
        if rows is None or not any(not topics or key[0] in topics for key in archived(self._runs)):
            raise NotFoundError(
                f"{folder} holds nothing that is wanted", help="seglog spark archive makes one"
            )
        self._rows = rows if not topics else rows.where(rows.topic.isin(*topics))

    def into_new(self, *, apply: bool) -> Restored:
        plan = plan_restore(self._runs, {}, self._topics)
        done = self._counted(plan, self._rows, is_new=True)
        if not apply:
            return done
        clear_rubbish(self.files, self.root)
        staged = new_store(self.root)
        self.files.make_dirs(staged / COMMIT_LOG)
        segment_bytes = self._sizes.segment_bytes or DEFAULT_SEGMENT_BYTES
        # In a log that begins at 0 RocketMQ takes slots before a queue's first message for messages.
        first = segment_bytes if any(one.first for one in plan.intervals) else 0
        self._write(self._rows, plan, staged, first, segment_bytes)
        self._finish(staged, plan.intervals)
        self.files.rename(staged, self.root)
        self.files.sync_dir(self.root.parent)
        self.files.remove_dir(work_folder(self.root))
        return done

    def into_existing(self, *, apply: bool) -> Restored:
        files, root = self.files, self.root
        check_swappable(files, root)
        if apply:
            finish_swap(files, root)
            clear_rubbish(files, root)
        with MessageStore.open(root, read_only=True, files=files) as store:
            ends = {(queue.topic, queue.queue_id): queue.max_offset for queue in store.queues()}
            self._check_is_same(store, ends)
        plan = plan_restore(self._runs, ends, self._topics)
        rows = self._behind(ends)
        done = self._counted(plan, rows, is_new=False)
        if not apply or not (done.messages or done.placeholders):
            return done
        if files.exists(old_store(root)):
            raise InvalidArgumentError(
                f"{old_store(root)} is what the store was before", help="discard it first"
            )
        staged = new_store(root)
        files.make_dirs(work_folder(root))
        end, segment_bytes = _copy_store(files, root, staged)
        first = self._write(rows, plan, staged, end, segment_bytes)
        self._finish(staged, plan.intervals)
        manifest = Manifest(
            first, state_of_store(files, root), state_of_store(files, staged), self._clock.now_ms(), ()
        )
        write_manifest(files, root, manifest)
        finish_swap(files, root)
        return replace(done, old=old_store(root))

    def _counted(self, plan: RestorePlan, rows: DataFrame, *, is_new: bool) -> Restored:
        """Returns what a restore of rows comes to."""
        counted = rows.selectExpr("count_if(NOT placeholder)", "count_if(placeholder)").collect()[0]
        skipped = 0 if is_new else self._rows.count() - sum(counted)
        placeholders = counted[1] + plan.placeholders
        return Restored(counted[0], placeholders, skipped, plan.intervals, is_new=is_new, old=None)

    def _check_is_same(self, store: MessageStore, ends: Mapping[Key, int]) -> None:
        """Refuses a store of which a queue ends with another record than the archive has at that offset.

        Raises:
            StoreMismatchError: It does.
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
        for row in found.collect():
            one = LastRecord(*row)
            served = next(iter(store.get(one.topic, one.queue_id, one.queue_offset)), None)
            if served is None:
                continue
            with StoreFacts(self.root) as facts:
                record = facts.record_at(served.phy_offset)
            if record is not None and not is_still(one, record):
                raise StoreMismatchError(
                    f"{self.root} is not what was archived: {one.topic}/{one.queue_id} at queue offset"
                    f" {one.queue_offset}: expected the archived record of CRC {one.crc:08x}, found one of"
                    f" CRC {record.crc:08x}",
                    help="nothing was restored; restore into a new store",
                )

    def _behind(self, ends: Mapping[Key, int]) -> DataFrame:
        """Returns the rows that are after the ends of their queues."""
        table = small_frame(
            self._spark,
            "topic string, queueId int, storeEnd bigint",
            [(topic, queue_id, end) for (topic, queue_id), end in ends.items()],
        )
        joined = self._rows.join(table, ["topic", "queueId"], "left")
        return joined.where("queueOffset >= coalesce(storeEnd, 0)")

    def _write(self, rows: DataFrame, plan: RestorePlan, staged: Path, first: int, segment_bytes: int) -> int:
        """Writes segments from ``first`` on; returns it."""
        files = self.files
        files.make_dirs(staged / CHUNKS)
        size_bytes = rows.agg({"size": "sum"}).collect()[0][0] or 0
        shares = max(1, -(-(size_bytes + plan.placeholders * _PLACEHOLDER_BYTES) // _SHARE_BYTES))
        ordered = ordered_rows(self._spark, self._rows, rows, plan)
        chunks = self._chunks(ordered, shares, staged, segment_bytes)
        segments = place_chunks(chunks, first, segment_bytes)

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            around = files_around(staged.parent)
            for batch in batches:
                numbers = batch.column(0).to_pylist()
                counts = [write_placed(around, staged, segments[at], segment_bytes) for at in numbers]
                yield pa.RecordBatch.from_arrays([pa.array(counts, pa.int64())], ["records"])

        frame = self._spark.range(0, len(segments), 1, max(1, len(segments)))
        written = sum(frame.mapInArrow(write, "records bigint").toArrow()["records"].to_pylist())
        if written != sum(chunk.records for chunk in chunks):
            raise StoreError(f"{written} records were written", help="the store is as it was")
        remove_tree(files, staged / CHUNKS)
        files.sync_dir(staged / COMMIT_LOG)
        return first

    def _chunks(self, rows: DataFrame, shares: int, staged: Path, segment_bytes: int) -> list[Chunk]:
        from pyspark.sql.functions import spark_partition_id

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            first = next(batches, None)
            if first is None or not first.num_rows:
                return
            partition = first.column(1)[0].as_py()

            def every() -> Iterator[pa.RecordBatch]:
                yield first
                yield from batches

            made = write_chunks(files_around(staged.parent), staged, partition, every(), segment_bytes)
            yield pa.RecordBatch.from_pylist([chunk._asdict() for chunk in made], _CHUNK_SCHEMA)

        ordered = rows.repartitionByRange(shares, *ORDER).sortWithinPartitions(*ORDER)
        ordered = ordered.select("record", spark_partition_id().alias("share"))
        return [Chunk(**row) for row in ordered.mapInArrow(write, _CHUNK_ROW).toArrow().to_pylist()]

    def _finish(self, staged: Path, wanted: Sequence[Interval]) -> None:
        """Makes what is made from the log, and checks everything.

        Raises:
            StoreError: Something is not as it should be.
        """
        with MessageStore.open(
            staged,
            create=False,
            segment_size_bytes=self._sizes.segment_bytes,
            queue_file_size_bytes=self._sizes.queue_file_bytes,
            index_geometry=self._sizes.index,
            recovery_step_bytes=0,
            files=self.files,
        ):
            pass
        report = audit_store(staged, spark=self._spark)
        wrong = [finding for finding in report.findings if finding.severity is not Severity.NOTE]
        if wrong:
            raise StoreError(f"the restored store is not as it should be: {wrong[0]}")
        ends = {(queue.topic, queue.queue_id): queue.max_offset for queue in report.queues}
        for one in wanted:
            if ends.get((one.topic, one.queue_id)) != one.end:
                raise StoreError(f"{one.topic}/{one.queue_id} does not end at {one.end} as it should")


def _copy_store(files: StoreRoot, root: Path, staged: Path) -> tuple[int, int]:
    """Copies a store of which we hold the lock, and ends its last segment.

    Returns:
        Where new segments may begin, and their length.
    """
    end = make_backup(files, root, staged, others=files).end_phy_offset
    listing = list_store(files, staged)
    segment_bytes = listing.geometry.segment_size_bytes
    position = end % segment_bytes
    if position:
        with closing(
            files.open(staged / COMMIT_LOG / segment_file_name(end - position), writable=True)
        ) as file:
            file.set_size(segment_bytes)
            file.write_at(FILLER.struct.pack(segment_bytes - position, MAGIC_BLANK), position)
            file.sync()
    return end - position + (segment_bytes if position else 0), segment_bytes
