"""A ConsumeQueue: the units of one queue in mapped files, one behind the other.

Truth: none; derived from the commit log. ``max_offset`` is the queue offset of the next message and is
published last, so readers without a lock see only finished units. The opening derives it from the log again.

Source: ``store/.../ConsumeQueue.java putMessagePositionInfo``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from seglog.storage.format.queue.consume_queue import CQ_UNIT, CQ_UNIT_BYTES, Units, pre_blanks
from seglog.storage.kernels.calls.tails import QueueTail
from seglog.storage.segments.mapped_file import MappedFile
from seglog.storage.segments.segments import Segments

if TYPE_CHECKING:
    from seglog.storage.kernels import _native

_PACK_UNIT: Final = CQ_UNIT.struct.pack_into
_UNPACK_UNIT: Final = CQ_UNIT.struct.unpack_from
_FAST_UNITS: Final = 1 << 14
_AHEAD_BYTES: Final = 1 << 16
"""Room reserved in a file that is created ahead, so that its queue does not need more at once."""
_NOTHING_READ: Final = (0, 0, memoryview(b""))


class SegmentsOpening(NamedTuple):
    """Gives the queues of a store their files.

    Attributes:
        lock: Held by a thread that gives a queue its files: a few steps, without waiting for the disk.
        segments: Returns the files of a topic and queue that hold the units between two queue offsets.
    """

    lock: threading.Lock
    segments: Callable[[str, int, int, int], Segments]


class ConsumeQueue:
    """One queue, open for writing.

    The objects for its files are created on first use: of many queues, most are never used.

    Attributes:
        tail: Its end.

    Args:
        opening: Gives it its files.
        file_offset: Queue offset of the first unit that its files hold.
        synced_offset: Queue offset up to which units are known to be on the disk.

    Thread rule: any thread may read, publish and sync; one at a time may append, and one grow.
    """

    __slots__ = (
        "_file_offset",
        "_files",
        "_last_read",
        "_opened_offset",
        "_opening",
        "_prepared",
        "_prepared_end",
        "_synced_offset",
        "queue_id",
        "tail",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        queue_id: int,
        opening: SegmentsOpening,
        tail: QueueTail,
        *,
        file_offset: int,
        synced_offset: int,
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.tail = tail
        self._opening = opening
        self._files: Segments | None = None
        self._file_offset = file_offset
        self._synced_offset = synced_offset
        self._opened_offset = tail.max_offset
        self._last_read = _NOTHING_READ
        self._prepared: MappedFile | None = None
        self._prepared_end = 0

    @property
    def _segments(self) -> Segments:
        """Its files."""
        return self._find_files() if self._files is None else self._files

    def _find_files(self) -> Segments:
        with self._opening.lock:
            if self._files is None:
                self._files = self._opening.segments(
                    self.topic, self.queue_id, self._file_offset, self._opened_offset
                )
            return self._files

    @property
    def maps(self) -> _native.Maps | None:
        """The maps of its files for native kernels, None without native kernels."""
        return self._segments.maps

    @property
    def min_offset(self) -> int:
        """Queue offset of the first message that the log holds."""
        return self.tail.min_offset

    @property
    def max_offset(self) -> int:
        """Queue offset that the next message gets."""
        return self.tail.max_offset

    @property
    def max_phy_offset(self) -> int:
        """End of the record of the last unit, as a physical offset; -1 before the first."""
        return self.tail.max_phy_offset

    @property
    def units_per_file(self) -> int:
        """Units in each file."""
        return self._segments.file_size_bytes // CQ_UNIT_BYTES

    def unit(self, queue_offset: int) -> tuple[int, int, int]:
        """Returns physical offset, size and tags code of a unit below the maximum; zeros without its file."""
        at = queue_offset * CQ_UNIT_BYTES
        first, end, view = self._last_read
        if not first <= at < end:
            file = self._segments.find(at)
            if file is None:
                return 0, 0, 0
            first, end, view = file.first_offset, file.first_offset + file.size_bytes, file.view.toreadonly()
            file.check_whole()
            self._last_read = first, end, view
        return _UNPACK_UNIT(view, at - first)

    def recheck(self) -> None:
        """Lets the next read of a unit check again that its file was not cut."""
        self._last_read = _NOTHING_READ

    def units(self, queue_offset: int, count: int) -> Units:
        """Returns up to ``count`` units from ``queue_offset`` on; zeros for a missing file."""
        count = max(0, min(count, self.max_offset - queue_offset))
        start, size = queue_offset * CQ_UNIT_BYTES, count * CQ_UNIT_BYTES
        file = self._segments.find(start)
        if file is not None and start + size <= file.first_offset + file.size_bytes:
            file.check_whole()
            return np.frombuffer(file.view.toreadonly(), CQ_UNIT.dtype, count, start - file.first_offset)
        found = memoryview(bytearray(size))
        for file in self._segments.between(start, start + size):
            file.check_whole()
            skipped = max(0, start - file.first_offset)
            part = file.view[skipped : start + size - file.first_offset]
            at = file.first_offset + skipped - start
            found[at : at + len(part)] = part
        return np.frombuffer(found.toreadonly(), CQ_UNIT.dtype)

    def file_of(self, queue_offset: int) -> MappedFile | None:
        """Returns the file of a unit, None if it is not there."""
        return self._segments.find(queue_offset * CQ_UNIT_BYTES)

    def copied_units(self, queue_offset: int, count: int) -> Units:
        """Returns units as :meth:`units` does, but of one file only, and reads them without holding the GIL.

        A page of a map that is being read from the disk blocks the thread that reads it, and with it every
        thread that waits for the GIL.
        """
        count = max(0, min(count, self.max_offset - queue_offset))
        file = self._segments.find(queue_offset * CQ_UNIT_BYTES)
        if file is None:
            return self.units(queue_offset, count)
        start = queue_offset * CQ_UNIT_BYTES - file.first_offset
        size = min(count * CQ_UNIT_BYTES, file.size_bytes - start)
        return np.frombuffer(file.read(start, size), CQ_UNIT.dtype)

    def memory(self, queue_offset: int, count: int) -> memoryview | None:
        """Returns the bytes of units without copying; None if they are in several files or in no file."""
        start, size = queue_offset * CQ_UNIT_BYTES, count * CQ_UNIT_BYTES
        file = self._segments.find(start)
        position = start % self._segments.file_size_bytes
        if file is None or not size or position + size > self._segments.file_size_bytes:
            return None
        return file.view[position : position + size].toreadonly()

    def room(self, count: int) -> list[memoryview] | None:
        """Returns memory for the next ``count`` units, one piece for each file; None until :meth:`grow`.

        Raises:
            TruncatedError: Another process cut a file.
            OSError: A file cannot be opened or mapped.
        """
        start, end = self.max_offset * CQ_UNIT_BYTES, (self.max_offset + count) * CQ_UNIT_BYTES
        # The usual case: the room is in the file of the last append, whose reserved end is remembered.
        last = self._prepared
        if last is not None and last.first_offset <= start and end <= self._prepared_end:
            last.check_whole()
            return [last.view[start - last.first_offset : end - last.first_offset]]
        pieces: list[memoryview] = []
        while start < end:
            file = self._segments.find(start)
            if file is None:
                return None
            position = start - file.first_offset
            file_end = min(file.size_bytes, position + end - start)
            if not file.has_reserved(position, file_end):
                return None
            pieces.append(file.view[position:file_end])
            file.check_whole()
            start += file_end - position
            self._prepared, self._prepared_end = file, file.first_offset + file.reserved_end
        return pieces

    def grow(self, count: int) -> None:
        """Makes the room that :meth:`room` lacks now; another append may use it first.

        Raises:
            FullError: The file system is full; the queue is unchanged.
            OSError: A file cannot be opened or mapped.
        """
        start, end = self.max_offset * CQ_UNIT_BYTES, (self.max_offset + count) * CQ_UNIT_BYTES
        while start < end:
            file = self._segments.find(start) or self._begin(start)
            position = start - file.first_offset
            file_end = min(file.size_bytes, position + end - start)
            file.reserve(position, file_end)
            start += file_end - position

    @property
    def grows_fast(self) -> bool:
        """Whether it grew so much since the open that its files should be created ahead."""
        return self.max_offset - self._opened_offset >= _FAST_UNITS

    def grow_ahead(self) -> None:
        """Reserves the file of a fast queue to its end, and past the middle of the file creates the next one.

        Raises:
            FullError: The file system is full; the queue is unchanged.
            OSError: A file cannot be opened or mapped.
        """
        at = self.max_offset * CQ_UNIT_BYTES
        file = self._segments.find(at)
        if file is None or not file.has_reserved(at - file.first_offset, at - file.first_offset):
            return  # the next append creates it
        if file.reserved_end < file.size_bytes:
            file.reserve_more(file.size_bytes)
        following = file.first_offset + file.size_bytes
        if at - file.first_offset >= file.size_bytes // 2 and self._segments.find(following) is None:
            staged = self._segments.stage(following)
            staged.reserve(0, min(staged.size_bytes, _AHEAD_BYTES))
            _mapped = staged.view

    def append(
        self, pieces: Sequence[memoryview], units: Sequence[tuple[int, int, int]], queue_offset: int
    ) -> None:
        """Appends units; may be called again, with the same arguments, after it was interrupted.

        Args:
            pieces: The memory that :meth:`room` returned for this number of units.
            units: Physical offset, size and tags code of each; one or more.
            queue_offset: The maximum before the first call.
        """
        done = 0
        for piece in pieces:
            position = 0
            for phy_offset, size_bytes, tags_code in units[done : done + len(piece) // CQ_UNIT_BYTES]:
                _PACK_UNIT(piece, position, phy_offset, size_bytes, tags_code)
                position += CQ_UNIT_BYTES
            done += position // CQ_UNIT_BYTES
        last_phy_offset, last_size_bytes, _tags_code = units[-1]
        self.tail.max_phy_offset = last_phy_offset + last_size_bytes
        self.tail.max_offset = queue_offset + len(
            units
        )  # last: it makes the units visible to readers without a lock

    def grant(self) -> None:
        """Grants the file of the next unit to the tail as a write window."""
        start = self.max_offset * CQ_UNIT_BYTES
        file = self._segments.find(start)
        if file is not None:
            file.grant(self.tail, start - file.first_offset, file.size_bytes)

    @property
    def is_staging(self) -> bool:
        """Whether a file that holds a unit is still staged, without its final name."""
        return self._segments.is_staging(self.max_offset * CQ_UNIT_BYTES)

    @property
    def is_next_staged(self) -> bool:
        """Whether the next unit goes to a file that has no name yet, and gets it with that unit."""
        return self._segments.is_staging(self.max_offset * CQ_UNIT_BYTES + 1)

    def publish(self) -> None:
        """Gives staged files that hold a unit their final names."""
        self._segments.publish(self.max_offset * CQ_UNIT_BYTES)

    def sync(self) -> None:
        """Returns once every unit appended before the call is on the disk."""
        start, end = self._synced_offset, self.max_offset
        if start < end:
            # Contents before names: after a crash a file with a name holds its units.
            for file in self._segments.between(start * CQ_UNIT_BYTES, end * CQ_UNIT_BYTES):
                file.sync()
            self._segments.publish(end * CQ_UNIT_BYTES)
            self._segments.sync_names()
            self._synced_offset = end

    def expire(self, min_offset: int) -> None:
        """Raises the queue's minimum to an offset, before the messages below it are removed."""
        self.tail.min_offset = max(self.tail.min_offset, min_offset)

    @property
    def file_offset(self) -> int:
        """Queue offset at which the first file to keep begins; the file of the last message always stays."""
        return max(0, min(self.min_offset, self.max_offset - 1)) // self.units_per_file * self.units_per_file

    def remove_expired(self) -> MappedFile | None:
        """Removes the first file if none of its messages exist any more; returns it, None if it stays."""
        return self._segments.remove_first(self.file_offset * CQ_UNIT_BYTES)

    def remove_files(self) -> int:
        """Removes all files of a queue that gets no more units; returns their number."""
        return self._segments.remove_all()

    def sync_names(self) -> None:
        """Returns once the names of all files are on the disk."""
        self._segments.sync_names()

    def close(self) -> None:
        """Closes maps and descriptors."""
        self._last_read = _NOTHING_READ
        if self._files is not None:
            self._files.close()

    def _begin(self, start: int) -> MappedFile:
        """Creates the file for byte ``start``; marks the slots below the queue's first unit as empty."""
        file = self._segments.stage(start)
        below = (start - file.first_offset) // CQ_UNIT_BYTES
        if below:
            file.reserve(0, below * CQ_UNIT_BYTES)
            file.view[: below * CQ_UNIT_BYTES] = pre_blanks(below).tobytes()
        return file
