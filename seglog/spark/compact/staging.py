"""The store that takes the old one's place, until it is whole: all that is not segments and plain queues.

What RocketMQ keeps beside the log is copied; what is made from the log is made by the engine's own recovery
when it opens the new log for the first time: queues of other kinds, key index, checkpoint. Compaction logs
are the truth of their topics, so they are written here from both.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import numpy as np

from seglog.clock import Clock
from seglog.errors import StoreError
from seglog.spark.compact.phases import Runner
from seglog.spark.compact.plan import CompactionPlan, compaction_topics
from seglog.spark.compact.policy import Verdict
from seglog.spark.compact.queues import load_units
from seglog.spark.compact.records import Key
from seglog.spark.compact.task import Task, compaction_units
from seglog.spark.compact.writing import (
    ATTEMPT,
    UNITS,
    VERDICTS,
    QueueSlice,
    WrittenSegment,
    load_array,
    segment_path,
    verdicts_path,
)
from seglog.storage.compaction import (
    CompactionQueue,
    CompactionState,
    CompactionUnits,
    infer_compaction_sizes,
    list_compaction_files,
    queue_ids,
)
from seglog.storage.directory import LogReader, list_index_files, queue_directory
from seglog.storage.files import Files, RestoringFiles, copy_tree, remove_tree
from seglog.storage.findings import Finding, Severity
from seglog.storage.format import names
from seglog.storage.format.index import IndexGeometry
from seglog.storage.format.queue import COMPACTION, POSITION_FILE, BatchUnits, encode_positions
from seglog.storage.segments import MapPool
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
_CHUNK_BYTES: Final = 8 << 20


def begin_staging(files: RestoringFiles, root: Path, staged: Path) -> None:
    """Makes the folders of a new store and copies what does not depend on the log."""
    for folder in (names.COMMIT_LOG, names.CONSUME_QUEUE, UNITS, VERDICTS):
        files.make_dirs(staged / folder)
    for entry in files.list_dir(root):
        if entry.name in _MADE_ANEW:
            continue
        source, target = root / entry.name, staged / entry.name
        copy_tree(files, source, target, is_dir=entry.is_dir)


def keep_empty_queues(files: RestoringFiles, plan: CompactionPlan, staged: Path) -> None:
    """Copies the last file of queues that have no message left, so that they go on where they were."""
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


def write_compaction_logs(
    files: RestoringFiles, plan: CompactionPlan, staged: Path, slices: Mapping[Key, Sequence[QueueSlice]]
) -> None:
    """Writes the compaction logs of the new store, without what is dropped."""
    positions: dict[Key, int] = {}
    for topic in sorted(compaction_topics(files, plan.root)):
        every = [
            list_compaction_files(files, plan.root, topic, at) for at in queue_ids(files, plan.root, topic)
        ]
        for found in every:
            key = topic, found.queue_id
            units = compaction_units(files, plan.root, *key)
            kept = _kept_units(files, plan.task, staged, key, units, slices.get(key, ()))
            state = CompactionState(
                list_compaction_files(files, staged, *key), CompactionUnits(infer_compaction_sizes(every))
            )
            with closing(CompactionQueue(state, files, MapPool())) as queue:
                _copy_compaction(files, plan, queue, kept, *key)
                queue.sync()
            # RocketMQ maps all records after this one when it compacts next: the rest, so nothing is missed.
            positions[key] = max(0, int(kept["base_queue_offset"][0]) - 1) if len(kept) else 0
    if positions:
        files.make_dirs(staged / COMPACTION)
        files.write_file(staged / COMPACTION / POSITION_FILE, encode_positions(positions).encode())


def finish_staging(
    files: RestoringFiles,
    plan: CompactionPlan,
    staged: Path,
    written: Sequence[WrittenSegment],
    runner: Runner,
    clock: Clock,
) -> None:
    """Makes what is made from the log, and checks everything.

    Raises:
        StoreError: Something is not as it should be; the store is as it was.
    """
    for folder in (UNITS, VERDICTS):
        remove_tree(files, staged / folder)
    _remove_attempts(files, staged)
    for segment, wanted in zip(written, plan.segments, strict=True):
        if (segment.first, segment.used_bytes) != (wanted.first, wanted.used_bytes):
            raise StoreError(f"a segment of {wanted.used_bytes} bytes was to be written, not {segment}")
        _check_segment(files, staged, segment)
    stamps = {one.first: files.stamp(segment_path(staged, one.first)) for one in written}
    geometry = plan.task.geometry
    with MessageStore.open(
        staged,
        create=False,
        segment_size_bytes=geometry.segment_size_bytes,
        queue_file_size_bytes=geometry.queue_file_size_bytes,
        index_geometry=_index_geometry(files, plan.root),
        recovery_step_bytes=0,
        files=files,
        clock=clock,
    ):
        pass
    for first, stamp in stamps.items():
        files.set_stamp(segment_path(staged, first), stamp)
    report = runner.check(staged)
    wrong = [finding for finding in report.findings if finding.severity is not Severity.NOTE]
    before = wrong and {_place(finding) for finding in runner.check(plan.root).findings}
    for finding in wrong:
        if _place(finding) not in before:
            raise StoreError(
                f"the new store is not as it should be: {finding}", help="the old one is as it was"
            )
    kept = sum(one.records for one in written)
    if report.records != kept:
        raise StoreError(f"the new store has {report.records} records, not {kept}", help="as it was")
    ends = {(queue.topic, queue.queue_id): queue.max_offset for queue in plan.audit.queues}
    for queue in report.queues:
        if queue.max_offset != ends.get((queue.topic, queue.queue_id), queue.max_offset):
            raise StoreError(
                f"{queue.topic}/{queue.queue_id} would end at {queue.max_offset}", help="nothing was changed"
            )


def _remove_attempts(files: RestoringFiles, staged: Path) -> None:
    """Removes what tasks left that were killed."""
    for folder in (staged, staged / names.COMMIT_LOG):
        for entry in files.list_dir(folder):
            if f"{ATTEMPT}-" in entry.name:
                files.remove(folder / entry.name)


def _place(finding: Finding) -> tuple[str, str]:
    return finding.code, finding.file


def _kept_units(
    files: RestoringFiles,
    task: Task,
    staged: Path,
    key: Key,
    units: BatchUnits,
    slices: Sequence[QueueSlice],
) -> BatchUnits:
    """Returns the units of a compaction queue whose messages stay.

    Those that the commit log has too were decided there. What RocketMQ dropped is not taken back from it.
    """
    stays = np.ones(len(units), np.bool_)
    offsets = units["base_queue_offset"].astype(np.int64)
    if slices and key in task.policies:
        new = load_units(files, staged, slices)
        gone = new["queue_offset"][~new["is_kept"]]
        stays &= ~np.isin(offsets, gone)
        for number, part in enumerate(task.compaction):
            if (part.topic, part.queue_id) == key:
                stays &= (offsets < part.below_offset) | (offsets >= int(new["queue_offset"][0]))
                verdicts = load_array(files, verdicts_path(staged, len(task.splits) + number)).view(np.int8)
                stays[: len(verdicts)] &= verdicts <= Verdict.HELD
    return units[stays]


def _copy_compaction(
    files: Files, plan: CompactionPlan, queue: CompactionQueue, kept: BatchUnits, topic: str, queue_id: int
) -> None:
    found = list_compaction_files(files, plan.root, topic, queue_id)
    handles = {
        first: files.open(found.log_directory / names.segment_file_name(first), writable=False)
        for first in found.logs
    }
    try:
        for unit in kept.tolist():
            phy_offset, size, code, stored_ms, base, *_rest = unit
            first = max(start for start in handles if start <= phy_offset)
            record = memoryview(bytearray(size))
            handles[first].read_into(record, phy_offset - first)
            (place,) = queue.prepare([size])
            queue.append(place, record, code, stored_ms, base)
    finally:
        for handle in handles.values():
            handle.close()


def _check_segment(files: Files, staged: Path, segment: WrittenSegment) -> None:
    size = files.open(segment_path(staged, segment.first), writable=False)
    segment_bytes = size.size_bytes
    size.close()
    reader = LogReader(files, staged, segment_bytes)
    crc = 0
    try:
        for at in range(0, segment.used_bytes, _CHUNK_BYTES):
            piece = reader.read(segment.first + at, min(_CHUNK_BYTES, segment.used_bytes - at))
            crc = zlib.crc32(piece, crc)
    finally:
        reader.close()
    if crc != segment.crc:
        raise StoreError(f"{segment_path(staged, segment.first)} does not read as it was written")


def _index_geometry(files: Files, root: Path) -> IndexGeometry | None:
    known, _damaged = list_index_files(files, root)
    return known[-1].geometry if known else None
