"""Reads runs of queue units by their number, and holds records against those of plain queues."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seglog.storage.directory.queue_files import QueueFiles, list_queue
from seglog.storage.files.files import Files
from seglog.storage.format.layout import Layout
from seglog.storage.format.names import CONSUME_QUEUE, segment_file_name
from seglog.storage.format.queue.consume_queue import CQ_UNIT, Units, in_use
from seglog.storage.kernels.walk import Rows
from seglog.storage.overlay.queue_overlay import may_differ_in_tags_code
from seglog.storage.splits.stretches import UnitState


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    start: int
    end: int


class UnitFiles:
    """The queue files of a store, those of one kind, for reading parts of them.

    Args:
        files: Where the store is.
        root: The store directory.
        file_size_bytes: Length that every queue file should have; longer ones are read up to it.
        layout: Their unit.
        folder: The one that queues of their kind share.
    """

    def __init__(
        self,
        files: Files,
        root: Path,
        file_size_bytes: int,
        layout: Layout = CQ_UNIT,
        folder: str = CONSUME_QUEUE,
    ) -> None:
        self._files = files
        self._root = root
        self._file_size_bytes = file_size_bytes
        self._layout = layout
        self._folder = folder
        self._queues: dict[tuple[str, int], list[_File]] = {}

    def read(self, topic: str, queue_id: int, first_slot: int, count: int) -> Units:
        """Returns ``count`` units, ``(count,)`` of the layout's dtype; those that no file holds are zero.

        Args:
            topic: The queue's topic.
            queue_id: Its number.
            first_slot: Number of the first unit; in a plain queue its queue offset.
            count: How many.
        """
        buffer = memoryview(bytearray(count * self._layout.size_bytes))
        start = first_slot * self._layout.size_bytes
        end = start + len(buffer)
        for file in self._list(topic, queue_id):
            low, high = max(start, file.start), min(end, file.end)
            if low < high:
                self._read_into(buffer[low - start : high - start], file, low - file.start)
        units: Units = np.frombuffer(buffer, self._layout.dtype, count)
        return units

    def extent(self, topic: str, queue_id: int) -> range:
        """Returns the numbers of the units that the files of a queue have room for."""
        found = self._list(topic, queue_id)
        if not found:
            return range(0)
        return range(found[0].start // self._layout.size_bytes, found[-1].end // self._layout.size_bytes)

    def states(self, topic: str, queue_id: int, rows: Rows) -> npt.NDArray[np.uint8]:
        """Returns the :class:`UnitState` of records of one queue.

        Args:
            topic: The queue's topic.
            queue_id: Its number.
            rows: ``(n,) ROW`` with consecutive queue offsets, n > 0.

        Returns:
            ``(n,) u1``.
        """
        units = self.read(topic, queue_id, int(rows["queue_offset"][0]), len(rows))
        same_place = in_use(units) & (units["phy_offset"] == rows["phy_offset"])
        codes = rows["tags_code"]
        same_code = (units["tags_code"] == codes) | may_differ_in_tags_code(topic, units, codes)
        agrees = same_place & same_code & (units["size_bytes"] == rows["size_bytes"])
        states = np.full(len(rows), UnitState.ABSENT, np.uint8)
        states[in_use(units)] = UnitState.DIFFERS
        states[same_place] = UnitState.SAME_PLACE
        states[agrees] = UnitState.AGREES
        return states

    def _list(self, topic: str, queue_id: int) -> list[_File]:
        known = self._queues.get((topic, queue_id))
        if known is None:
            known = self._queues[topic, queue_id] = self._find(topic, queue_id)
        return known

    def _find(self, topic: str, queue_id: int) -> list[_File]:
        directory = self._root / self._folder / topic / str(queue_id)
        queue = QueueFiles(topic, queue_id, directory, self._layout, self._folder)
        sizes = sorted(list_queue(self._files, queue).sizes.items())
        found = [
            _File(directory / segment_file_name(first), first, first + min(size, self._file_size_bytes))
            for first, size in sizes
        ]
        if found:
            last = found[-1]
            # Half a unit at the very end is none; before the end the next file's units follow it.
            cut = (last.end - last.start) % self._layout.size_bytes
            found[-1] = _File(last.path, last.start, last.end - cut)
        return found

    def _read_into(self, buffer: memoryview, file: _File, position: int) -> None:
        try:
            handle = self._files.open(file.path, writable=False)
        except FileNotFoundError:  # retention took it while we looked
            return
        with closing(handle):
            handle.read_into(buffer, position)
