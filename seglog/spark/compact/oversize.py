"""Finds the newest messages of a queue that fit into a number of bytes, from the end of its files.

A queue may have any number of messages, and this runs on the driver: it reads a bounded number of units at a
time, and stops at the newest message that must be dropped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from seglog.storage.audit import AuditQueue
from seglog.storage.files import Files
from seglog.storage.splits import UnitFiles

_UNITS_AT_ONCE: Final = 1 << 16


def oversize_below(
    files: Files, root: Path, queue: AuditQueue, queue_file_bytes: int, room_bytes: int
) -> int:
    """Returns the queue offset from which on the messages of a queue fit into a number of bytes.

    Args:
        files: Access to the store.
        root: The store directory.
        queue: A plain queue.
        queue_file_bytes: Length of its files.
        room_bytes: Number of bytes of records that the queue may have.
    """
    units = UnitFiles(files, root, queue_file_bytes)
    end, left_bytes = queue.max_offset, room_bytes
    while end > queue.min_offset:
        first = max(queue.min_offset, end - _UNITS_AT_ONCE)
        read = units.read(queue.topic, queue.queue_id, first, end - first)
        taken = np.cumsum(read["size_bytes"][::-1], dtype=np.int64)
        fitting = int(np.searchsorted(taken, left_bytes, "right"))
        end -= fitting
        if fitting < len(taken):
            break
        left_bytes -= int(taken[-1])
    return end
