"""Maintains the key index of a store that is open for writing: follows the log and writes its keys.

The index is behind the log: puts never wait for it. :meth:`KeyIndex.catch_up` reads the new records and
writes their keys, a batch at a time; a query calls it first. The index is not the truth: if a file does not
fit the log, it and all later files are removed and rebuilt.

Source: ``store/.../index/IndexService.java buildIndex, retryGetAndCreateIndexFile``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Final

import numpy as np

from seglog.clock import Clock
from seglog.errors import FullError
from seglog.storage.directory import IndexFile, LogReader, list_index_files
from seglog.storage.files.files import Files
from seglog.storage.format.index.index import (
    INDEX_ENTRY,
    IndexGeometry,
    IndexHeader,
    decode_index_header,
    index_file_name,
)
from seglog.storage.format.index.index_build import KeyRows, begin_index_file
from seglog.storage.format.names import INDEX
from seglog.storage.kernels import index_keys
from seglog.storage.kernels.index_keys import put_keys
from seglog.storage.segments.mapped_file import MappedFile, MapPool
from seglog.storage.walk.behind_damage import Hole
from seglog.storage.walk.log_records import LogWindows, iter_key_rows

_STEP_BYTES: Final = 1 << 20


class KeyIndex:
    """The index of a store, open for writing.

    Args:
        files: The file layer of the store.
        root: The store directory.
        pool: Bounds the number of maps.
        clock: Gives the names of new files if their records have no plausible time.
        geometry: Slots and entries of the files.
        newest: The file to continue, None to begin a new one.
        resume: Physical offset of the record to continue with, and how many of its keys are indexed already.
        tags: Whether tags are indexed (since 5.4.0).
        lacks: None if there are to be files. Otherwise queries read the log, and this is whether the log has
            keys already.
        ends: Returns the end of the log, and the end of the last record that may have keys.
        segment_size_bytes: Length of the log's files.
        holes: The log's unreadable stretches.

    Thread rule: any thread.
    """

    def __init__(
        self,
        files: Files,
        root: Path,
        pool: MapPool,
        clock: Clock,
        geometry: IndexGeometry,
        newest: IndexFile | None,
        resume: tuple[int, int],
        *,
        tags: bool,
        lacks: bool | None = None,
        ends: Callable[[], tuple[int, int]],
        segment_size_bytes: int,
        holes: Sequence[Hole],
    ) -> None:
        self._files = files
        self._directory = root / INDEX
        self._pool = pool
        self._clock = clock
        self.geometry = geometry
        self.had_files = newest is not None
        """Whether there were files, which have this division."""
        self.tags = tags
        self._makes_files = lacks is None
        self._lacks_keys = bool(lacks)
        self._first_keyed_end = ends()[1]
        self._ends = ends
        self._segment_size_bytes = segment_size_bytes
        self._holes = holes
        self._reader = LogReader(files, root, segment_size_bytes)
        self._lock = threading.Lock()
        self._next, self._skip = resume
        self._current = None if newest is None else self._file(newest.path)
        self._unsynced_names = True  # of files that a killed process made
        self._last_name = "" if newest is None else newest.path.name
        self.position = self._next, -1 if newest is None else newest.header.end_phy_offset
        """The place below which all keys are indexed, and the last record of the newest file (-1 without)."""
        self.full_timestamp_ms = 0
        """End time of the last file that filled up since the store was opened, 0 before."""

    @property
    def next_phy_offset(self) -> int:
        """Physical offset of the record to continue with."""
        return self._next

    @property
    def lacks_keys(self) -> bool:
        """Whether the log has keys without files: RocketMQ makes the files when it walks the log."""
        return self._lacks_keys or (not self._makes_files and self._ends()[1] > self._first_keyed_end)

    def step_over(self, holes: Sequence[Hole]) -> None:
        """Adds stretches of the log that were found to hold no records."""
        with self._lock:
            self._holes = (*self._holes, *holes)

    @property
    def behind_bytes(self) -> int:
        """Bytes of the log that are to be indexed yet."""
        if not self._makes_files:
            return 0
        return max(0, self._ends()[0] - self._next)

    def catch_up(self, until: Callable[[], bool] = lambda: False) -> None:
        """Indexes new records batch by batch, until none are left or ``until`` returns True.

        Raises:
            FullError: No space for the index; indexed keys stay, and the rest is indexed later.
        """
        with self._lock:
            if until() or not self._makes_files:
                return
            end, keyed_end = self._ends()
            if keyed_end <= self._next < end:
                self._next, self._skip = end, 0
                self.position = end, self._last_place()
                return
            windows = LogWindows(
                self._reader,
                self._segment_size_bytes,
                self._next,
                end,
                self._holes,
                mapped=index_keys.native_key_rows is not None,
            )
            try:
                for rows, end in iter_key_rows(windows, tags=self.tags):
                    # At most its own keys: a tombstone may have fewer keys than the record that it replaces.
                    own = int(np.count_nonzero(rows["phy_offset"] == self._next))
                    self._put(rows[min(self._skip, own) :])
                    self._next, self._skip = end, 0
                    self.position = self._next, self._last_place()
                    if until():
                        return
            finally:
                self._reader.close()

    def catch_up_to(self, phy_offset: int) -> None:
        """Continues at a place, unless the index is behind it already: the log will begin there.

        Records before it are indexed first, because they stay if their file cannot be deleted.

        Raises:
            FullError: No space for the index; it continues at the place nevertheless.
        """
        try:
            if self._next < phy_offset:
                self.catch_up(lambda: self._next >= phy_offset)
        finally:
            with self._lock:
                if self._next < phy_offset:
                    self._next, self._skip = phy_offset, 0
                    self.position = phy_offset, self._last_place()

    def remove_expired(self, min_phy_offset: int) -> tuple[int, int]:
        """Removes files whose records are all below a place, oldest first; never the newest file.

        Returns:
            Their number, and their total length in bytes.
        """
        with self._lock:
            listed, _damaged = list_index_files(self._files, self._directory.parent)
            expired = list(takewhile(lambda file: file.header.end_phy_offset < min_phy_offset, listed[:-1]))
            for file in expired:
                self._files.remove(file.path)
            if expired:
                self._files.sync_dir(self._directory)
        return len(expired), sum(file.geometry.file_size_bytes for file in expired)

    def sync(self) -> None:
        """Returns once all indexed keys are on the disk."""
        with self._lock:
            if self._current is not None:
                self._current.sync()
            if self._unsynced_names and self._files.exists(self._directory):
                self._files.sync_dir(self._directory)
                self._unsynced_names = False

    def close(self) -> None:
        """Releases the map."""
        with self._lock:
            if self._current is not None:
                self._current.close()

    def _last_place(self) -> int:
        return -1 if self._current is None else decode_index_header(self._current.view).end_phy_offset

    def _put(self, rows: KeyRows) -> None:
        while len(rows):
            first_ms = int(rows["store_timestamp_ms"][0])
            file = self._current or self._begin(None, first_ms)
            header = decode_index_header(file.view)
            last = min(header.index_count + len(rows), self.geometry.entry_count)
            if last > header.index_count:
                file.reserve(0, self.geometry.entries_at + INDEX_ENTRY.size_bytes * last)
                taken = put_keys(file.view, self.geometry, rows)
                # If there is no space for the next file, the index continues at the first row that is not in
                # it.
                self._next = int(rows["phy_offset"][min(taken, len(rows) - 1)])
                self._skip = int(np.count_nonzero(rows["phy_offset"][:taken] == self._next))
                rows = rows[taken:]
            else:
                file.sync()
                self.full_timestamp_ms = header.end_timestamp_ms
                self._current = self._begin(header, first_ms)
                file.close()

    def _begin(self, previous: IndexHeader | None, first_ms: int) -> MappedFile:
        self._files.make_dirs(self._directory)
        name = next_index_name(first_ms, self._clock.now_ms(), self._last_name)
        path = self._directory / name
        # Checked before: a failing attempt would use all free space for a moment, which puts may need.
        if self._files.usage(self._directory).available_bytes < self.geometry.entries_at:
            raise FullError(f"{path}: no space left for an index file's slots")
        file = MappedFile.create(
            self._files,
            path,
            0,
            self.geometry.file_size_bytes,
            self._pool,
            min(_STEP_BYTES, self.geometry.file_size_bytes),
        )
        try:
            file.reserve(0, self.geometry.entries_at)
            begin_index_file(file.view, previous)
        except BaseException:
            file.close()
            self._files.remove(file.path)  # the next attempt creates a new one
            raise
        self._current, self._last_name, self._unsynced_names = file, name, True
        return file

    def _file(self, path: Path) -> MappedFile:
        size = self.geometry.file_size_bytes
        return MappedFile(self._files, path, 0, size, self._pool, min(_STEP_BYTES, size))


def next_index_name(first_ms: int, now_ms: int, last_name: str) -> str:
    """Returns the name of a new file: the time of its first entry, but always behind all other names.

    The name does not depend on the time of indexing, so the same puts give the same names.

    Args:
        first_ms: Store time of the first entry.
        now_ms: The time, used for entries with a time in the future.
        last_name: Name of the newest file, empty if there is none.
    """
    named_ms = first_ms if 0 <= first_ms <= now_ms else now_ms
    name = index_file_name(datetime.fromtimestamp(named_ms / 1000, UTC).astimezone())
    # No program reads the time from a name; names only need to sort.
    return name if name > last_name else f"{int(last_name) + 1:0{len(name)}d}"
