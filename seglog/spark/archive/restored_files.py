"""Files derived from a restored log: its queues, its key index, and files that mark it as complete.

Tasks make queues and index files from the notes of the tasks that wrote segments; the driver receives a few
numbers for each segment and queue. An opening of the store has nothing to do. Only batch queues and ``%LMQ%``
queues are made by the engine when a store is opened; in this case the store is opened once here.

``seglog/holes`` lists each tombstone, as after a repair; a tombstone that it does not list counts as a
message.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from seglog.clock import Clock
from seglog.spark.archive.chunks import CHUNKS, RestoredSegment
from seglog.spark.archive.restore_base import BEGUN, RestoreBase, put_back_newest
from seglog.spark.archive.restore_plan import Inserted
from seglog.spark.making.derived import UNITS, by_queue
from seglog.spark.making.each import run_each
from seglog.spark.making.index_files import KEYS, plan_index, write_index_file
from seglog.spark.making.made_tree import remove_attempts, sync_tree
from seglog.spark.making.queues import write_queue
from seglog.storage.directory import write_lengths
from seglog.storage.files import RestoringFiles, StoreRoot, remove_tree
from seglog.storage.format.checkpoint import Checkpoint
from seglog.storage.format.names import ABORT_FILE, CONSUME_QUEUE, INDEX
from seglog.storage.overlay import UNIT, LostMessages
from seglog.storage.scan import TOMBSTONES, KnownHole, load_holes, save_holes
from seglog.storage.small_files import leave_to_rescan, write_checkpoint
from seglog.storage.splits import UnitFiles
from seglog.storage.store import MessageStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SPILLS: Final = (CHUNKS, UNITS, KEYS, BEGUN)
_PIECE: Final = 1 << 16
"""Number of queue units that a task reads at a time."""


def finish_files(
    spark: SparkSession,
    files: StoreRoot,
    staged: Path,
    base: RestoreBase,
    segments: Sequence[RestoredSegment],
    clock: Clock,
) -> None:
    """Writes the remaining files of a store whose log is complete.

    Args:
        spark: The session.
        files: Access to the store.
        staged: The store.
        base: The base of its log.
        segments: The segments that were written.
        clock: The time.

    Raises:
        StoreError: The queue offsets of a queue have a gap.
    """
    needs_opening = base.has_others or any(one.derived.says_more for one in segments)
    full_ms = base.index_full_ms
    if not needs_opening:
        full_ms = _write_derived(spark, files, staged, base, segments, clock.now_ms()) or full_ms
    put_back_newest(files, staged, base.newest)
    for folder in _SPILLS:
        if files.exists(staged / folder):
            remove_tree(files, staged / folder)
    remove_attempts(files, staged)
    if needs_opening:
        _open_once(files, staged, base)
        return
    last_ms, last_phy_offset = _last(segments)
    times = (last_ms, last_ms, full_ms) if last_ms > 0 else (0, 0, 0)
    write_checkpoint(files, staged, Checkpoint(*times, 0, max(0, last_phy_offset)))
    write_lengths(files, staged, base.lengths)
    if base.lengths.index is None:
        leave_to_rescan(files, staged)
    elif files.exists(staged / ABORT_FILE):  # the copy has one until it is complete
        files.remove(staged / ABORT_FILE)
    sync_tree(files, staged)


def note_losses(
    spark: SparkSession,
    files: StoreRoot,
    root: Path,
    gaps: Sequence[Inserted],
    queue_file_bytes: int,
    now_ms: int,
) -> None:
    """Records the places of the tombstones of a restore.

    Args:
        spark: The session.
        files: Access to the store.
        root: The store directory; its queues are complete.
        gaps: The queue offsets that got placeholders or tombstones.
        queue_file_bytes: Length of queue files.
        now_ms: The time, in ms since 1970 UTC.
    """
    pieces = [
        gap._replace(first=first, end=min(gap.end, first + _PIECE))
        for gap in gaps
        for first in range(gap.first, gap.end, _PIECE)
        if gap.is_lost
    ]
    look = partial(_holes, root=root, queue_file_bytes=queue_file_bytes, now_ms=now_ms)
    found = [hole for holes in run_each(spark, root.parent.parent, look, pieces) for hole in holes]
    if found:
        known = [*load_holes(files, root), *found]
        save_holes(files, root, sorted(known, key=lambda hole: hole.phy_offset))


def _write_derived(
    spark: SparkSession,
    files: StoreRoot,
    staged: Path,
    base: RestoreBase,
    segments: Sequence[RestoredSegment],
    now_ms: int,
) -> int:
    """Writes queues and index.

    Returns:
        End time of the last new index file that is followed by another; 0 if there is none.
    """
    slices = by_queue(one for segment in segments for one in segment.derived.slices)
    geometry = base.lengths.index
    counts = [(one.first, one.keys) for one in segments]
    index = plan_index(files, staged, counts, geometry, now_ms, base.newest)
    files.make_dirs(staged / CONSUME_QUEUE)
    if index:
        files.make_dirs(staged / INDEX)
    work = [
        *(partial(write_index_file, staged=staged, plan=one) for one in index),
        *(
            partial(
                write_queue,
                staged=staged,
                key=key,
                slices=own,
                file_bytes=base.queue_file_bytes,
                before=base.before,
            )
            for key, own in slices.items()
        ),
    ]
    done = run_each(spark, staged.parent.parent, lambda around, write: write(around), work)
    for folder in (INDEX, CONSUME_QUEUE):
        if files.exists(staged / folder):
            files.sync_dir(staged / folder)
    if len(index) > 1:
        return done[len(index) - 2]
    is_followed = bool(index) and base.newest is not None and base.newest.is_full
    return base.newest.header.end_timestamp_ms if is_followed and base.newest is not None else 0


def _last(segments: Sequence[RestoredSegment]) -> tuple[int, int]:
    """Returns store time and place of the last record."""
    for one in reversed(segments):
        if one.derived.records:
            return one.derived.last_store_ms, one.derived.last_phy_offset
    return 0, 0


def _open_once(files: StoreRoot, staged: Path, base: RestoreBase) -> None:
    """Opens the store, so that its recovery makes the queues of other kinds, and all others with them."""
    with MessageStore.open(
        staged,
        create=False,
        segment_size_bytes=base.segment_bytes,
        queue_file_size_bytes=base.queue_file_bytes,
        index_geometry=base.lengths.index,
        recovery_step_bytes=0,
        files=files,
    ):
        pass


def _holes(
    files: RestoringFiles, gap: Inserted, *, root: Path, queue_file_bytes: int, now_ms: int
) -> list[KnownHole]:
    """Returns the stretches of a gap's tombstones; adjacent tombstones in one segment are one stretch."""
    units = UnitFiles(files, root, queue_file_bytes)
    rows = units.read(gap.topic, gap.queue_id, gap.first, gap.end - gap.first)
    starts = rows["phy_offset"].astype(np.int64)
    ends = starts + rows["size_bytes"]
    begins = np.flatnonzero(np.r_[True, starts[1:] != ends[:-1]])
    found = []
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(rows)], strict=True):
        lost = LostMessages(gap.topic, gap.queue_id, range(gap.first + begin, gap.first + end), UNIT)
        size_bytes = int(ends[end - 1] - starts[begin])
        found.append(
            KnownHole(int(starts[begin]), size_bytes, TOMBSTONES, first_seen_ms=now_ms, lost=(lost,))
        )
    return found
