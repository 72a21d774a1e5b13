"""Writes the queues of the new store from the units beside its segments; one task for each queue.

From the file beside a segment only the units of the queue are read, and only as many as one queue file holds
at a time: a task needs memory for one file, however long the queue is. If a queue has files already, it is
continued: the old files are read at their place, and never written.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from seglog.errors import StoreError
from seglog.spark.making.derived import QueueSlice, units_path
from seglog.spark.making.spills import ATTEMPT, Key, load_part
from seglog.storage.directory import queue_directory
from seglog.storage.files import Files, RestoringFiles
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.queue import CQ_UNIT, CQ_UNIT_BYTES, pre_blanks
from seglog.storage.kernels.queue_units import SPILLED, Spilled


def load_units(files: Files, staged: Path, slices: Sequence[QueueSlice]) -> Spilled:
    """Returns units of one queue, in the order of the log.

    Args:
        files: Access to the new store.
        staged: The new store.
        slices: All slices of the queue.
    """
    parts = [
        load_part(files, units_path(staged, one.segment), SPILLED, one.start, one.units) for one in slices
    ]
    return np.concatenate([np.zeros(0, SPILLED), *parts])


def write_queue(
    files: RestoringFiles,
    staged: Path,
    key: Key,
    slices: Sequence[QueueSlice],
    file_bytes: int,
    before: Path | None = None,
) -> int:
    """Writes the files of one queue, durably; returns the number of units.

    Args:
        files: Access to the new store.
        staged: The new store.
        key: Topic and queue id.
        slices: All of its units, in the order of the log.
        file_bytes: Length of its files.
        before: The store whose queue is continued; None for a new queue.

    Raises:
        StoreError: Its queue offsets have a gap: the log was not in order.
    """
    topic, queue_id = key
    begin, end = slices[0].first_offset, slices[-1].first_offset + slices[-1].units
    directory = staged / queue_directory(topic, queue_id)
    files.make_dirs(directory)
    per_file = file_bytes // CQ_UNIT_BYTES
    for first in range(begin - begin % per_file, end, per_file):
        wanted = range(max(begin, first), min(end, first + per_file))
        found = load_units(files, staged, list(_within(slices, wanted)))
        if not np.array_equal(found["queue_offset"], np.arange(wanted.start, wanted.stop)):
            raise StoreError(
                f"the queue offsets of {topic}/{queue_id} from {first} on have a gap", help="run seglog check"
            )
        units = np.zeros(len(found), CQ_UNIT.dtype)
        for name in CQ_UNIT.dtype.names or ():
            units[name] = found[name]
        name = segment_file_name(first * CQ_UNIT_BYTES)
        held = _held(files, before, queue_directory(topic, queue_id), name, wanted.start - first)
        data = held + units.tobytes()
        # Beside the folder: another name in the folder would keep RocketMQ from starting.
        attempt = staged / f"{ATTEMPT}-{uuid.uuid4().hex}"
        with closing(files.create(attempt, file_bytes)) as file:
            file.write_at(data, 0)
            file.sync()
        files.rename(attempt, directory / name)
    files.sync_dir(directory)
    return end - begin


def _held(files: Files, before: Path | None, folder: str, name: str, units: int) -> bytes:
    """Returns the first bytes of a queue file: the units that it has already, or blanks for none."""
    path = None if before is None else before / folder / name
    if path is not None and units and files.exists(path):
        found = load_part(files, path, CQ_UNIT.dtype, 0, units)
        if len(found) == units and found["size_bytes"].any():
            return found.tobytes()
    return pre_blanks(units).tobytes()


def _within(slices: Sequence[QueueSlice], wanted: range) -> Iterator[QueueSlice]:
    """Yields the parts of some slices with queue offsets in a range."""
    for one in slices:
        skipped = max(0, wanted.start - one.first_offset)
        units = min(one.units, wanted.stop - one.first_offset) - skipped
        if units > 0:
            yield one._replace(
                start=one.start + skipped, units=units, first_offset=one.first_offset + skipped
            )
