"""Holds the files of one batch queue against what the splits saw of it.

The rules are the engine's: :func:`seglog.storage.overlay.batch_overlay.overlay_batch_queue` decides. It
wants the unit of every record; those that the files hold are read off them, the others came along.

Memory: the units of one queue and a few times as much, about 200 bytes a record.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seglog.storage.audit.queue_audit import LogExtent
from seglog.storage.audit.report import AuditQueue
from seglog.storage.directory.queue_files import QueueFiles, read_units_left
from seglog.storage.files.files import Files
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT, BatchUnits
from seglog.storage.overlay.batch_overlay import BatchQueueState, overlay_batch_queue
from seglog.storage.overlay.kept_units import LogFacts
from seglog.storage.splits.stretches import BatchRun


def overlay_batch(
    queue: QueueFiles, runs: Sequence[BatchRun], log: LogExtent, files: Files, file_size_bytes: int
) -> tuple[BatchQueueState, AuditQueue]:
    """Returns what a batch queue must hold, held against its files, and the queue as it is.

    Args:
        queue: Its files, possibly none.
        runs: Its records, in log order.
        log: The log.
        files: Where the store is.
        file_size_bytes: Length that a batch-queue file should have.
    """
    first_index, stored = read_units_left(files, queue, file_size_bytes)
    fresh = units_of(runs, first_index, stored)
    facts = LogFacts(
        max(0, log.min_phy_offset),
        log.end_phy_offset,
        log.holes,
        np.empty(0, np.int64),
        np.empty(0, np.int32),
        file_size_bytes,
        log.is_closed,
    )
    has_files = bool(queue.sizes)
    state = overlay_batch_queue(
        queue.topic, queue.queue_id, fresh, first_index, stored, facts, has_files=has_files
    )
    base = fresh["base_queue_offset"].astype(np.int64)
    end = base + fresh["batch_size"]
    steps = base[1:] - end[:-1]
    times = fresh["store_timestamp_ms"]
    return state, AuditQueue(
        queue.topic,
        queue.queue_id,
        state.min_offset,
        state.max_offset,
        len(fresh),
        int(fresh["size_bytes"].sum(dtype=np.int64)),
        int(base.min()) if len(fresh) else -1,
        int(end.max()) - 1 if len(fresh) else -1,
        int((steps > 0).sum()),
        int((steps < 0).sum()),
        int(times.min()) if len(fresh) else 0,
        int(times.max()) if len(fresh) else 0,
        "batch",
    )


def units_of(runs: Sequence[BatchRun], first_index: int, stored: BatchUnits) -> BatchUnits:
    """Returns the units of a queue's records.

    Args:
        runs: The records, in log order.
        first_index: Number of ``stored[0]``.
        stored: The units that the files hold; those that retention took since are left out.

    Returns:
        ``(n,) BATCH_UNIT.dtype``, in log order.
    """
    parts = [np.empty(0, BATCH_UNIT.dtype)]
    for run in runs:
        if run.units:
            parts.append(np.frombuffer(run.units, BATCH_UNIT.dtype))
        else:
            start = run.first_index - first_index
            parts.append(stored[max(0, start) : max(0, start + run.records)])
    return np.concatenate(parts, dtype=BATCH_UNIT.dtype)
