"""The new store until it is complete: its folders, and the files that no task makes.

Files that RocketMQ keeps beside the log are copied. Tasks make the files that derive from the log. The
checkpoint and the lengths of the files are written here, so that an opening of the store has nothing to do.
Only stores with queues of other kinds (batches, ``%LMQ%``) are opened once, so that the engine's recovery
makes these.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from seglog.clock import Clock
from seglog.errors import StoreError
from seglog.spark.compact.own_files import copy_own_files
from seglog.spark.compact.phases import Runner
from seglog.spark.compact.plan import CompactionPlan
from seglog.spark.compact.records import FACTS
from seglog.spark.compact.shares import KEYED_ROWS, LOSERS
from seglog.spark.compact.writing import VERDICTS, WrittenSegment, noted_in, segment_path
from seglog.spark.making.derived import UNITS
from seglog.spark.making.index_files import KEYS
from seglog.spark.making.made_tree import remove_attempts
from seglog.storage.directory import FileSizes, queue_directory, write_lengths
from seglog.storage.files import RestoringFiles, copy_tree, remove_tree
from seglog.storage.findings import Finding, Severity
from seglog.storage.format import names
from seglog.storage.format.checkpoint import Checkpoint
from seglog.storage.format.index import IndexGeometry
from seglog.storage.format.queue import COMPACTION
from seglog.storage.small_files import LogOrigin, leave_to_rescan, write_checkpoint, write_log_origin
from seglog.storage.splits import KNOWN_KEYS, KnownRecords
from seglog.storage.store import MessageStore

_MADE_ANEW: Final = frozenset(
    {
        names.LOCK_FILE,
        names.ABORT_FILE,
        "abort.bak",
        names.CHECKPOINT_FILE,
        names.COMMIT_LOG,
        names.CONSUME_QUEUE,
        names.BATCH_CONSUME_QUEUE,
        names.CONSUME_QUEUE_EXT,
        names.INDEX,
        names.OURS,
        COMPACTION,
    }
)
_SPILLS: Final = (FACTS, KEYED_ROWS, LOSERS, VERDICTS, UNITS, KEYS)


def begin_staging(files: RestoringFiles, staged: Path) -> None:
    """Creates the folders of a new store."""
    for folder in (names.COMMIT_LOG, names.CONSUME_QUEUE, *_SPILLS):
        files.make_dirs(staged / folder)
    files.make_dirs(noted_in(staged))


def copy_tables(files: RestoringFiles, root: Path, staged: Path) -> None:
    """Copies the files that do not depend on the log."""
    for entry in files.list_dir(root):
        if entry.name in _MADE_ANEW:
            continue
        source, target = root / entry.name, staged / entry.name
        copy_tree(files, source, target, is_dir=entry.is_dir)
    copy_own_files(files, root, staged)


def keep_empty_queues(files: RestoringFiles, plan: CompactionPlan, staged: Path) -> None:
    """Copies the last file of queues that have no message left, so that their offsets continue."""
    segment_bytes = plan.task.geometry.segment_size_bytes
    for queue in plan.audit.queues:
        if queue.records or queue.kind != "plain" or not queue.max_offset:
            continue
        folder = queue_directory(queue.topic, queue.queue_id)
        sizes = [entry for entry in files.list_dir(plan.root / folder) if not entry.is_dir]
        if sizes and segment_bytes:
            files.make_dirs(staged / folder)
            name = sizes[-1].name
            copy_tree(files, plan.root / folder / name, staged / folder / name, is_dir=False)


def finish_staging(
    files: RestoringFiles,
    plan: CompactionPlan,
    staged: Path,
    written: Sequence[WrittenSegment],
    index_full_ms: int,
    clock: Clock,
) -> None:
    """Writes the remaining files, after segments, queues and index.

    Args:
        files: Access to both stores.
        plan: The plan.
        staged: The new store.
        written: Its segments.
        index_full_ms: End time of its last index file that is full, 0 without one.
        clock: The time.

    Raises:
        StoreError: A segment differs from the plan.
    """
    files.rename(staged / KEYS, noted_in(staged) / KNOWN_KEYS)
    for folder in _SPILLS:
        if folder != KEYS:
            remove_tree(files, staged / folder)
    remove_attempts(files, staged)
    for segment, wanted in zip(written, plan.segments, strict=True):
        if (segment.first, segment.used_bytes) != (wanted.first, wanted.used_bytes):
            raise StoreError(f"a segment of {wanted.used_bytes} bytes was to be written, not {segment}")
    geometry = plan.task.geometry
    index = plan.index_division
    last = written[-1].derived
    times = last.last_store_ms, last.last_store_ms, index_full_ms
    write_checkpoint(files, staged, Checkpoint(*times, 0, max(0, last.last_phy_offset)))
    sizes = FileSizes(geometry.queue_file_size_bytes, index, geometry.segment_size_bytes)
    write_lengths(files, staged, sizes)
    if index is None:
        leave_to_rescan(files, staged)
    kept = sum(topic.kept for topic in plan.topics)
    write_log_origin(files, staged, LogOrigin(written[0].first, clock.now_ms(), kept, plan.dropped))
    if any(queue.kind != "plain" or queue.topic.startswith(names.LMQ_PREFIX) for queue in plan.audit.queues):
        _recover(files, plan, staged, written, index, clock)


def check_staged(
    files: RestoringFiles,
    plan: CompactionPlan,
    staged: Path,
    written: Sequence[WrittenSegment],
    runner: Runner,
) -> None:
    """Checks that the new store can replace the old one; removes the files that only the check needs.

    Raises:
        StoreError: The new store has a fault; the old store is unchanged.
    """
    report = runner.check(staged, KnownRecords(noted_in(staged)))
    wrong = [finding for finding in report.findings if finding.severity is not Severity.NOTE]
    before = wrong and {_place(finding) for finding in runner.check(plan.root, None).findings}
    has_index = plan.index_division is not None
    for finding in wrong:
        if _place(finding) not in before and (has_index or finding.code != "index-missing"):
            raise StoreError(
                f"the new store is not as it should be: {finding}", help="the old one is as it was"
            )
    kept = sum(one.derived.records for one in written)
    if report.records != kept:
        raise StoreError(f"the new store has {report.records} records, not {kept}", help="as it was")
    ends = {(queue.topic, queue.queue_id): queue.max_offset for queue in plan.audit.queues}
    for queue in report.queues:
        if queue.max_offset != ends.get((queue.topic, queue.queue_id), queue.max_offset):
            raise StoreError(
                f"{queue.topic}/{queue.queue_id} would end at {queue.max_offset}", help="nothing was changed"
            )
    remove_tree(files, noted_in(staged))


def _recover(
    files: RestoringFiles,
    plan: CompactionPlan,
    staged: Path,
    written: Sequence[WrittenSegment],
    index: IndexGeometry | None,
    clock: Clock,
) -> None:
    """Opens the store once, so that its recovery makes the queues of other kinds."""
    stamps = {one.first: files.stamp(segment_path(staged, one.first)) for one in written}
    geometry = plan.task.geometry
    with MessageStore.open(
        staged,
        create=False,
        segment_size_bytes=geometry.segment_size_bytes,
        queue_file_size_bytes=geometry.queue_file_size_bytes,
        index_geometry=index,
        recovery_step_bytes=0,
        files=files,
        clock=clock,
    ):
        pass
    for first, stamp in stamps.items():
        files.set_stamp(segment_path(staged, first), stamp)


def _place(finding: Finding) -> tuple[str, str]:
    return finding.code, finding.file
