"""The CommitLog: every message of every queue, one record behind the other, in mapped files.

Truth: this is it. A record's physical offset never changes. Writers fill files in order; a record that
does not fit with 8 bytes to spare goes to the next file, and a filler takes the rest of this one.

Source: ``store/.../CommitLog.java asyncPutMessage``, ``DefaultAppendMessageCallback doAppend``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from seglog.errors import MessageIllegalError
from seglog.storage.block_guard import BlockGuard
from seglog.storage.format.record import FILLER_BYTES, MIN_RECORD_BYTES
from seglog.storage.kernels.append import Draft, filler
from seglog.storage.log_scan import Hole
from seglog.storage.mapped_file import MappedFile
from seglog.storage.queue_offsets import with_queue_offset
from seglog.storage.segments import Segments


class HoleMap:
    """Answers whether a record lies in an unreadable stretch of the log."""

    def __init__(self, holes: Sequence[Hole]) -> None:
        self._starts = [hole.phy_offset for hole in holes]
        self._ends = [hole.end for hole in holes]

    def covers(self, phy_offset: int) -> bool:
        """Returns whether ``phy_offset`` lies in a hole."""
        if not self._starts:
            return False
        at = bisect_right(self._starts, phy_offset) - 1
        return at >= 0 and phy_offset < self._ends[at]

    def covers_each(self, phy_offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Returns which of many offsets lie in a hole; ``(n,)`` for ``(n,)``."""
        if not self._starts:
            return np.zeros(len(phy_offsets), np.bool_)
        at = np.searchsorted(self._starts, phy_offsets, "right") - 1
        covered: npt.NDArray[np.bool_] = (at >= 0) & (phy_offsets < np.array(self._ends)[at])
        return covered


class CommitLog:
    """The log, open for writing.

    Attributes:
        min_phy_offset: Where it starts.
        end_phy_offset: Where the next record goes.
        last_phy_offset: Where the last record starts, -1 before the first.
        holes: Its unreadable stretches.
        mended: Queue offset by physical offset of records that say another one of themselves.
        guard: Checks records that opening did not walk, None if it walked all.

    Thread rule: any thread may read; one at a time may append.
    """

    def __init__(
        self,
        segments: Segments,
        end_phy_offset: int,
        holes: Sequence[Hole],
        last_phy_offset: int = -1,
        guard: BlockGuard | None = None,
    ) -> None:
        first = segments.first_offset
        self.min_phy_offset = end_phy_offset if first is None else first
        self.end_phy_offset = end_phy_offset
        self.last_phy_offset = last_phy_offset
        self.guard = guard
        self._segments = segments
        self.holes = HoleMap(holes)
        self.mended: Mapping[int, int] = {}
        self._last_read = (0, 0, memoryview(b""))
        last = segments.find(end_phy_offset)
        if last is not None:
            last.hold()

    @property
    def segment_size_bytes(self) -> int:
        """Length of every file."""
        return self._segments.file_size_bytes

    def read(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        """Returns the bytes of a record without copying; None if they are not there to be served."""
        end = phy_offset + size_bytes
        if end > self.end_phy_offset or self.holes.covers(phy_offset):
            return None
        first, file_end, view = self._last_read
        if not (first <= phy_offset and end <= file_end):
            segment = self._segments.find(phy_offset)
            if segment is None or end > segment.first_offset + segment.size_bytes:
                return None
            first, file_end = segment.first_offset, segment.first_offset + segment.size_bytes
            guard = self.guard
            if guard is not None:
                if not guard.is_sound(phy_offset, end):
                    return guard.read(phy_offset, size_bytes)
                first, file_end = guard.sound_stretch(phy_offset)
            view = segment.view.toreadonly()[first - segment.first_offset : file_end - segment.first_offset]
            self._last_read = first, file_end, view
        record = view[phy_offset - first : end - first]
        if phy_offset in self.mended and size_bytes >= MIN_RECORD_BYTES:
            return with_queue_offset(record, self.mended[phy_offset])
        return record

    def can_serve(
        self, phy_offsets: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Returns which of many records, each within a file, are as they were written; ``(n,)``."""
        if self.guard is None:
            return np.ones(len(phy_offsets), np.bool_)
        return self.guard.can_serve(phy_offsets, sizes)

    def stretch(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        """Returns bytes of one file without copying, whatever they hold; None if it is not there."""
        segment = self._segments.find(phy_offset)
        if segment is None:
            return None
        position = phy_offset - segment.first_offset
        return segment.view.toreadonly()[position : position + size_bytes]

    def prepare(self, size_bytes: int) -> MappedFile:
        """Returns the file where ``size_bytes`` will go, with the space reserved.

        Fills up the current file and begins the next one where they do not fit.

        Raises:
            MessageIllegalError: No file is long enough for them.
            FullError: The file system is full; the log is as it was.
        """
        if size_bytes + FILLER_BYTES > self._segments.file_size_bytes:
            raise MessageIllegalError(
                f"{size_bytes} bytes do not fit into a commit-log file of {self.segment_size_bytes}",
                help="send smaller messages or batches, or make the store with a larger segment_size_bytes",
            )
        at = self.end_phy_offset
        segment = self._segments.find(at) or self._begin(at)
        position = at - segment.first_offset
        if position + size_bytes + FILLER_BYTES > segment.size_bytes:
            segment = self._roll(segment, position)
            position = 0
        segment.reserve(position, position + size_bytes)
        return segment

    def write(
        self, segment: MappedFile, drafts: Sequence[Draft], queue_offset: int, store_timestamp_ms: int
    ) -> tuple[list[int], list[tuple[int, int, int]]]:
        """Appends records.

        Args:
            segment: What :meth:`prepare` returned for the size of all of them.
            drafts: The records.
            queue_offset: Of the first of them that takes one.
            store_timestamp_ms: The same for all.

        Returns:
            Where each of them lies, and the queue units of those that take a queue offset.
        """
        view, first = segment.view, segment.first_offset
        at = self.end_phy_offset
        starts: list[int] = []
        units: list[tuple[int, int, int]] = []
        for draft in drafts:
            starts.append(at)
            if draft.takes_queue_offset:
                draft.write(view, at - first, queue_offset, at, store_timestamp_ms)
                units.append((at, draft.size_bytes, draft.unit_tags_code(store_timestamp_ms)))
                queue_offset += 1
            else:
                draft.write(view, at - first, 0, at, store_timestamp_ms)
            at += draft.size_bytes
        self.end_phy_offset = at
        self.last_phy_offset = starts[-1]
        return starts, units

    def sync(self, start: int, end: int) -> None:
        """Returns once ``[start, end)`` is on the disk.

        Raises:
            OSError: The disk failed; what is there now is unknown.
        """
        for segment in self._segments.between(start, end):
            segment.sync()
            if segment.first_offset + segment.size_bytes <= end:
                segment.release()

    def close(self) -> None:
        """Gives up maps and descriptors."""
        self._last_read = (0, 0, memoryview(b""))
        self._segments.close()
        if self.guard is not None:
            self.guard.close()

    def _roll(self, segment: MappedFile, position: int) -> MappedFile:
        """Fills up a file from ``position`` on, and returns the one behind it."""
        segment.reserve(position, position + FILLER_BYTES)
        following = self._begin(segment.first_offset + segment.size_bytes)
        segment.view[position : position + FILLER_BYTES] = filler(segment.size_bytes - position)
        self.end_phy_offset = following.first_offset
        return following

    def _begin(self, phy_offset: int) -> MappedFile:
        segment = self._segments.add(phy_offset)
        segment.hold()
        return segment
