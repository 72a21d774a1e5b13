"""A batch queue: 46-byte units in mapped files, each for one record of one or many messages.

Truth: none; derived from the commit log. Units are in the order of the log; a binary search for the base
offset finds one. ``end_index`` and ``max_offset`` are published last, so readers without a lock see only
finished units.

Source: ``store/.../BatchConsumeQueue.java putBatchMessagePositionInfo``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from seglog.storage.format.queue.batch_consume_queue import (
    BATCH_UNIT,
    BATCH_UNIT_BYTES,
    NO_COMPACTED_OFFSET,
    BatchUnits,
)
from seglog.storage.overlay.batch_overlay import BatchQueueState
from seglog.storage.segments.mapped_file import MappedFile
from seglog.storage.segments.segments import Segments

_PACK_UNIT: Final = BATCH_UNIT.struct.pack_into


class BatchQueue:
    """One batch queue, open for writing.

    Attributes:
        min_offset: Queue offset of the first message that the log holds.
        max_offset: Queue offset that the next message gets.
        max_phy_offset: Physical offset of the last record, -1 before the first.
        first_index: Number of the first unit that the files hold.
        end_index: Number of the next unit.

    Args:
        synced_index: Number of the unit up to which all are known to be on the disk.

    Thread rule: any thread may read; one at a time may append.
    """

    def __init__(self, state: BatchQueueState, segments: Segments, synced_index: int) -> None:
        self.topic = state.topic
        self.queue_id = state.queue_id
        self.min_offset = state.min_offset
        self.max_offset = state.max_offset
        self.max_phy_offset = state.max_phy_offset
        self.first_index = state.first_index
        self.end_index = state.first_index + len(state.units)
        self._segments = segments
        self._synced_index = synced_index

    def file_end(self, index: int) -> int:
        """Returns the number of the first unit behind the file of a unit."""
        per_file = self._segments.file_size_bytes // BATCH_UNIT_BYTES
        return index - index % per_file + per_file

    def units(self, index: int, count: int) -> BatchUnits:
        """Returns copies of up to ``count`` units from number ``index`` on; zeros for a missing file."""
        count = max(0, min(count, self.end_index - index))
        found = np.zeros(count, BATCH_UNIT.dtype)
        done = 0
        while done < count:
            start = (index + done) * BATCH_UNIT_BYTES
            position = start % self._segments.file_size_bytes
            here = min(count - done, (self._segments.file_size_bytes - position) // BATCH_UNIT_BYTES)
            file = self._segments.find(start)
            if file is not None:
                file.check_whole()
                found[done : done + here] = np.frombuffer(file.view, BATCH_UNIT.dtype, here, position)
            done += here
        return found

    def room(self, count: int) -> list[memoryview] | None:
        """Returns memory for the next ``count`` units, one piece for each unit; None until :meth:`grow`.

        Raises:
            TruncatedError: Another process cut a file.
            OSError: A file cannot be opened or mapped.
        """
        pieces: list[memoryview] = []
        for index in range(self.end_index, self.end_index + count):
            start = index * BATCH_UNIT_BYTES
            file = self._segments.find(start)
            if file is None:
                return None
            position = start - file.first_offset
            if not file.has_reserved(position, position + BATCH_UNIT_BYTES):
                return None
            pieces.append(file.view[position : position + BATCH_UNIT_BYTES])
            file.check_whole()
        return pieces

    def grow(self, count: int) -> None:
        """Makes the room that :meth:`room` lacks now; another append may use it first.

        Raises:
            FullError: The file system is full; the queue is unchanged.
            OSError: A file cannot be opened.
        """
        for index in range(self.end_index, self.end_index + count):
            start = index * BATCH_UNIT_BYTES
            file = self._segments.find(start) or self._segments.stage(start)
            file.reserve(start - file.first_offset, start - file.first_offset + BATCH_UNIT_BYTES)

    def append(
        self,
        pieces: Sequence[memoryview],
        units: Sequence[tuple[int, int, int]],
        store_timestamp_ms: int,
        batch_size: int,
        queue_offset: int,
        index: int,
    ) -> None:
        """Appends units; may be called again, with the same arguments, after it was interrupted.

        Args:
            pieces: The memory that :meth:`room` returned for this number of units.
            units: Physical offset, size and tags code of each; one or more.
            store_timestamp_ms: The store time of all of them.
            batch_size: Messages in each.
            queue_offset: The maximum before the first call.
            index: The number of units before the first call.
        """
        base = queue_offset
        for piece, unit in zip(pieces, units, strict=True):
            _PACK_UNIT(piece, 0, *unit, store_timestamp_ms, base, batch_size, NO_COMPACTED_OFFSET, 0)
            base += batch_size
        self.max_phy_offset = units[-1][0]
        self.end_index = index + len(units)
        self.max_offset = base

    @property
    def is_staging(self) -> bool:
        """Whether a file that holds a unit is still staged, without its final name."""
        return self._segments.is_staging(self.end_index * BATCH_UNIT_BYTES)

    def publish(self) -> None:
        """Gives staged files that hold a unit their final names."""
        self._segments.publish(self.end_index * BATCH_UNIT_BYTES)

    def sync(self) -> None:
        """Returns once every unit appended before the call is on the disk."""
        start, end = self._synced_index, self.end_index
        if start < end:
            for file in self._segments.between(start * BATCH_UNIT_BYTES, end * BATCH_UNIT_BYTES):
                file.sync()
            self._segments.publish(end * BATCH_UNIT_BYTES)
            self._segments.sync_names()
            self._synced_index = end

    def expire(self, min_offset: int) -> None:
        """Raises the queue's minimum to an offset, before the messages below it are removed."""
        self.min_offset = max(self.min_offset, min_offset)

    def remove_expired(self) -> MappedFile | None:
        """Removes the first file if none of its messages exist any more; returns it, None if it stays.

        The file of the last unit always stays.
        """
        units = self.units(self.first_index, self.file_end(self.first_index) - self.first_index)
        stays = self.first_index + len(units) >= self.end_index
        if stays or int(units[-1]["base_queue_offset"] + units[-1]["batch_size"]) > self.min_offset:
            return None
        end = self.file_end(self.first_index)
        removed = self._segments.remove_first(end * BATCH_UNIT_BYTES)
        self.first_index = end
        return removed

    def remove_files(self) -> int:
        """Removes all files of a queue that gets no more units; returns their number."""
        return self._segments.remove_all()

    def sync_names(self) -> None:
        """Returns once the names of all files are on the disk."""
        self._segments.sync_names()

    def close(self) -> None:
        """Closes maps and descriptors."""
        self._segments.close()
