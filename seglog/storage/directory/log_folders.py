"""Folders beside ``commitlog`` that hold files of the log, found by the records in them.

RocketMQ spreads the files of one log over several folders if ``storePathCommitLog`` names several. Nothing in
a store says so but the files: a record states its own place. A folder whose files continue the log, or fill
places of it, is one of the log's. A folder that repeats names of the log's files is a copy: of its files only
those count that the log lacks.

Source: ``MultiPathMappedFileQueue.java load``, ``StorePathConfigHelper.java``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from seglog.errors import StoreError
from seglog.storage.directory.geometry import MAX_SEGMENT_BYTES
from seglog.storage.directory.log_facts import has_bytes, record_times, stated_place
from seglog.storage.directory.log_files import MAX_MISSING
from seglog.storage.files.files import Entry, Files
from seglog.storage.format.names import (
    ABORT_FILE,
    BATCH_CONSUME_QUEUE,
    CHECKPOINT_FILE,
    COMMIT_LOG,
    CONSUME_QUEUE,
    parse_segment_file_name,
    segment_file_name,
)

_MOST_INNER: Final = 64
"""How many folders in one folder beside the log are looked into."""
_OF_STORES: Final = frozenset({CONSUME_QUEUE, BATCH_CONSUME_QUEUE, CHECKPOINT_FILE, ABORT_FILE})
"""Names that make a folder a store of its own: its log is not this one's."""
_ALLOCATED_AHEAD: Final = 2
"""How many files ahead of its last RocketMQ creates (``AllocateMappedFileService.java``)."""


class _Facts(NamedTuple):
    """What a file beside the log says.

    Attributes:
        is_right: Whether its records state the place of its name.
        is_empty: Whether it begins with zeros, as a file does that RocketMQ created ahead.
    """

    is_right: bool
    is_empty: bool


@dataclass(frozen=True, slots=True)
class LogFolders:
    """Where files of the log are, beside ``commitlog``.

    Attributes:
        whole: Folders of the log, relative to the store, sorted.
        lone: Folder of each file that only a copy of the log has, by the name of the file.
    """

    whole: tuple[str, ...] = ()
    lone: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.whole or self.lone)

    @property
    def names(self) -> tuple[str, ...]:
        """All folders, sorted."""
        return tuple(sorted({*self.whole, *self.lone.values()}))


class LogFolderFinder:
    """Finds the folders of a log; remembers what it read of each file, for the next look.

    Args:
        files: Where the store is; shows each folder as it is.
        root: The store directory.
    """

    def __init__(self, files: Files, root: Path) -> None:
        self._files = files
        self._root = root
        self._facts: dict[tuple[str, int, int], _Facts] = {}
        self._joined: set[str] = set()

    def find(self, tops: Iterable[str]) -> LogFolders:
        """Returns where files of the log are.

        Args:
            tops: Folders directly in the store that have no name of RocketMQ's or ours.
        """
        beside = {folder: sizes for top in tops for folder, sizes in self._numbered(top)}
        if not beside:
            return LogFolders()
        log = dict(self._sizes(COMMIT_LOG) or {})
        copies = {folder for folder, sizes in beside.items() if not log.keys().isdisjoint(sizes)}
        whole: list[str] = []
        left = {folder: sizes for folder, sizes in beside.items() if folder not in copies}
        folder_of = dict.fromkeys(log, COMMIT_LOG)
        while folder := self._next(left, folder_of, log):
            sizes = left.pop(folder)
            if log.keys().isdisjoint(sizes):
                whole.append(folder)
                folder_of |= dict.fromkeys(sizes, folder)
                log |= sizes
            else:
                copies.add(folder)
        self._joined = set(whole)
        return LogFolders(tuple(sorted(whole)), dict(self._lone(copies, beside, folder_of, log)))

    def _numbered(self, top: str) -> Iterator[tuple[str, dict[int, int]]]:
        """Yields a folder and the folders in it, each with the sizes of its files that log files can be."""
        with suppress(OSError, StoreError):
            entries = self._files.list_dir(self._root / top)
            if sizes := _sizes_of(entries):
                yield top, sizes
            if _OF_STORES.isdisjoint(entry.name for entry in entries):
                for entry in [entry for entry in entries if entry.is_dir][:_MOST_INNER]:
                    inner = f"{top}/{entry.name}"
                    if found := self._sizes(inner):
                        yield inner, found

    def _sizes(self, folder: str) -> dict[int, int] | None:
        with suppress(OSError, StoreError):
            return _sizes_of(self._files.list_dir(self._root / folder))
        return None

    def _next(
        self,
        left: Mapping[str, Mapping[int, int]],
        folder_of: Mapping[int, str],
        log: Mapping[int, int],
    ) -> str | None:
        """Returns a folder that is one of the log's, the surest first; None without one."""
        for folder in sorted(self._joined & left.keys()):
            return folder
        right = {
            folder: [first for first, size in sizes.items() if self._of(folder, first, size).is_right]
            for folder, sizes in left.items()
        }
        telling = {folder: places for folder, places in right.items() if places}
        if not log:
            return min(telling, key=lambda folder: (min(telling[folder]), folder), default=None)
        start, end = min(log), max(log)
        for folder, places in sorted(telling.items()):
            if any(start < first < end for first in places):
                return folder
        for folder, places in sorted(telling.items()):
            if any(first + left[folder][first] == start for first in places):
                return folder
        behind = [
            (min(first for first in places if first > end), folder)
            for folder, places in telling.items()
            if any(first > end for first in places)
        ]
        for first, folder in sorted(behind):
            if self._continues(folder, first, folder_of, log):
                return folder
        for folder, sizes in sorted(left.items()):
            if any(self._is_ahead(folder, first, size, log) for first, size in sizes.items()):
                return folder
        return None

    def _lone(
        self,
        copies: Iterable[str],
        beside: Mapping[str, Mapping[int, int]],
        folder_of: Mapping[int, str],
        log: Mapping[int, int],
    ) -> Iterator[tuple[str, str]]:
        """Yields the files that the log lacks and a copy of it has, each with its folder."""
        places = {*log}
        offered = sorted((first, folder) for folder in copies for first in beside[folder])
        for first, folder in offered:
            size = beside[folder][first]
            if first in places or not self._of(folder, first, size).is_right:
                continue
            is_within = min(places) < first < max(places)
            if is_within or (first > max(places) and self._continues(folder, first, folder_of, log)):
                places.add(first)
                yield segment_file_name(first), folder

    def _continues(
        self, folder: str, first: int, folder_of: Mapping[int, str], log: Mapping[int, int]
    ) -> bool:
        """Returns whether a file is behind the log, near it, and has records that are not older."""
        end = max(log)
        if first - end > (MAX_MISSING + 1) * (log[end] or MAX_SEGMENT_BYTES):
            return False
        for last in sorted(log, reverse=True)[: _ALLOCATED_AHEAD + 1]:
            newest = record_times(self._files, self._root, segment_file_name(last), last, folder_of[last])
            if newest is not None:
                times = record_times(self._files, self._root, segment_file_name(first), first, folder)
                return times is not None and times[0] >= newest[1]
        return False

    def _is_ahead(self, folder: str, first: int, size: int, log: Mapping[int, int]) -> bool:
        """Returns whether a file looks like one that RocketMQ created ahead, for the next messages."""
        common = Counter(log.values()).most_common(1)[0][0]
        return (
            size == common > 0
            and first % common == 0
            and 0 < first - max(log) <= _ALLOCATED_AHEAD * common
            and self._of(folder, first, size).is_empty
        )

    def _of(self, folder: str, first: int, size: int) -> _Facts:
        """Returns what a file says; what its records say once does not change."""
        known = self._facts.get((folder, first, size))
        if known is not None and known.is_right:
            return known
        name = segment_file_name(first)
        is_right = stated_place(self._files, self._root, name, folder) == first
        found = _Facts(is_right, not is_right and not has_bytes(self._files, self._root, name, folder))
        self._facts[folder, first, size] = found
        return found


def _sizes_of(entries: Iterable[Entry]) -> dict[int, int]:
    found = {}
    for entry in entries:
        first = parse_segment_file_name(entry.name)
        if first is not None and not entry.is_dir:
            found[first] = entry.size_bytes
    return found
