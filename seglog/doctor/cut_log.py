"""Whether the only file of a log was cut, so that nothing in the store tells any more how long it was.

A repair that took its length for that of all files would make others of that length beside it, which
RocketMQ, whose configuration knows better, cannot use.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from seglog.storage.findings import Finding
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.queue_overlay import is_message
from seglog.storage.survey import Survey

MAX_LOG_FILE_BYTES: Final = 0x7FFF_FFFF
"""RocketMQ counts the bytes of a file in 32 bits."""


def cut_log_finding(found: Survey) -> Finding | None:
    """Returns a finding if records that queues know of would go over the end of a file of that length."""
    if len(found.log_files) != 1 or not found.log_files[0].size_bytes:
        return None
    (file,) = found.log_files
    size = file.size_bytes
    longest = 0
    of_queues = [
        part[is_message(part)] for state in found.queues.values() for part in (state.units, state.behind)
    ]
    of_batches = [part for batch in found.batch_queues.values() for part in (batch.units, batch.behind)]
    for units in of_queues + of_batches:
        start = units["phy_offset"].astype(np.int64) - file.first_offset
        end = start + units["size_bytes"]
        in_a_file = (start >= 0) & (end <= MAX_LOG_FILE_BYTES)  # anything else is noise in a queue file
        start, end = start[in_a_file], end[in_a_file]
        if (start // size != (end - 1) // size).any():
            longest = max(longest, int(end.max()))
    if not longest:
        return None
    words = (f"at least {longest}: give the length of log files with --segment-bytes", str(size))
    return Finding("log-file-size", f"{COMMIT_LOG}/{segment_file_name(file.first_offset)}", 0, 0, *words)
