"""Where each file of a log in several folders is, and where its next one belongs.

The folders are those that the files show (:mod:`seglog.storage.directory.log_folders`), and those that a
configuration states, the caller's or a ``broker.conf`` in the store.

Source: ``MultiPathMappedFileQueue.java tryCreateMappedFile``, ``DefaultMessageStore.java
CleanCommitLogService``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from typing_extensions import override

from seglog.errors import StoreError, UnsupportedStoreError
from seglog.storage.directory.broker_conf import MAX_CONF_BYTES
from seglog.storage.directory.log_folders import LogFolderFinder, LogFolders
from seglog.storage.directory.log_paths import (
    CONF_FILE,
    LogPaths,
    PlacedFolders,
    parse_log_paths,
    place_log_paths,
)
from seglog.storage.directory.replaced_paths import ReplacedPaths
from seglog.storage.files.file_kinds import STORE_FOLDERS
from seglog.storage.files.files import Entry, Files, read_whole
from seglog.storage.format.names import COMMIT_LOG, parse_segment_file_name

_FULL_PERCENT: Final = 85
"""A folder that is fuller gets no new file while another is not (``diskSpaceCleanForciblyRatio``)."""


class LogPlaces:
    """The places of the files of one log.

    Args:
        files: Where the store is; shows each folder as it is.
        root: The store directory.
        log: The folders of the log that a configuration states; None to take ``broker.conf`` in the store.
        folder_names: Returns the names of the folders directly in the store.

    Thread rule: any thread that may use the files.
    """

    def __init__(
        self,
        files: Files,
        root: Path,
        log: LogPaths | None,
        folder_names: Callable[[], Iterable[str]],
    ) -> None:
        self._files = files
        self._root = root
        self._log = log
        self._folder_names = folder_names
        self._looks = threading.RLock()
        self._finder = LogFolderFinder(files, root)
        self._found: LogFolders | None = None

    @property
    def given(self) -> LogPaths | None:
        """The folders that the caller's configuration states."""
        return self._log

    @property
    def folders(self) -> LogFolders:
        """The folders beside ``commitlog`` as the last look found them."""
        found = self._found
        return self.look() if found is None else found

    @property
    def is_spread(self) -> bool:
        """Whether the log has, or may get, files in other folders than ``commitlog``."""
        return bool(self.folders) or self._stated() is not None

    def look(self) -> LogFolders:
        """Looks again, and returns the folders."""
        with self._looks:
            found = self._finder.find(self._tops())
            with suppress(UnsupportedStoreError):  # who writes is told
                if (placed := self._place(found)) is not None and len(placed.names) > 1:
                    # Also where its files, under wrong names, look like a copy of the log.
                    whole = tuple(sorted({*found.whole, *placed.names} - {COMMIT_LOG}))
                    lone = {name: folder for name, folder in found.lone.items() if folder not in whole}
                    found = LogFolders(whole, lone)
            self._found = found
            return found

    def stated(self) -> PlacedFolders | None:
        """Returns the folders of the log that a configuration states, None if none states any.

        Raises:
            UnsupportedStoreError: It states other folders than the store has.
        """
        return self._place(self._finder.find(self._tops()))

    def every_folder(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Returns the folders of the log, ``commitlog`` among them, and those of them that get no new file.

        They are those that a configuration states, if it states those that the store has.
        """
        with suppress(UnsupportedStoreError):
            if (placed := self.stated()) is not None:
                return placed.names, tuple(name for name in placed.names if name not in placed.writable)
        folders = self.look().names
        return (COMMIT_LOG, *folders) if self._has_log() or not folders else folders, ()

    def parts_of(self, name: str) -> tuple[str, ...]:
        """Returns the names that lead to a file of the log, which has its name in ``commitlog``."""
        folders = self.folders
        if folders and not self._is_there(COMMIT_LOG, name):
            for folder in (*folders.whole, folders.lone.get(name)):
                if folder is not None and self._is_there(folder, name):
                    return (*folder.split("/"), name)
        return (COMMIT_LOG, name)

    def doubled(self) -> list[tuple[str, str]]:
        """Returns the files that are not shown because another folder of the log has one of the same name.

        Each with the one that is shown, both relative to the store.
        """
        shown: dict[str, str] = {}
        found: list[tuple[str, str]] = []
        for folder in (COMMIT_LOG, *self.folders.whole):
            with suppress(OSError, StoreError):
                for entry in self._files.list_dir(self._root / folder):
                    if entry.is_dir or parse_segment_file_name(entry.name) is None:
                        continue
                    name = f"{folder}/{entry.name}"
                    if shown.setdefault(entry.name, name) != name:
                        found.append((name, shown[entry.name]))
        return found

    def entries(self, list_dir: Callable[[Path], list[Entry]]) -> list[Entry]:
        """Returns what ``commitlog`` shows: its own entries, and the files in other folders of the log.

        RocketMQ takes each file in such a folder for one of the log, also one with another name.

        Args:
            list_dir: Returns the entries of a folder, as it is.
        """
        folders = self.look()
        entries = list_dir(self._root / COMMIT_LOG)
        if not folders:
            return entries
        shown = {entry.name: entry for entry in entries}
        for folder in folders.names:
            for entry in list_dir(self._root / folder):
                is_shown = folder in folders.whole or folders.lone.get(entry.name) == folder
                if is_shown and not entry.is_dir:
                    shown.setdefault(entry.name, entry)
        return [entry for _name, entry in sorted(shown.items())]

    def new_folder(self, name: str, size_bytes: int) -> str:
        """Returns the folder, relative to the store, in which RocketMQ creates a new file of the log.

        Args:
            name: Of the file.
            size_bytes: Its length.
        """
        first = parse_segment_file_name(name)
        placed = None if first is None else self.stated()
        if first is None or placed is None or len(placed.names) < 2:
            return COMMIT_LOG
        folders = [folder for folder in placed.writable if not self._is_full(folder)] or placed.writable
        return folders[first // max(1, size_bytes) % len(folders)]

    def renamed_folders(self, folder: str, name: str) -> Iterator[str]:
        """Yields the folders in which a file of the log may get another name, the best first.

        Args:
            folder: That of the file, relative to the store: in it a rename copies nothing.
            name: The other name.
        """
        if folder in (COMMIT_LOG, *self.folders.whole):
            yield folder
        yield "/".join(self.parts_of(name)[:-1])

    def _is_there(self, folder: str, name: str) -> bool:
        try:
            return self._files.exists(self._root / folder / name)
        except (OSError, StoreError):  # the call that it is asked for meets it too
            return True

    def _tops(self) -> list[str]:
        """Returns the folders directly in the store that have no name of a store's, sorted."""
        with suppress(OSError, StoreError):
            return [name for name in self._folder_names() if name not in STORE_FOLDERS]
        return []

    def _place(self, found: LogFolders) -> PlacedFolders | None:
        stated = self._stated()
        if stated is None:
            return None
        names = found.whole
        if self._has_log():
            names = (COMMIT_LOG, *names)
        return place_log_paths(self._files, self._root, stated, names)

    def _has_log(self) -> bool:
        try:
            return bool(self._files.list_dir(self._root / COMMIT_LOG))
        except StoreError:  # what it has there is no file, but it has something
            return True
        except OSError:
            return False

    def _is_full(self, folder: str) -> bool:
        with suppress(OSError):
            return self._files.usage(self._root / folder).used_percent > _FULL_PERCENT
        return False  # it will be created

    def _stated(self) -> LogPaths | None:
        if self._log is not None:
            return self._log
        path = self._root / CONF_FILE
        if not self._files.exists(path):  # most stores: a look is cheap
            return None
        with suppress(OSError, StoreError), closing(self._files.open(path, writable=False)) as file:
            if file.size_bytes <= MAX_CONF_BYTES:
                return parse_log_paths(read_whole(file, path), str(path))
        return None


class OneLog(ReplacedPaths):
    """Files that show a log in several folders as one, to be read: what a store root does, over a draft.

    Args:
        files: The files below; they show each folder as it is.
        root: The store directory.
        log: The folders of the log that a configuration states; None to take ``broker.conf`` in the store.
    """

    def __init__(self, files: Files, root: Path, log: LogPaths | None) -> None:
        super().__init__(files)
        self._log_folder = root / COMMIT_LOG
        self._root = root
        self._places = LogPlaces(files, root, log, self._names)

    @property
    @override
    def shows_one_log(self) -> bool:
        return True

    @override
    def _path(self, path: Path) -> Path:
        is_of_log = path.parent == self._log_folder
        return self._root.joinpath(*self._places.parts_of(path.name)) if is_of_log else path

    @override
    def list_dir(self, path: Path) -> list[Entry]:
        is_log = path == self._log_folder
        return self._places.entries(self._files.list_dir) if is_log else self._files.list_dir(path)

    def _names(self) -> list[str]:
        return [entry.name for entry in self._files.list_dir(self._root) if entry.is_dir]
