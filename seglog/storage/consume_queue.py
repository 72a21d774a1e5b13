"""A ConsumeQueue: the units of one queue in mapped files, one behind the other.

Truth: none; derived from the commit log. ``max_offset`` is where the next message goes and is published
last, so readers without a lock see only finished units. Opening works it out anew from the log.

Source: ``store/.../ConsumeQueue.java putMessagePositionInfo``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from seglog.storage.format.consume_queue import CQ_UNIT, CQ_UNIT_BYTES, Units, pre_blanks
from seglog.storage.mapped_file import MappedFile
from seglog.storage.segments import Segments

_PACK_UNIT: Final = CQ_UNIT.struct.pack_into


class ConsumeQueue:
    """One queue, open for writing.

    Attributes:
        min_offset: Queue offset of the first message that the log holds.
        max_offset: Queue offset that the next message gets.
        max_phy_offset: Where the record of the last unit ends, -1 before the first.

    Thread rule: any thread may read; one at a time may append.
    """

    __slots__ = (
        "_prepared_end",
        "_segments",
        "_synced_offset",
        "_tail",
        "max_offset",
        "max_phy_offset",
        "min_offset",
        "queue_id",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        queue_id: int,
        segments: Segments,
        *,
        min_offset: int,
        max_offset: int,
        max_phy_offset: int,
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.min_offset = min_offset
        self.max_offset = max_offset
        self.max_phy_offset = max_phy_offset
        self._segments = segments
        self._synced_offset = max_offset
        self._prepared_end = 0
        self._tail: tuple[memoryview, ...] = ()

    @property
    def units_per_file(self) -> int:
        """Units in each file."""
        return self._segments.file_size_bytes // CQ_UNIT_BYTES

    def units(self, queue_offset: int, count: int) -> Units:
        """Returns up to ``count`` units from ``queue_offset`` on, copied; where a file is missing, zeros."""
        count = max(0, min(count, self.max_offset - queue_offset))
        found = np.zeros(count, CQ_UNIT.dtype)
        done = 0
        while done < count:
            start = (queue_offset + done) * CQ_UNIT_BYTES
            position = start % self._segments.file_size_bytes
            here = min(count - done, (self._segments.file_size_bytes - position) // CQ_UNIT_BYTES)
            file = self._segments.find(start)
            if file is not None:
                found[done : done + here] = np.frombuffer(file.view, CQ_UNIT.dtype, here, position)
            done += here
        return found

    def prepare(self, count: int) -> None:
        """Makes sure that the next ``count`` units find files, maps and space.

        Raises:
            FullError: The file system is full; the queue is as it was.
            OSError: A file cannot be made or mapped; the queue is as it was.
        """
        start, end = self.max_offset * CQ_UNIT_BYTES, (self.max_offset + count) * CQ_UNIT_BYTES
        if end > self._prepared_end:
            self._reserve(start, end)
        # Mapping may fail, and must not any more once the records are in the log.
        file = self._segments.find(start)
        if file is not None and end <= file.first_offset + file.size_bytes:
            self._tail = (file.view,)
        else:
            self._tail = tuple([file.view for file in self._segments.between(start, end)])

    def _reserve(self, start: int, end: int) -> None:
        size = self._segments.file_size_bytes
        while start < end:
            file = self._segments.find(start) or self._begin(start)
            position = start % size
            file_end = min(size, position + end - start)
            file.reserve(position, file_end)
            start += file_end - position
            self._prepared_end = file.first_offset + file.reserved_end

    def append(self, units: Sequence[tuple[int, int, int]]) -> None:
        """Appends units (physical offset, size, tags code), one or more; :meth:`prepare` came before."""
        size = self._segments.file_size_bytes
        position = self.max_offset * CQ_UNIT_BYTES % size
        number, view = 0, self._tail[0]
        for phy_offset, size_bytes, tags_code in units:
            if position == size:
                number += 1
                position, view = 0, self._tail[number]
            _PACK_UNIT(view, position, phy_offset, size_bytes, tags_code)
            position += CQ_UNIT_BYTES
        self._tail = ()
        last_phy_offset, last_size_bytes, _tags_code = units[-1]
        self.max_phy_offset = last_phy_offset + last_size_bytes
        self.max_offset += len(units)

    def sync(self) -> None:
        """Returns once every unit appended before the call is on the disk."""
        start, end = self._synced_offset, self.max_offset
        if start < end:
            for file in self._segments.between(start * CQ_UNIT_BYTES, end * CQ_UNIT_BYTES):
                file.sync()
            self._segments.sync_names()
            self._synced_offset = end

    def close(self) -> None:
        """Gives up maps and descriptors."""
        self._segments.close()

    def _begin(self, start: int) -> MappedFile:
        """Creates the file for byte ``start``; slots below the queue's first one are marked as empty."""
        file = self._segments.add(start, sync=False)
        below = (start - file.first_offset) // CQ_UNIT_BYTES
        if below:
            file.reserve(0, below * CQ_UNIT_BYTES)
            file.view[: below * CQ_UNIT_BYTES] = pre_blanks(below).tobytes()
        return file
