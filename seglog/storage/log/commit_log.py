"""The CommitLog: every message of every queue, one record behind the other, in mapped files.

Truth: this is it. A record's physical offset never changes. Writers fill files in order; a record that
does not fit with 8 bytes to spare goes to the next file, and a filler takes the rest of this one.

Appending touches memory only: :meth:`CommitLog.room` answers None where a file or space is missing, and
:meth:`CommitLog.grow` makes it while no append waits behind a lock. In files that are long enough,
:meth:`CommitLog.grow_ahead` does so before it is needed; the next file may therefore exist and be
empty, as RocketMQ's does, and a crash leaves it.

Source: ``store/.../CommitLog.java asyncPutMessage``, ``DefaultAppendMessageCallback doAppend``,
``AllocateMappedFileService.java``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from seglog.errors import FullError, MessageIllegalError
from seglog.storage.format.record.record import FILLER_BYTES, MIN_RECORD_BYTES
from seglog.storage.kernels.calls.tails import NEVER, LogTail
from seglog.storage.kernels.pending_record import PendingRecord, filler
from seglog.storage.log.warm_window import WarmWindow
from seglog.storage.seals.block_guard import BlockGuard
from seglog.storage.segments.mapped_file import MappedFile
from seglog.storage.segments.segments import Segments
from seglog.storage.walk.behind_damage import Hole
from seglog.storage.walk.queue_offsets import with_queue_offset

if TYPE_CHECKING:
    from seglog.storage.kernels import _native

AHEAD_MIN_BYTES: Final = 1 << 20
"""Shorter files are made when they are needed: making them ahead all the time would cost more."""
_MOST_AHEAD_BYTES: Final = 256 << 20


class HoleMap:
    """Answers whether a record is in an unreadable stretch of the log."""

    def __init__(self, holes: Sequence[Hole]) -> None:
        self._starts = [hole.phy_offset for hole in holes]
        self._ends = [hole.end for hole in holes]

    def __bool__(self) -> bool:
        return bool(self._starts)

    def covers(self, phy_offset: int) -> bool:
        """Returns whether ``phy_offset`` is in a hole."""
        if not self._starts:
            return False
        at = bisect_right(self._starts, phy_offset) - 1
        return at >= 0 and phy_offset < self._ends[at]

    def covers_each(self, phy_offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Returns which of many offsets are in a hole; ``(n,)`` for ``(n,)``."""
        if not self._starts:
            return np.zeros(len(phy_offsets), np.bool_)
        at = np.searchsorted(self._starts, phy_offsets, "right") - 1
        covered: npt.NDArray[np.bool_] = (at >= 0) & (phy_offsets < np.array(self._ends)[at])
        return covered


class CommitLog:
    """The log, open for writing.

    Attributes:
        min_phy_offset: Where it starts.
        tail: Where it ends.
        holes: Its unreadable stretches.
        guard: Checks records that opening did not walk, None if it walked all.
        withheld: Where records are that are not served although they are whole: none, as opening mended them.

    Thread rule: any thread may read; one at a time may append, and one grow.
    """

    withheld: frozenset[int] = frozenset()

    def __init__(
        self,
        segments: Segments,
        tail: LogTail,
        holes: Sequence[Hole],
        step_bytes: int,
        guard: BlockGuard | None = None,
    ) -> None:
        first = segments.first_offset
        self.min_phy_offset = tail.end_phy_offset if first is None else first
        self.tail = tail
        self.guard = guard
        self._segments = segments
        self.holes = HoleMap(holes)
        self._mended: Mapping[int, int] = {}
        self._last_read = (0, 0, memoryview(b""))
        self._step_bytes = step_bytes
        self._opened_at = tail.end_phy_offset
        self._warm = WarmWindow(segments)
        self._wake_allocator: Callable[[], None] = lambda: None
        self._keep_from_native(at for hole in holes for at in self._files_of(hole.phy_offset, hole.end))
        if self.maps is not None and guard is not None:
            self.maps.guarded_end = guard.end_phy_offset
        last = segments.find(tail.end_phy_offset)
        if last is not None:
            last.hold()

    @property
    def end_phy_offset(self) -> int:
        """Where the next record goes."""
        return self.tail.end_phy_offset

    @property
    def last_phy_offset(self) -> int:
        """Where the last record starts, -1 before the first."""
        return self.tail.last_phy_offset

    @property
    def maps(self) -> _native.Maps | None:
        """Where native kernels find its files, None without them."""
        return self._segments.maps

    @property
    def mended(self) -> Mapping[int, int]:
        """Queue offset by physical offset of records that say another one of themselves."""
        return self._mended

    @mended.setter
    def mended(self, mended: Mapping[int, int]) -> None:
        self._mended = mended
        self._keep_from_native(phy_offset - phy_offset % self.segment_size_bytes for phy_offset in mended)

    @property
    def segment_size_bytes(self) -> int:
        """Length of every file."""
        return self._segments.file_size_bytes

    def read(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        """Returns the bytes of a record without copying; None if they are not there to be served."""
        end = phy_offset + size_bytes
        if end > self.end_phy_offset or self.holes.covers(phy_offset):
            return None
        record = self._sound(phy_offset, end)
        if record is None:
            # In a file, only a guard can have said so.
            guard = self.guard if self._segments.holds(phy_offset, end) else None
            return None if guard is None else guard.read(phy_offset, size_bytes)
        if phy_offset in self.mended and size_bytes >= MIN_RECORD_BYTES:
            return with_queue_offset(record, self.mended[phy_offset])
        return record

    def file_of(self, phy_offset: int) -> MappedFile | None:
        """Returns the file of a record, None if it is not there."""
        return self._segments.find(phy_offset)

    def read_run(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        """Returns the bytes of neighbouring records without copying; None to have each asked for by itself.

        That is so where some of them may be gone or not as they were written, or are in several files.
        """
        end = phy_offset + size_bytes
        if end > self.end_phy_offset or self.holes or self.mended:
            return None
        return self._sound(phy_offset, end)

    def _sound(self, phy_offset: int, end: int) -> memoryview | None:
        """Returns bytes that are known to be as they were written and are in one file."""
        first, file_end, view = self._last_read
        if not (first <= phy_offset and end <= file_end):
            segment = self._segments.find(phy_offset)
            if segment is None or end > segment.first_offset + segment.size_bytes:
                return None
            first, file_end = segment.first_offset, segment.first_offset + segment.size_bytes
            guard = self.guard
            if guard is not None and self.maps is not None and first < guard.end_phy_offset:
                self.maps.know(first, guard.states(first))
            if guard is not None and first not in guard.sound_segments:
                if not guard.is_sound(phy_offset, end):
                    return None
                first, file_end = guard.sound_stretch(phy_offset)
            try:
                view = segment.view.toreadonly()[
                    first - segment.first_offset : file_end - segment.first_offset
                ]
                segment.check_whole()
            except FileNotFoundError:
                if end <= self.min_phy_offset:
                    return None  # retention took it while we looked
                raise
            self._last_read = first, file_end, view
        return view[phy_offset - first : end - first]

    def can_serve(
        self, phy_offsets: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Returns which of many records, each within a file, are as they were written; ``(n,)``."""
        there = phy_offsets >= self.min_phy_offset
        if self.guard is not None and there.any():
            there[there] = self.guard.can_serve(phy_offsets[there], sizes[there])
        return there

    def stretch(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        """Returns any bytes of one file without copying; None if it is not there."""
        segment = self._segments.find(phy_offset)
        if segment is None:
            return None
        view = segment.view.toreadonly()
        segment.check_whole()
        position = phy_offset - segment.first_offset
        return view[position : position + size_bytes]

    def wake_allocator_with(self, wake_allocator: Callable[[], None]) -> None:
        """Has ``wake_allocator`` called, by an append, when :meth:`grow_ahead` has something to do."""
        if self.segment_size_bytes >= AHEAD_MIN_BYTES:
            self._wake_allocator = wake_allocator
            self.tail.wake_allocator_at = 0

    def ask_for_more(self) -> None:
        """Wakes the thread that makes space and files ahead, once for each time that this is due."""
        if self.end_phy_offset >= self.tail.wake_allocator_at:
            self.tail.wake_allocator_at = NEVER
            self._wake_allocator()

    def room(self, size_bytes: int) -> MappedFile | None:
        """Returns the file where ``size_bytes`` will go, None until :meth:`grow` has made room for them.

        Fills up the current file and continues in the next one where they do not fit.

        Raises:
            MessageIllegalError: No file is long enough for them.
            TruncatedError: Another process cut the file.
        """
        self.ask_for_more()
        at = self.end_phy_offset
        segment = self._segments.find(at)
        if segment is None:
            return None
        position = at - segment.first_offset
        end = position + size_bytes
        if end + FILLER_BYTES <= segment.size_bytes:
            if not segment.has_reserved(position, end):
                return None
            segment.check_held()
            return segment
        self._check_size(size_bytes)
        following = self._segments.find(segment.first_offset + segment.size_bytes)
        if following is None or not following.has_reserved(0, size_bytes):
            return None
        if not segment.has_reserved(position, position + FILLER_BYTES):
            return None
        view, _mapped = segment.view, following.view  # nothing can fail any more once one is written to
        segment.check_held()
        following.check_held()
        view[position : position + FILLER_BYTES] = filler(segment.size_bytes - position)
        self.tail.end_phy_offset = following.first_offset
        return following

    def has_room(self, size_bytes: int) -> bool:
        """Returns whether :meth:`room` would find space, as things are now: others may take it."""
        at = self.end_phy_offset
        segment = self._segments.find(at)
        if segment is None:
            return False
        position = at - segment.first_offset
        if position + size_bytes + FILLER_BYTES <= segment.size_bytes:
            return segment.has_reserved(position, position + size_bytes)
        following = self._segments.find(segment.first_offset + segment.size_bytes)
        return (
            following is not None
            and following.has_reserved(0, size_bytes)
            and segment.has_reserved(position, position + FILLER_BYTES)
        )

    def grow(self, size_bytes: int) -> None:
        """Makes the room that :meth:`room` lacks, as things are now: others may take it.

        Raises:
            MessageIllegalError: No file is long enough for them.
            FullError: The file system is full; the log is as it was.
        """
        self._check_size(size_bytes)
        at = self.end_phy_offset
        segment = self._segment_to_grow(at)
        position = at - segment.first_offset
        if position + size_bytes + FILLER_BYTES > segment.size_bytes:
            segment.reserve(position, position + FILLER_BYTES)
            segment = self._segment_to_grow(segment.first_offset + segment.size_bytes)
            position = 0
        segment.reserve(position, position + size_bytes)

    def grow_ahead(self) -> None:
        """Makes what appends are going to need: space, and near the end of a file the next one."""
        at = self.end_phy_offset
        segment = self._segments.find(at)
        if segment is None:
            self.tail.wake_allocator_at = at + 1
            return
        first, following = segment.first_offset, segment.first_offset + segment.size_bytes
        lead = self._lead_bytes(at)
        due = following - min(2 * (self._step_bytes + lead), segment.size_bytes // 2)
        goal = at + lead
        try:
            self._reserve_until(segment, at - first, goal - first)
            if at >= due:
                segment = self._segment_to_grow(following)
                self._reserve_until(segment, 0, goal - following)
                _mapped = segment.view
        except FullError:
            self.tail.wake_allocator_at = at + self._step_bytes  # an append that finds no room says so
            return
        later = due if at < due else following  # another file is wanted
        more = segment.first_offset + segment.reserved_end - lead + 1
        is_full = segment.reserved_end == segment.size_bytes
        self.tail.wake_allocator_at = later if is_full else min(later, more)

    def _lead_bytes(self, at: int) -> int:
        """Returns how far ahead space is wanted: as much as this opening wrote, within bounds.

        A busy disk answers late: reserving, too, reads block bitmaps. A gigabyte a second
        needs a quarter of one to write to meanwhile; a store that writes little takes little.
        """
        return max(self._step_bytes // 2, min(at - self._opened_at, _MOST_AHEAD_BYTES))

    def _reserve_until(self, segment: MappedFile, position: int, goal: int) -> None:
        if segment.reserved_end <= position:
            segment.reserve(position, position + 1)
        if segment.reserved_end < min(segment.size_bytes, goal):
            segment.reserve_more(goal)

    def warm_ahead(self, flushed: int) -> None:
        """Makes the pages ready that appends are going to fill.

        Args:
            flushed: How far the log is on the disk.
        """
        look_at = self._warm.follow(self.end_phy_offset, flushed)
        self.tail.wake_allocator_at = min(self.tail.wake_allocator_at, look_at)

    def _check_size(self, size_bytes: int) -> None:
        if size_bytes + FILLER_BYTES > self._segments.file_size_bytes:
            raise MessageIllegalError(
                f"{size_bytes} bytes do not fit into a commit-log file of {self.segment_size_bytes}",
                help="send smaller messages or batches, or make the store with a larger segment_size_bytes",
            )

    def grant(self) -> None:
        """Grants the file of the end to the tail, for appends that need no other."""
        at = self.tail.end_phy_offset
        segment = self._segments.find(at)
        if segment is not None:
            segment.grant(self.tail, at - segment.first_offset, segment.size_bytes - FILLER_BYTES)

    def write(
        self, segment: MappedFile, drafts: Sequence[PendingRecord], queue_offset: int, store_timestamp_ms: int
    ) -> tuple[list[int], list[tuple[int, int, int]]]:
        """Appends records.

        Args:
            segment: What :meth:`room` returned for the size of all of them.
            drafts: The records.
            queue_offset: Of the first of them that takes one.
            store_timestamp_ms: The same for all.

        Returns:
            Where each of them is, and the queue units of those that take a queue offset.
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
            if draft.properties:
                self.tail.keyed_end = at
        self.tail.end_phy_offset = at
        self.tail.last_phy_offset = starts[-1]
        return starts, units

    def sync(self, start: int, end: int) -> None:
        """Returns once ``[start, end)`` is on the disk.

        Raises:
            OSError: The disk failed; what it holds is unknown.
        """
        for segment in self._segments.between(start, end):
            segment.sync()
            if segment.first_offset + segment.size_bytes <= end:
                segment.release()

    def recheck(self) -> None:
        """Lets the next read make sure that the file was not cut."""
        self._last_read = (0, 0, memoryview(b""))

    def expire(self, phy_offset: int) -> None:
        """Lets the log begin at a file, before those below it go."""
        self.min_phy_offset = phy_offset
        if self.guard is not None:
            self.guard.expire(phy_offset)
        self.recheck()

    def remove_first(self, end: int) -> MappedFile | None:
        """Takes away the first file if it ends at or below a place; returns it, None if it stays."""
        return self._segments.remove_first(end)

    def sync_names(self) -> None:
        """Returns once the names of all files are on the disk."""
        self._segments.sync_names()

    def remove_unused(self) -> None:
        """Removes the file that :meth:`grow_ahead` made and no record came to; nothing may grow any more."""
        unused = [file for file in self._segments if file.first_offset > self.end_phy_offset]
        for file in unused:
            self._segments.remove(file)
        self._segments.sync_names()

    def close(self) -> None:
        """Gives up maps and descriptors."""
        self._last_read = (0, 0, memoryview(b""))
        self._segments.close()
        if self.guard is not None:
            self.guard.close()

    def _files_of(self, start: int, end: int) -> range:
        """Returns where the files begin that hold some of a stretch."""
        size = self.segment_size_bytes
        return range(start - start % size, end, size)

    def _keep_from_native(self, first_offsets: Iterable[int]) -> None:
        """Leaves files to Python that do not hold what they should everywhere."""
        if self.maps is not None:
            for first in sorted(set(first_offsets)):
                self.maps.refuse(first)

    def _segment_to_grow(self, phy_offset: int) -> MappedFile:
        return self._segments.find(phy_offset) or self._segments.add(phy_offset)
