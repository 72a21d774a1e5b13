"""Finds a store time in a log and in its queues.

Store times increase with places, except when a clock was set back. So a log file is left out only if the
store time of its first record is further than :data:`SLACK_MS` from the selected times. Messages that were
stored while a clock was set back by more are the limit of `startingTimestamp` and `endingTimestamp`. In files
that are read, the time of every message is tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from seglog.spark.source.read.queue_units import Queue, StoreQueues
from seglog.spark.source.wanted.selection import LEAST, MOST, Span
from seglog.storage.directory import MOST_RECORD_BYTES, LogFile, LogReader
from seglog.storage.walk import record_at

SLACK_MS: Final = 600_000
"""Ten minutes: clocks of servers are set back by seconds."""


def files_of_times(reader: LogReader, log_files: Sequence[LogFile], times_ms: Span) -> list[LogFile]:
    """Returns the files of a log that may hold messages of some store times.

    Args:
        reader: The log.
        log_files: Its files, in order.
        times_ms: The store times.
    """
    if times_ms.is_all:
        return list(log_files)
    begins = [_begins_ms(reader, file) for file in log_files]
    found: list[LogFile] = []
    for file, (begin, end) in zip(log_files, pairwise([*begins, None]), strict=True):
        is_before = end is not None and end < max(times_ms.first, LEAST + SLACK_MS) - SLACK_MS
        is_behind = begin is not None and begin > min(times_ms.last, MOST - SLACK_MS) + SLACK_MS
        if not is_before and not is_behind:
            found.append(file)
    return found


def first_stored_from(
    reader: LogReader, queues: StoreQueues, queue: Queue, room: range, store_timestamp_ms: int
) -> int:
    """Returns the number of the first unit whose message was stored at a time or later, or ``room.stop``.

    Args:
        reader: The log.
        queues: The queues of the store.
        queue: One of them.
        room: Numbers of the units to search.
        store_timestamp_ms: The time.
    """
    low, high = room.start, room.stop
    while low < high:
        middle = (low + high) // 2
        place = int(queues.units(queue, middle, middle + 1)["phy_offset"][0])
        found = record_at(reader, place, verify=False, most_bytes=MOST_RECORD_BYTES)
        if found is not None and found[1].store_timestamp_ms >= store_timestamp_ms:
            high = middle
        else:
            low = middle + 1
    return low


def _begins_ms(reader: LogReader, file: LogFile) -> int | None:
    """Returns the store time of a file's first record; None if it cannot be read."""
    found = record_at(reader, file.first_offset, verify=False, most_bytes=MOST_RECORD_BYTES)
    return None if found is None else found[1].store_timestamp_ms
