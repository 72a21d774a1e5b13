"""Queries of the history of offsets: offsets at a moment, the clients that changed them, and differences.

Reads need no lock: files appear whole under their names, and a change that is just being written does not
count yet. Changes are in the order of the files; if the clock was set back, their times go back too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.errors import NotFoundError
from seglog.storage.files import Files
from seglog.storage.format.names import OURS, parse_segment_file_name
from seglog.storage.format.ours import (
    ChangeKind,
    DecodedChanges,
    OffsetChange,
    decode_changes,
    decode_offsets,
)
from seglog.text import moment

OFFSET_HISTORY: Final = f"{OURS}/offsets"
PRINTS: Final = 2
"""Saves by which a table is known again: the last one, and that of the backup."""

QueueKey = tuple[str, str, int]
"""Group, topic and queue."""
_KEPT: Final = (ChangeKind.BEGIN, ChangeKind.STATE)
_NO_CHANGE: Final = (ChangeKind.BEGIN, ChangeKind.SAVED)
"""Marks in the history that move no group."""


@dataclass(frozen=True, slots=True)
class OffsetDifference:
    """A queue in which a group had different offsets at two moments."""

    group: str
    topic: str
    queue_id: int
    before: int | None
    after: int | None


class OffsetPast:
    """The history of a store's offsets.

    Args:
        files: The file system of the store.
        root: The store directory.
    """

    def __init__(self, files: Files, root: Path) -> None:
        self._files = files
        self._folder = root / OFFSET_HISTORY

    @property
    def begin_ms(self) -> int | None:
        """The time at which the history begins, in ms since the epoch; None if there is no history."""
        for name in history_files(self._files, self._folder):
            for change in self._read(name).changes:
                return change.timestamp_ms
        return None

    def log(self, group: str | None = None, topic: str | None = None) -> Iterator[OffsetChange]:
        """Yields the changes, oldest first, beginning with the offsets that the history started with.

        Args:
            group: Only of this group.
            topic: Only in this topic.
        """
        is_first = True
        for name in history_files(self._files, self._folder):
            for change in self._read(name).changes:
                if change.kind in _NO_CHANGE or (change.kind is ChangeKind.STATE and not is_first):
                    continue
                if group in (None, change.group) and topic in (None, change.topic):
                    yield change
            is_first = False

    def at(self, moment_ms: int) -> dict[QueueKey, int]:
        """Returns the offsets of every group at a moment.

        Raises:
            NotFoundError: The history begins later, or does not exist.
        """
        newest: DecodedChanges | None = None
        begin_ms: int | None = None
        for name in reversed(history_files(self._files, self._folder)):
            decoded = self._read(name)
            if decoded.changes:
                begin_ms = decoded.changes[0].timestamp_ms
                newest = decoded
                if begin_ms <= moment_ms:
                    break
        if newest is None or begin_ms is None:
            raise NotFoundError("the store has no history of offsets", help="it begins with the next commit")
        if begin_ms > moment_ms:
            raise NotFoundError(
                f"the history of offsets begins at {moment(begin_ms)}, after {moment(moment_ms)}",
                help="`seglog offsets log STORE` shows how far it goes back",
            )
        state: dict[QueueKey, int] = {}
        for change in newest.changes:
            if change.kind in _KEPT or change.timestamp_ms <= moment_ms:
                apply(state, change)
        return state

    def newest(self) -> dict[QueueKey, int]:
        """Returns the offsets of every group after the last change; empty if there is no history."""
        state: dict[QueueKey, int] = {}
        for name in reversed(history_files(self._files, self._folder)):
            if changes := self._read(name).changes:
                for change in changes:
                    apply(state, change)
                break
        return state

    def diff(self, first_ms: int, second_ms: int) -> list[OffsetDifference]:
        """Returns the queues in which groups had different offsets at the two moments.

        Raises:
            NotFoundError: The history begins later than one of them.
        """
        return differences(self.at(first_ms), self.at(second_ms))

    def blame(self, group: str | None = None) -> list[OffsetChange]:
        """Returns the last change of each queue of each group, by group, topic and queue."""
        last: dict[QueueKey, OffsetChange] = {}
        for change in self.log(group):
            last[change.group, change.topic, change.queue_id] = change
        return [last[key] for key in sorted(last)]

    def damaged_bytes(self) -> int:
        """Returns how many bytes of the files are not a change, not counting a torn end."""
        names = history_files(self._files, self._folder)
        return sum(self._read(name).damaged_bytes for name in names)

    def _read(self, name: str) -> DecodedChanges:
        return decode_changes(self._files.read_file(self._folder / name))


def newest_offsets(
    files: Files, root: Path, table: dict[QueueKey, int] | None, table_print: int | None
) -> dict[QueueKey, int]:
    """Returns every offset of a store as a broker has it that opens the store now.

    Those are the newest of the history if the table is as it was saved last, or is gone. Else others changed
    the table, RocketMQ or an operator, and it counts.

    Args:
        files: The file system of the store.
        root: The store directory.
        table: Every offset as loaded; None if the table and its backup are gone or empty.
        table_print: The print of the file.
    """
    if table is None:
        return OffsetPast(files, root).newest()
    names = history_files(files, root / OFFSET_HISTORY)
    if not names:
        return table
    decoded = decode_offsets(files.read_file(root / OFFSET_HISTORY / names[-1]))
    return decoded.offsets if is_as_saved(table_print, decoded.prints) else table


def is_as_saved(table_print: int | None, prints: Sequence[int]) -> bool:
    """Returns whether a table is as it was saved last, or as its backup was, by the prints of all saves."""
    return table_print in prints[-PRINTS:]


def history_files(files: Files, folder: Path) -> list[str]:
    """Returns the names of the files of a history, oldest first."""
    return [entry.name for entry in files.list_dir(folder) if parse_segment_file_name(entry.name) is not None]


def apply(state: dict[QueueKey, int], change: OffsetChange) -> None:
    """Applies a change to a state."""
    if change.kind in _NO_CHANGE:
        return
    key = change.group, change.topic, change.queue_id
    if change.after is None:
        state.pop(key, None)
    else:
        state[key] = change.after


def differences(first: dict[QueueKey, int], second: dict[QueueKey, int]) -> list[OffsetDifference]:
    """Returns the differences of two states, by group, topic and queue."""
    if first == second:
        return []
    differing = [key for key in first.keys() | second.keys() if first.get(key) != second.get(key)]
    return [OffsetDifference(*key, first.get(key), second.get(key)) for key in sorted(differing)]
