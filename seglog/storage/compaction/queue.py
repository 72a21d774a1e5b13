"""A compaction queue open for writing: records are copied into its own log, beside their queue units.

Source: ``store/.../kv/CompactionLog.java asyncPutMessage, CompactionAppendMessageCallback``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from seglog.storage.compaction.files import CompactionState
from seglog.storage.compaction.units import Position, place
from seglog.storage.files.files import Files
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT_BYTES, END_UNIT
from seglog.storage.format.queue.compaction import compaction_record
from seglog.storage.format.record.record import FILLER_BYTES
from seglog.storage.kernels.pending_record import filler
from seglog.storage.segments.mapped_file import MappedFile, MapPool

_LOG_STEP_BYTES: Final = 1 << 20
_QUEUE_STEP_BYTES: Final = 64 << 10


class _Pair(NamedTuple):
    log: MappedFile
    queue: MappedFile


class CompactionQueue:
    """One queue; also the log that its units lead into.

    Attributes:
        units: Where its messages lie.

    Thread rule: any thread may read; one at a time may append.
    """

    def __init__(
        self, state: CompactionState, files: Files, pool: MapPool, *, is_synced: bool = True
    ) -> None:
        self.units = state.units
        self._folders = (state.files.log_directory, state.files.queue_directory)
        self._files = files
        self._pool = pool
        self._unsynced: set[int] = set() if is_synced else set(state.kept)
        self._has_new_names = bool(self._unsynced)
        self._pairs = {first: self._pair(first) for first in state.kept}

    def read(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        """Returns the bytes of a record in the queue's log without copying; None if they are not there."""
        position = phy_offset % self.units.sizes.log_bytes
        pair = self._pairs.get(phy_offset - position)
        if pair is None or position + size_bytes > pair.log.size_bytes:
            return None
        return pair.log.view[position : position + size_bytes].toreadonly()

    def prepare(self, sizes_bytes: Sequence[int]) -> list[Position]:
        """Returns where the next records go, with files and space for them.

        Raises:
            FullError: The file system is full; the queue is as it was.
            OSError: A file cannot be opened or mapped.
        """
        at = self.units.end
        places: list[Position] = []
        for size in sizes_bytes:
            before, at = at, place(at, size, self.units.sizes)
            if before.first != at.first and before.first in self._pairs:
                self._reserve(before, FILLER_BYTES)
            if at.first not in self._pairs:
                self._create(at.first)
            self._reserve(at, size)
            places.append(at)
            at = at.behind(size)
        return places

    def room(self, sizes_bytes: Sequence[int]) -> list[Position] | None:
        """Returns where the next records go; None until :meth:`prepare` has made files and space for them.

        Raises:
            OSError: A file cannot be opened or mapped.
        """
        at = self.units.end
        places: list[Position] = []
        for size in sizes_bytes:
            before, at = at, place(at, size, self.units.sizes)
            ends_file = before.first != at.first and before.first in self._pairs
            if (ends_file and not self._has(before, FILLER_BYTES)) or not self._has(at, size):
                return None
            places.append(at)
            at = at.behind(size)
        return places

    def append(
        self,
        at: Position,
        record: memoryview,
        tags_code: int,
        store_timestamp_ms: int,
        queue_offset: int,
    ) -> None:
        """Copies a record of the commit log to where :meth:`room` or :meth:`prepare` said."""
        end = self.units.end
        if at.first != end.first and end.first in self._pairs:
            self._finish(end)
        pair = self._pairs[at.first]
        moved = compaction_record(record, at.first + at.log_bytes)
        pair.log.view[at.log_bytes : at.log_bytes + len(moved)] = moved
        # The units in memory come last, for readers without a lock; the file's unit is for the next open.
        place_bytes = slice(at.queue_bytes, at.queue_bytes + BATCH_UNIT_BYTES)
        self._unsynced.add(at.first)
        pair.queue.view[place_bytes] = self.units.add(
            at, len(moved), tags_code, store_timestamp_ms, queue_offset
        )

    def sync(self) -> None:
        """Returns once every record appended before the call is on the disk, before its unit."""
        for first in sorted(self._unsynced.copy()):
            self._unsynced.discard(first)
            self._pairs[first].log.sync()
            self._pairs[first].queue.sync()
        if self._has_new_names:
            self._has_new_names = False
            for folder in self._folders:
                self._files.sync_dir(folder)

    def clear_tail(self) -> None:
        """Zeroes what is behind the last message: RocketMQ takes units of an older life for its own."""
        end = self.units.end
        pair = self._pairs.get(end.first)
        if pair is None:
            return
        for file, used in ((pair.log, end.log_bytes), (pair.queue, end.queue_bytes)):
            if bytes(file.view[used:]).strip(b"\0"):
                file.reserve(used, file.size_bytes)
                file.view[used:] = bytes(file.size_bytes - used)
                file.sync()

    def close(self) -> None:
        """Gives up maps and descriptors."""
        for pair in self._pairs.values():
            pair.log.close()
            pair.queue.close()

    def _finish(self, end: Position) -> None:
        pair = self._pairs[end.first]
        if end.queue_bytes + BATCH_UNIT_BYTES <= pair.queue.size_bytes:
            pair.queue.view[end.queue_bytes : end.queue_bytes + BATCH_UNIT_BYTES] = END_UNIT
        rest = pair.log.size_bytes - end.log_bytes
        if rest >= FILLER_BYTES:
            pair.log.view[end.log_bytes : end.log_bytes + FILLER_BYTES] = filler(rest)
        self._unsynced.add(end.first)

    def _reserve(self, at: Position, size_bytes: int) -> None:
        for file, start, end in self._ranges(at, size_bytes):
            file.reserve(start, end)

    def _has(self, at: Position, size_bytes: int) -> bool:
        """Returns whether a record has its place in both files, and maps them."""
        if at.first not in self._pairs:
            return False
        ranges = self._ranges(at, size_bytes)
        return all(file.has_reserved(start, end) and bool(file.view) for file, start, end in ranges)

    def _ranges(self, at: Position, size_bytes: int) -> tuple[tuple[MappedFile, int, int], ...]:
        """Returns the range of a record in the log file and that of its unit in the queue file."""
        log, queue = self._pairs[at.first]
        log_end, queue_end = at.log_bytes + size_bytes, at.queue_bytes + BATCH_UNIT_BYTES
        return (
            (log, at.log_bytes, min(log_end, log.size_bytes)),
            (queue, at.queue_bytes, min(queue_end, queue.size_bytes)),
        )

    def _create(self, first: int) -> None:
        for folder in self._folders:
            self._files.make_dirs(folder)
        made = self._pair(first)
        for file in made:
            if self._files.exists(file.path):
                self._files.remove(file.path)  # left by an attempt that found no space for the other
            step_bytes = _LOG_STEP_BYTES if file is made.log else _QUEUE_STEP_BYTES
            MappedFile.create(self._files, file.path, first, file.size_bytes, self._pool, step_bytes)
        self._has_new_names = True
        self._pairs[first] = made

    def _pair(self, first: int) -> _Pair:
        def mapped(folder: Path, size_bytes: int, step_bytes: int) -> MappedFile:
            path = folder / segment_file_name(first)
            return MappedFile(self._files, path, first, size_bytes, self._pool, min(step_bytes, size_bytes))

        log_folder, queue_folder = self._folders
        sizes = self.units.sizes
        return _Pair(
            mapped(log_folder, sizes.log_bytes, _LOG_STEP_BYTES),
            mapped(queue_folder, sizes.queue_bytes, _QUEUE_STEP_BYTES),
        )
