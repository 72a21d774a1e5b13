"""Which of the newest messages of a queue take no more bytes than they may, read from the end of its files.

A queue may have any number of messages, and the driver looks: it reads so many units at a time, and none
before the first message that goes.
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
    """Returns from which queue offset on the newest messages of a queue take no more than they may.

    Args:
        files: Where the store is.
        root: The store directory.
        queue: A plain queue.
        queue_file_bytes: Length of its files.
        room_bytes: How many bytes of records it may have.
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
