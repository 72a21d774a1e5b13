"""The range of queue offsets of a queue, with a walk over the log only if it is needed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from seglog.doctor.message.log_access import LogView
from seglog.errors import NotFoundError
from seglog.storage.directory import read_units_left
from seglog.storage.files import Files
from seglog.storage.format.names import ABORT_FILE
from seglog.storage.overlay import is_message
from seglog.storage.survey import survey


def queue_range(files: Files, root: Path, topic: str, queue_id: int) -> tuple[int, int]:
    """Returns the queue offset of a queue's first message, and the offset of its next message.

    After a clean stop the queue's files give both. After a crash they may lack units, and the log is walked.

    Raises:
        NotFoundError: There is no such store, or the queue never had a message.
    """
    key = (topic, queue_id)
    found: tuple[int, int] | None = None
    with LogView(files, root) as view:
        queue = view.listing.queue_files.get(key)
        if queue is not None and queue.sizes and not files.exists(root / ABORT_FILE):
            first, units = read_units_left(files, queue, view.listing.geometry.queue_file_size_bytes)
            there = np.flatnonzero(is_message(units) & (units["phy_offset"] >= view.start))
            found = (first + int(there[0]) if len(there) else first + len(units), first + len(units))
    if found is None:
        states = survey(root, files)
        state = states.queues.get(key) or states.batch_queues.get(key)
        found = None if state is None else (state.min_offset, state.max_offset)
    if found is None:
        raise NotFoundError(
            f"no queue {topic}/{queue_id} in {root} ever had a message",
            help="`seglog inspect queues STORE` lists topics and queues",
        )
    return found
