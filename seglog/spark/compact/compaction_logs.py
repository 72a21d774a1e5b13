"""Writes the compaction logs of the new store, without dropped messages; one task for each queue.

Compaction logs are the truth of their topics, so the new ones are made from the old ones. For messages that
are in the commit log too, the verdict on their record in it applies. Messages that RocketMQ dropped are not
restored from the commit log.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from seglog.spark.compact.policy import Verdict
from seglog.spark.compact.task import Task, compaction_units
from seglog.spark.compact.writing import verdicts_path
from seglog.spark.making.derived import QueueSlice
from seglog.spark.making.queues import load_units
from seglog.spark.making.spills import ATTEMPT, Key
from seglog.storage.compaction import (
    CompactionQueue,
    CompactionState,
    CompactionUnits,
    infer_compaction_sizes,
    list_compaction_files,
    queue_ids,
)
from seglog.storage.directory import LogReader, configured_kinds
from seglog.storage.files import Files, RestoringFiles, read_all, remove_tree
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.queue import BatchUnits
from seglog.storage.kernels.queue_units import Spilled
from seglog.storage.segments import MapPool


def compaction_queues(files: Files, root: Path) -> list[Key]:
    """Returns the queues of a store that have compaction logs."""
    topics = sorted(configured_kinds(files, root).compaction)
    return [(topic, queue_id) for topic in topics for queue_id in sorted(queue_ids(files, root, topic))]


def write_compaction_log(
    files: RestoringFiles, task: Task, staged: Path, key: Key, slices: Sequence[QueueSlice]
) -> int:
    """Writes the log of one compaction queue, durably; returns the offset below which it counts as compacted.

    Args:
        files: Access to both stores.
        task: The compaction.
        staged: The new store.
        key: Topic and queue id.
        slices: The units of the queue in the new commit log.
    """
    topic, queue_id = key
    units = compaction_units(files, task.root, topic, queue_id)
    new = load_units(files, staged, slices)
    kept = _kept_units(files, task, staged, key, units, new)
    every = [list_compaction_files(files, task.root, topic, at) for at in queue_ids(files, task.root, topic)]
    # Each attempt writes to a folder of its own: another attempt may run at the same time, with the same
    # result.
    attempt = staged / f"{ATTEMPT}-{uuid.uuid4().hex}"
    made = list_compaction_files(files, attempt, topic, queue_id)
    state = CompactionState(made, CompactionUnits(infer_compaction_sizes(every)))
    with closing(CompactionQueue(state, files, MapPool())) as queue:
        _copy(files, task, staged, queue, kept, new, key)
        queue.sync()
    final = list_compaction_files(files, staged, topic, queue_id)
    for source, target in (
        (made.log_directory, final.log_directory),
        (made.queue_directory, final.queue_directory),
    ):
        files.make_dirs(target)
        for entry in files.list_dir(source):
            files.rename(source / entry.name, target / entry.name)
        files.sync_dir(target)
    remove_tree(files, attempt)
    # RocketMQ maps all records after this offset at its next compaction. These are all others, so none is
    # missed.
    return max(0, int(kept["base_queue_offset"][0]) - 1) if len(kept) else 0


def _kept_units(
    files: RestoringFiles,
    task: Task,
    staged: Path,
    key: Key,
    units: BatchUnits,
    new: Spilled,
) -> BatchUnits:
    """Returns the units of a compaction queue whose messages are kept."""
    stays = np.ones(len(units), np.bool_)
    offsets = units["base_queue_offset"].astype(np.int64)
    if len(new) and key in task.policies:
        gone = new["queue_offset"][~new["is_kept"]]
        stays &= ~np.isin(offsets, gone)
        for number, part in enumerate(task.compaction):
            if (part.topic, part.queue_id) == key:
                stays &= (offsets < part.below_offset) | (offsets >= int(new["queue_offset"][0]))
                data = read_all(files, verdicts_path(staged, len(task.splits) + number))
                verdicts = np.frombuffer(data, np.int8)
                stays[: len(verdicts)] &= verdicts <= Verdict.HELD
    return units[stays]


def _copy(
    files: Files, task: Task, staged: Path, queue: CompactionQueue, kept: BatchUnits, new: Spilled, key: Key
) -> None:
    """Appends messages: from the new commit log, or from the old compaction log if the new log lacks them."""
    found = list_compaction_files(files, task.root, *key)
    handles = {
        first: files.open(found.log_directory / segment_file_name(first), writable=False)
        for first in found.logs
    }
    places = dict(zip(new["queue_offset"].tolist(), new["phy_offset"].tolist(), strict=True))
    try:
        with closing(LogReader(files, staged, task.geometry.segment_size_bytes)) as reader:
            for unit in kept.tolist():
                phy_offset, size, code, stored_ms, base, *_rest = unit
                # The record CRC depends on the place in the commit log, so the moved record is read.
                if base in places:
                    record = reader.read(places[base], size)
                else:
                    first = max(start for start in handles if start <= phy_offset)
                    record = memoryview(bytearray(size))
                    handles[first].read_into(record, phy_offset - first)
                (place,) = queue.prepare([size])
                queue.append(place, record, code, stored_ms, base)
    finally:
        for handle in handles.values():
            handle.close()
