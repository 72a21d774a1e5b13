"""Keeps the history of consumer offsets under ``<store>/seglog/offsets/``.

Changes wait in memory until the offset table is saved, or a client waits for the disk; they are written and
synced just before the table, so the table never holds a change that the history lacks. A table that is as
seglog saved it last is brought up to the history when a broker opens. Changes made by others, a Java broker
or an operator, are found then, and are recorded as such.

Bounds: a long file is followed by a new one, which begins with all offsets of that moment. In the old file,
forward commits of one client in one queue within a minute are joined into one; the oldest files are deleted
when all together are too long. If very many commits wait to be written, they are joined in the same way.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from seglog.broker.offsets.offset_history_query import (
    OFFSET_HISTORY,
    PRINTS,
    OffsetPast,
    QueueKey,
    apply,
    differences,
    history_files,
    is_as_saved,
)
from seglog.clock import Clock
from seglog.errors import FullError
from seglog.storage.files import Files, OpenFile, explained
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.ours import (
    ChangeKind,
    OffsetChange,
    decode_changes,
    decode_offsets,
    encode_changes,
)

FILE_BYTES: Final = 4 << 20
MAX_BYTES: Final = 64 << 20
MAX_WAITING: Final = 16_384
JOINED_MS: Final = 60_000
_AHEAD: Final = 64
"""A 64th of a file is written before its changes come, with zeros: a sync after which the file system must
note a new length, or that reserved space is used now, takes half as long again."""
_UNFINISHED: Final = ".tmp"


class OffsetHistory:
    """Writes the history of one store, whose lock the caller holds. Any thread may call :meth:`note`.

    Args:
        files: The file system of the store.
        root: The store directory.
        clock: Stamps the changes.
        file_bytes: The length at which a new file is begun.
        max_bytes: The longest total length of all files.
    """

    def __init__(
        self,
        files: Files,
        root: Path,
        clock: Clock,
        *,
        file_bytes: int = FILE_BYTES,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._files = files
        self._folder = root / OFFSET_HISTORY
        self._past = OffsetPast(files, root)
        self._clock = clock
        self._file_bytes = file_bytes
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._waiting: list[OffsetChange] = []
        self._noted = self._synced = 0
        self._prints: deque[int] = deque(maxlen=PRINTS)
        self._join_at = MAX_WAITING
        self._end_bytes = 0
        self._file: OpenFile | None = None
        self._made_bytes = 0
        names = history_files(files, self._folder)
        self._number = int(names[-1]) if names else -1
        self._rotate_at = file_bytes

    def begin(self, table: dict[QueueKey, int], table_print: int | None) -> dict[QueueKey, int]:
        """Continues the history; returns every offset.

        Those are the newest of the history, if the table is as it was saved last. Else others changed the
        table, and it counts.

        Args:
            table: Every offset as loaded.
            table_print: The print of the file.
        """
        known: dict[QueueKey, int] = {}
        if self._number >= 0:
            decoded = decode_offsets(self._files.read_file(self._path(self._number)))
            known = decoded.offsets
            self._prints.extend(decoded.prints)
            self._end_bytes = decoded.end_bytes
            self._rotate_at = self._next_rotation(decoded.state_bytes)
            if is_as_saved(table_print, decoded.prints):
                return known
        for found in differences(known, table):
            key = found.group, found.topic, found.queue_id
            self.note(ChangeKind.FOUND, *key, found.before, found.after)
        return table

    def newest(self) -> dict[QueueKey, int]:
        """Returns the offsets that the table had at last; empty without a history."""
        return self._past.newest()

    def note(
        self,
        kind: ChangeKind,
        group: str,
        topic: str,
        queue_id: int,
        before: int | None,
        after: int | None,
        client_id: str = "",
    ) -> None:
        """Records a change, which the next :meth:`flush` writes."""
        change = OffsetChange(kind, self._clock.now_ms(), group, topic, queue_id, before, after, client_id)
        with self._lock:
            self._waiting.append(change)
            self._noted += 1
            if len(self._waiting) >= self._join_at:
                self._waiting = join_commits(self._waiting, JOINED_MS)
                self._join_at = max(MAX_WAITING, 2 * len(self._waiting))

    @property
    def noted(self) -> int:
        """How many changes were recorded since it was opened."""
        return self._noted

    @property
    def synced(self) -> int:
        """How many of these are on the disk."""
        return self._synced

    def flush(self, table_print: int | None = None) -> None:
        """Writes and syncs the waiting changes; only one thread at a time may call it.

        Args:
            table_print: The print of the table that will be saved now, with all of them; None for no save.

        Raises:
            FullError: There is no space; the next call writes the waiting changes again.
        """
        with self._lock:
            changes, self._waiting = self._waiting, []
            noted = self._noted
        marks = [] if table_print is None else [_saved(table_print, self._clock.now_ms())]
        if not changes and not marks:
            return
        is_written = False
        try:
            with explained():
                self._append([*changes, *marks])
            is_written = True
            self._synced = noted
            if table_print is not None:
                self._prints.append(table_print)
        finally:
            if not is_written:
                with self._lock:
                    self._waiting[:0] = changes
        with self._lock:
            self._join_at = MAX_WAITING

    @property
    def is_long(self) -> bool:
        """Whether its file is long enough to be followed by another."""
        return self._end_bytes >= self._rotate_at

    def tidy(self) -> None:
        """Begins a new file after a long one, and deletes the oldest; only one thread at a time may call it.

        Raises:
            FullError: There is no space; the history is as it was.
        """
        if self.is_long:
            with explained():
                self._rotate()

    def close(self) -> None:
        """Cuts off what was made ahead of the changes, and closes the file; a later change opens it again."""
        file, self._file = self._file, None
        if file is not None:
            with closing(file):
                file.set_size(self._end_bytes)

    def _append(self, changes: list[OffsetChange]) -> None:
        if self._number < 0:
            self._files.make_dirs(self._folder)
            self._end_bytes = self._write_whole(0, _beginning({}, changes[0].timestamp_ms, ()))
            self._number = 0
        data = encode_changes(changes)
        end_bytes = self._end_bytes + len(data)
        if self._file is None:
            self._file = self._files.open(self._path(self._number), writable=True)
            self._made_bytes = 0
        is_written = False
        try:
            if not self._made_bytes:
                self._file.set_size(self._end_bytes)  # remove a torn change before new ones are written
            if end_bytes > self._made_bytes:
                with suppress(FullError):  # the changes themselves may still have space
                    self._file.write_at(bytes(len(data) + self._file_bytes // _AHEAD), self._end_bytes)
                self._made_bytes = max(end_bytes, self._file.size_bytes)
            self._file.write_at(data, self._end_bytes)
            self._file.sync()
            is_written = True
        finally:
            if not is_written:
                self._made_bytes = 0
        self._end_bytes = end_bytes

    def _rotate(self) -> None:
        """Starts a new file, joins the commits of the old one, and deletes the oldest."""
        self.close()
        old = self._number
        changes = decode_changes(self._files.read_file(self._path(old))).changes
        state: dict[QueueKey, int] = {}
        for change in changes:
            apply(state, change)
        self._end_bytes = self._write_whole(
            old + 1, _beginning(state, changes[-1].timestamp_ms, self._prints)
        )
        self._rotate_at = self._next_rotation(self._end_bytes)
        self._number = old + 1
        self._write_whole(old, join_commits(changes, JOINED_MS))
        sizes = {entry.name: entry.size_bytes for entry in self._files.list_dir(self._folder)}
        names = history_files(self._files, self._folder)
        while len(names) > 2 and sum(sizes[name] for name in names) > self._max_bytes:
            self._files.remove(self._folder / names.pop(0))
        self._files.sync_dir(self._folder)

    def _write_whole(self, number: int, changes: Iterable[OffsetChange]) -> int:
        data = encode_changes(changes)
        path = self._path(number)
        unfinished = path.with_name(path.name + _UNFINISHED)
        self._files.write_file(unfinished, data, sync=True)
        self._files.rename(unfinished, path)
        self._files.sync_dir(self._folder)
        return len(data)

    def _next_rotation(self, state_bytes: int) -> int:
        """Returns a length that leaves room for changes, for any number of offsets at the file's start."""
        return state_bytes + max(self._file_bytes, state_bytes)

    def _path(self, number: int) -> Path:
        return self._folder / segment_file_name(number)


def _saved(table_print: int, now_ms: int) -> OffsetChange:
    return OffsetChange(ChangeKind.SAVED, now_ms, after=table_print)


def _beginning(state: Mapping[QueueKey, int], begin_ms: int, prints: Iterable[int]) -> list[OffsetChange]:
    """Returns a file's first changes; later ones are not older, unless the clock was set back."""
    return [
        OffsetChange(ChangeKind.BEGIN, begin_ms),
        *(
            OffsetChange(ChangeKind.STATE, begin_ms, *key, before=None, after=offset)
            for key, offset in sorted(state.items())
        ),
        *(_saved(table_print, begin_ms) for table_print in prints),
    ]


def join_commits(changes: Iterable[OffsetChange], within_ms: int) -> list[OffsetChange]:
    """Returns changes with forward commits of one client in one queue joined; everything else stays.

    Args:
        changes: In their order; a joined change takes the place of the last of its parts.
        within_ms: Longest time between the first and the last of the joined changes.
    """
    joined: list[OffsetChange | None] = []
    last: dict[QueueKey, tuple[int, int]] = {}
    for change in changes:
        key = change.group, change.topic, change.queue_id
        merged, first_ms = change, change.timestamp_ms
        if key in last:
            place, since_ms = last[key]
            earlier = joined[place]
            if earlier is not None and _can_join(earlier, change, since_ms + within_ms):
                merged = change._replace(before=earlier.before, commits=earlier.commits + change.commits)
                joined[place], first_ms = None, since_ms
        last[key] = len(joined), first_ms
        joined.append(merged)
    return [change for change in joined if change is not None]


def _can_join(earlier: OffsetChange, later: OffsetChange, until_ms: int) -> bool:
    return (
        earlier.kind is later.kind is ChangeKind.COMMIT
        and earlier.client_id == later.client_id
        and not earlier.is_backwards
        and not later.is_backwards
        and later.timestamp_ms <= until_ms
    )
