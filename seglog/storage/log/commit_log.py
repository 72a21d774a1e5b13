"""The CommitLog: every message of every queue, one record behind the other, in mapped files.

Truth: the log is the truth of a store. A record's physical offset never changes. Writers fill files in order;
a record that does not fit with 8 bytes to spare is written to the next file, and a filler record takes the
rest of the current one.

An append writes to memory only: :meth:`CommitLog.room` returns None if a file or space is missing, and
:meth:`CommitLog.grow` creates it while no append waits for a lock. If files are at least
:data:`AHEAD_MIN_BYTES` long, :meth:`CommitLog.grow_ahead` does so before an append needs it. The next file
may therefore exist and be empty, as RocketMQ's does, and a crash leaves it.

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
"""Shorter files are created when an append needs them: creating them ahead all the time would cost more."""
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
        min_phy_offset: Physical offset of its first byte.
        tail: Its end.
        holes: Its unreadable stretches.
        guard: Checks records that the opening did not walk; None if it walked all.
        withheld: Places of whole records that are not served: none, as the opening mended such records.

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
            last.hold()  # appends write to it: its map must not be given to another file

    @property
    def end_phy_offset(self) -> int:
        """Physical offset of the next record."""
        return self.tail.end_phy_offset

    @property
    def last_phy_offset(self) -> int:
        """Physical offset of the last record, -1 before the first."""
        return self.tail.last_phy_offset

    @property
    def maps(self) -> _native.Maps | None:
        """The maps of its files for native kernels, None without native kernels."""
        return self._segments.maps

    @property
    def mended(self) -> Mapping[int, int]:
        """The right queue offset by physical offset, for records whose own field has a wrong one."""
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
        """Returns the bytes of a record without copying; None if the log cannot serve them."""
        end = phy_offset + size_bytes
        if end > self.end_phy_offset or self.holes.covers(phy_offset):
            return None
        record = self._sound(phy_offset, end)
        if record is None:
            # The file exists, so the guard has refused the stretch: it may still serve this one record.
            guard = self.guard if self._segments.holds(phy_offset, end) else None
            return None if guard is None else guard.read(phy_offset, size_bytes)
        if phy_offset in self.mended and size_bytes >= MIN_RECORD_BYTES:
            return with_queue_offset(record, self.mended[phy_offset])
        return record

    def file_of(self, phy_offset: int) -> MappedFile | None:
        """Returns the file of a record, None if it is not there."""
        return self._segments.find(phy_offset)

    def read_run(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        """Returns the bytes of neighbouring records without copying; None if the caller must read one by one.

        That is the case if some of them may be missing or damaged, or if they are in several files.
        """
        end = phy_offset + size_bytes
        if end > self.end_phy_offset or self.holes or self.mended:
            return None
        return self._sound(phy_offset, end)

    def _sound(self, phy_offset: int, end: int) -> memoryview | None:
        """Returns bytes of one file that are known to be undamaged."""
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
                # Only the checked stretch is remembered for later reads, not the whole file.
                first, file_end = guard.sound_stretch(phy_offset)
            try:
                view = segment.view.toreadonly()[
                    first - segment.first_offset : file_end - segment.first_offset
                ]
                segment.check_whole()
            except FileNotFoundError:
                if end <= self.min_phy_offset:
                    return None  # retention removed the file during this read
                raise
            self._last_read = first, file_end, view
        return view[phy_offset - first : end - first]

    def can_serve(
        self, phy_offsets: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Returns which of many records, each within a file, are undamaged; ``(n,)``."""
        there = phy_offsets >= self.min_phy_offset
        if self.guard is not None and there.any():
            there[there] = self.guard.can_serve(phy_offsets[there], sizes[there])
        return there

    def stretch(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        """Returns any bytes of one file without copying; None if the file does not exist."""
        segment = self._segments.find(phy_offset)
        if segment is None:
            return None
        view = segment.view.toreadonly()
        segment.check_whole()
        position = phy_offset - segment.first_offset
        return view[position : position + size_bytes]

    def wake_allocator_with(self, wake_allocator: Callable[[], None]) -> None:
        """Lets an append call ``wake_allocator`` when :meth:`grow_ahead` has work."""
        if self.segment_size_bytes >= AHEAD_MIN_BYTES:
            self._wake_allocator = wake_allocator
            self.tail.wake_allocator_at = 0

    def ask_for_more(self) -> None:
        """Wakes the thread that makes space and files ahead, once for each time that this is due."""
        if self.end_phy_offset >= self.tail.wake_allocator_at:
            self.tail.wake_allocator_at = NEVER
            self._wake_allocator()

    def room(self, size_bytes: int) -> MappedFile | None:
        """Returns the file with room for ``size_bytes``, None until :meth:`grow` has made room.

        If the bytes do not fit into the current file, fills it up and continues in the next one.

        Raises:
            MessageIllegalError: No file is long enough for the bytes.
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
        # Both files are mapped and checked before the first write: after it nothing can fail.
        view, _mapped = segment.view, following.view
        segment.check_held()
        following.check_held()
        view[position : position + FILLER_BYTES] = filler(segment.size_bytes - position)
        self.tail.end_phy_offset = following.first_offset
        return following

    def has_room(self, size_bytes: int) -> bool:
        """Returns whether :meth:`room` would find space now; another append may use it first."""
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
        """Makes the room that :meth:`room` lacks now; another append may use it first.

        Raises:
            MessageIllegalError: No file is long enough for the bytes.
            FullError: The file system is full; the log is unchanged.
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
        """Reserves space ahead of the end of the log, and near the end of a file creates the next file."""
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
                _mapped = segment.view  # mapped here, by this thread, so that the append does not have to
        except FullError:
            self.tail.wake_allocator_at = at + self._step_bytes  # the append that finds no room raises it
            return
        later = due if at < due else following  # the place where the log needs another file
        more = segment.first_offset + segment.reserved_end - lead + 1
        is_full = segment.reserved_end == segment.size_bytes
        self.tail.wake_allocator_at = later if is_full else min(later, more)

    def _lead_bytes(self, at: int) -> int:
        """Returns the bytes of space to reserve ahead: as many as were written since the open, within bounds.

        A busy disk answers late, and reserving reads block bitmaps from it. At 1 GB a second a quarter of a
        gigabyte is written meanwhile; a store that writes little reserves little.
        """
        return max(self._step_bytes // 2, min(at - self._opened_at, _MOST_AHEAD_BYTES))

    def _reserve_until(self, segment: MappedFile, position: int, goal: int) -> None:
        if segment.reserved_end <= position:
            segment.reserve(position, position + 1)
        if segment.reserved_end < min(segment.size_bytes, goal):
            segment.reserve_more(goal)

    def warm_ahead(self, flushed: int) -> None:
        """Prepares the pages that the next appends will fill.

        Args:
            flushed: The log is on the disk below this offset.
        """
        look_at = self._warm.follow(self.end_phy_offset, flushed, self.tail.past_map_bytes)
        self.tail.wake_allocator_at = min(self.tail.wake_allocator_at, look_at)

    def _check_size(self, size_bytes: int) -> None:
        if size_bytes + FILLER_BYTES > self._segments.file_size_bytes:
            raise MessageIllegalError(
                f"{size_bytes} bytes do not fit into a commit-log file of {self.segment_size_bytes}",
                help="send smaller messages or batches, or make the store with a larger segment_size_bytes",
            )

    def grant(self) -> None:
        """Grants the last file to the tail as a write window, for appends that fit into it."""
        at = self.tail.end_phy_offset
        segment = self._segments.find(at)
        if segment is not None:
            segment.grant(self.tail, at - segment.first_offset, segment.size_bytes - FILLER_BYTES)

    def write(
        self,
        segment: MappedFile,
        phy_offset: int,
        drafts: Sequence[PendingRecord],
        queue_offset: int,
        store_timestamp_ms: int,
    ) -> tuple[list[int], list[tuple[int, int, int]]]:
        """Appends records; may be called again, with the same arguments, after it was interrupted.

        Args:
            segment: The file that :meth:`room` returned for the size of all records.
            phy_offset: Where the log ended after that call.
            drafts: The records.
            queue_offset: Queue offset of the first record that takes one.
            store_timestamp_ms: The store time of all records.

        Returns:
            The physical offset of each record, and the queue units of those that take a queue offset.
        """
        view, first = segment.view, segment.first_offset
        at = phy_offset
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
        # Published last: readers without a lock see only whole records.
        self.tail.end_phy_offset = at
        self.tail.last_phy_offset = starts[-1]
        return starts, units

    def sync(self, start: int, end: int) -> None:
        """Returns once ``[start, end)`` is on the disk.

        Raises:
            OSError: The disk failed; it is unknown which bytes are on the disk.
        """
        for segment in self._segments.between(start, end):
            segment.sync()
            if segment.first_offset + segment.size_bytes <= end:
                segment.release()

    def recheck(self) -> None:
        """Lets the next read check again that its file was not cut."""
        self._last_read = (0, 0, memoryview(b""))

    def expire(self, phy_offset: int) -> None:
        """Raises the beginning of the log to a file, before the files below it are removed."""
        self.min_phy_offset = phy_offset
        if self.guard is not None:
            self.guard.expire(phy_offset)
        self.recheck()

    def remove_first(self, end: int) -> MappedFile | None:
        """Removes the first file if it ends at or below ``end``; returns it, None if it stays."""
        return self._segments.remove_first(end)

    def sync_names(self) -> None:
        """Returns once the names of all files are on the disk."""
        self._segments.sync_names()

    def remove_unused(self) -> None:
        """Removes the file that :meth:`grow_ahead` created and no record uses; nothing may grow any more."""
        unused = [file for file in self._segments if file.first_offset > self.end_phy_offset]
        for file in unused:
            self._segments.remove(file)
        self._segments.sync_names()

    def close(self) -> None:
        """Closes maps and descriptors."""
        self._last_read = (0, 0, memoryview(b""))
        self._segments.close()
        if self.guard is not None:
            self.guard.close()

    def _files_of(self, start: int, end: int) -> range:
        """Returns the first offsets of the files that hold parts of a stretch."""
        size = self.segment_size_bytes
        return range(start - start % size, end, size)

    def _keep_from_native(self, first_offsets: Iterable[int]) -> None:
        """Excludes files with holes or mended records from the native kernels; Python code reads them."""
        if self.maps is not None:
            for first in sorted(set(first_offsets)):
                self.maps.refuse(first)

    def _segment_to_grow(self, phy_offset: int) -> MappedFile:
        return self._segments.find(phy_offset) or self._segments.add(phy_offset)
