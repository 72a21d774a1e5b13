"""Splits: the stretches of the commit log that tasks read, each for itself.

A split owns the records whose first byte is in its range. Records may continue behind its end, never
behind the end of their file; so together the splits of a log own every record once.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from typing import Final

from seglog.errors import InvalidArgumentError
from seglog.storage.directory.log_files import LogFile
from seglog.storage.walk.segment_walk import Split

DEFAULT_SPLIT_BYTES: Final = 128 << 20
MIN_SPLIT_BYTES: Final = 1 << 10


def plan_splits(log_files: Iterable[LogFile], segment_size_bytes: int, split_bytes: int) -> list[Split]:
    """Returns the splits of a log, in log order.

    Every file has at least one, and its last reaches to where the file should end, so that no place of
    the log is without an owner when a file was cut short.

    Args:
        log_files: The commit-log files in order.
        segment_size_bytes: Length that each should have.
        split_bytes: Length of a split, at least :data:`MIN_SPLIT_BYTES`; the last of a file may be shorter.

    Raises:
        InvalidArgumentError: ``split_bytes`` is too small.
    """
    if split_bytes < MIN_SPLIT_BYTES:
        raise InvalidArgumentError(f"split_bytes={split_bytes} is below {MIN_SPLIT_BYTES}")
    splits: list[Split] = []
    for file in log_files:
        if file.first_offset % segment_size_bytes:
            continue  # no segment starts there; the walk never comes to it
        size = max(1, min(file.size_bytes, segment_size_bytes))
        segment_end = file.first_offset + segment_size_bytes
        starts = range(file.first_offset, file.first_offset + size, split_bytes)
        ends = [*starts[1:], segment_end]
        for start, end in zip(starts, ends, strict=True):
            splits.append(Split(len(splits), start, end, segment_end))
    return splits


def owner(splits: list[Split], phy_offset: int) -> Split | None:
    """Returns the split that owns a place of the log; None where there is no file."""
    at = bisect.bisect_right(splits, phy_offset, key=lambda split: split.start) - 1
    return splits[at] if at >= 0 and phy_offset < splits[at].end else None
