"""Writes the queues of the new store from the units beside its segments; one task for each queue."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from seglog.errors import StoreError
from seglog.spark.compact.writing import ATTEMPT, QueueSlice, Spilled, load_array, units_path
from seglog.storage.directory import queue_directory
from seglog.storage.files import RestoringFiles
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.queue import CQ_UNIT, CQ_UNIT_BYTES, pre_blanks


def load_units(files: RestoringFiles, staged: Path, slices: Sequence[QueueSlice]) -> Spilled:
    """Returns all units of one queue, in the order of the log."""
    parts = [
        load_array(files, units_path(staged, one.segment))[one.start : one.start + one.units]
        for one in sorted(slices)
    ]
    return np.concatenate(parts)


def write_queue(
    files: RestoringFiles,
    staged: Path,
    topic: str,
    queue_id: int,
    slices: Sequence[QueueSlice],
    file_bytes: int,
) -> int:
    """Writes the files of one queue, durably; returns how many units it has.

    Raises:
        StoreError: Its queue offsets have a gap: the log was not in order.
    """
    found = load_units(files, staged, slices)
    begin = int(found["queue_offset"][0])
    if not np.array_equal(found["queue_offset"], np.arange(begin, begin + len(found))):
        raise StoreError(f"the queue offsets of {topic}/{queue_id} have a gap", help="run seglog check")
    units = np.zeros(len(found), CQ_UNIT.dtype)
    for name in CQ_UNIT.dtype.names or ():
        units[name] = found[name]
    directory = staged / queue_directory(topic, queue_id)
    files.make_dirs(directory)
    per_file = file_bytes // CQ_UNIT_BYTES
    for first in range(begin - begin % per_file, begin + len(found), per_file):
        blank = max(0, begin - first)
        part = units[max(0, first - begin) : max(0, first + per_file - begin)]
        data = pre_blanks(blank).tobytes() + part.tobytes()
        path = directory / segment_file_name(first * CQ_UNIT_BYTES)
        # Beside the folder: in it, another name would keep RocketMQ from starting.
        attempt = staged / f"{ATTEMPT}-{uuid.uuid4().hex}"
        with closing(files.create(attempt, file_bytes)) as file:
            file.write_at(data, 0)
            file.sync()
        files.rename(attempt, path)
    files.sync_dir(directory)
    return len(found)
