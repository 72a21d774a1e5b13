"""The files of one store whose log may lie in several folders: shown, and written, as one.

RocketMQ spreads a log over the folders that ``storePathCommitLog`` names. Here all of its files appear in
``commitlog``, each under its own number, for readers and writers alike; a call that names one of them reaches
the folder where it is. Which folders these are, the files tell (:mod:`seglog.storage.directory.log_folders`).
Where the next file belongs they do not tell: a writer needs a ``broker.conf`` that states the folders, given
by the caller or found in the store, and its lock is refused without one.

Source: ``MultiPathMappedFileQueue.java``, ``DefaultMessageStore.java CleanCommitLogService``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection
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
from seglog.storage.files.beneath import Opener
from seglog.storage.files.file_kinds import STORE_FOLDERS
from seglog.storage.files.files import DiskUsage, Entry, read_whole
from seglog.storage.files.real_file import RealFile
from seglog.storage.files.store_lock import StoreLock
from seglog.storage.files.store_root import StoreRoot
from seglog.storage.format.names import COMMIT_LOG, parse_segment_file_name
from seglog.text import shell_text

_PREFIX: Final = f"{COMMIT_LOG}/".encode()
_FULL_PERCENT: Final = 85
"""A folder that is fuller gets no new file while another is not (``diskSpaceCleanForciblyRatio``)."""


class LogRoot(StoreRoot):
    """The real files of one store, with its log in one folder or in several.

    Args:
        path: The store directory, which need not exist yet.
        follow: Folders directly in it that may be links to folders elsewhere.
        opener: How folders below it are opened; None for the way that is best here.
        log: The folders of the log that a configuration states; None to take ``broker.conf`` in the store.

    Thread rule: any thread.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        follow: Collection[str] = (),
        opener: Opener | None = None,
        log: LogPaths | None = None,
    ) -> None:
        super().__init__(path, follow=follow, opener=opener)
        self._log = log
        self._looks = threading.RLock()
        self._plain = StoreRoot(self.path, follow=follow, opener=opener)
        self._finder = LogFolderFinder(self._plain, self.path)
        self._found: LogFolders | None = None

    @override
    def close(self) -> None:
        if "_plain" in vars(self):
            self._plain.close()
        super().close()

    @property
    @override
    def log_folders(self) -> tuple[str, ...]:
        return tuple(name for name in self._folders().names if self._plain.is_dir(self.path / name))

    def stated_folders(self) -> PlacedFolders | None:
        """Returns the folders of the log that a configuration states, None if none states any.

        Raises:
            UnsupportedStoreError: It states other folders than the store has.
        """
        return self._place(self._finder.find(self._tops()))

    def demand_stated(self) -> None:
        """Refuses to write to a log in several folders unless a configuration states all of them.

        Raises:
            UnsupportedStoreError: None states them, or one states others.
        """
        folders = self._look()
        placed = self.stated_folders()
        if folders.lone:
            name, folder = min(folders.lone.items())
            raise UnsupportedStoreError(
                f"{self.path / folder / name} holds a part of the log that {self.path / COMMIT_LOG} lacks",
                help=f"nothing was changed; move it into {shell_text(self.path / COMMIT_LOG)}, or what should"
                " not be of the log out of the store; reading works without",
            )
        if folders.whole and placed is None:
            names = ", ".join((COMMIT_LOG, *folders.whole))
            raise UnsupportedStoreError(
                f"the log of {self.path} is in several folders, {names}, and no {CONF_FILE} states them",
                help="nothing was changed; give the broker's configuration: `seglog repair --broker-conf FILE"
                f" {shell_text(self.path)}`, `seglog serve --config FILE {shell_text(self.path)}`,"
                " or a copy of it as"
                f" {shell_text(self.path / CONF_FILE)} for every command; reading works without",
            )

    @override
    def real_path(self, path: Path) -> Path:
        parts = self._parts(path)
        return path if parts == super()._parts(path) else path.parents[1].joinpath(*parts)

    @override
    def list_dir(self, path: Path) -> list[Entry]:
        if not self._is_log(path):
            return super().list_dir(path)
        folders = self._look()
        entries = super().list_dir(path)
        if not folders:
            return entries
        shown = {entry.name: entry for entry in entries}
        for folder in folders.names:
            for entry in super().list_dir(self.path / folder):
                is_shown = folder in folders.whole or folders.lone.get(entry.name) == folder
                if is_shown and not entry.is_dir and parse_segment_file_name(entry.name) is not None:
                    shown.setdefault(entry.name, entry)
        return [entry for _name, entry in sorted(shown.items())]

    @override
    def usage(self, path: Path) -> DiskUsage:
        if not self._is_log(path) or not (folders := self.log_folders):
            return super().usage(path)
        used = [super(LogRoot, self).usage(self.path / name) for name in (COMMIT_LOG, *folders)]
        return min(used, key=lambda usage: usage.used_percent)

    @override
    def create(self, path: Path, size_bytes: int) -> RealFile:
        first = parse_segment_file_name(path.name) if self._is_log(path.parent) else None
        if first is not None and not self.exists(path) and (placed := self._spread()) is not None:
            path = self._home(placed, first // max(1, size_bytes)) / path.name
            self.make_dirs(path.parent)
        return super().create(path, size_bytes)

    @override
    def rename(self, source: Path, target: Path) -> None:
        if self._is_log(target.parent) and self._folders() and not self.exists(target):
            *above, _name = self._parts(source)
            if "/".join(above) in self._folders().whole:
                target = self.path.joinpath(*above, target.name)  # one file system: a rename copies nothing
        super().rename(source, target)

    @override
    def sync_dir(self, path: Path) -> None:
        super().sync_dir(path)
        if self._is_log(path):
            for folder in self.log_folders:
                super().sync_dir(self.path / folder)

    @override
    def lock(self, root: Path) -> StoreLock:
        self.demand_stated()
        return super().lock(root)

    @override
    def _parts(self, path: Path) -> tuple[str, ...]:
        parts = super()._parts(path)
        return self._placed(parts) if len(parts) == 2 and parts[0] == COMMIT_LOG else parts

    @override
    def _plain_name(self, path: Path) -> bytes | None:
        name = super()._plain_name(path)
        if name is None or not name.startswith(_PREFIX) or not self._folders():
            return name
        return os.fsencode("/".join(self._parts(path)))

    def _placed(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """Returns the names that lead to a file of the log."""
        folders = self._folders()
        if not folders or self._is_there_at(COMMIT_LOG, parts[1]):
            return parts
        for folder in (*folders.whole, folders.lone.get(parts[1])):
            if folder is not None and self._is_there_at(folder, parts[1]):
                return (*folder.split("/"), parts[1])
        return parts

    def _is_there_at(self, folder: str, name: str) -> bool:
        try:
            return self._plain.exists(self.path / folder / name)
        except (OSError, StoreError):  # the call that it is asked for meets it too
            return True

    def _is_log(self, path: Path) -> bool:
        return super()._parts(path) == (COMMIT_LOG,)

    def _folders(self) -> LogFolders:
        """Returns the folders as the last look found them."""
        found = self._found
        return self._look() if found is None else found

    def _look(self) -> LogFolders:
        with self._looks:
            found = self._finder.find(self._tops())
            with suppress(UnsupportedStoreError):  # who writes is told
                if (placed := self._place(found)) is not None and len(placed.names) > 1:
                    found = LogFolders(
                        tuple(sorted({*found.whole, *placed.names} - {COMMIT_LOG})), found.lone
                    )
            self._found = found
            return found

    def _tops(self) -> list[str]:
        """Returns the folders directly in the store that have no name of a store's, sorted."""
        with suppress(OSError):
            return [name for name in self._plain.folder_names() if name not in STORE_FOLDERS]
        return []

    def _place(self, found: LogFolders) -> PlacedFolders | None:
        stated = self._stated()
        if stated is None:
            return None
        names = found.whole
        with suppress(OSError):
            if self._plain.scan(self.path / COMMIT_LOG):
                names = (COMMIT_LOG, *names)
        return place_log_paths(self._plain, self.path, stated, names)

    def _spread(self) -> PlacedFolders | None:
        """Returns the folders of the log where there is a choice of them, None otherwise."""
        placed = self.stated_folders()
        return placed if placed is not None and len(placed.names) > 1 else None

    def _home(self, placed: PlacedFolders, number: int) -> Path:
        """Returns the folder in which RocketMQ creates a file of the log.

        Args:
            placed: The folders of the log.
            number: Of the file in the log, from 0.
        """
        folders = [name for name in placed.writable if not self._is_full(name)] or placed.writable
        return self.path / folders[number % len(folders)]

    def _is_full(self, name: str) -> bool:
        with suppress(OSError):
            return super().usage(self.path / name).used_percent > _FULL_PERCENT
        return False  # it will be created

    def _stated(self) -> LogPaths | None:
        if self._log is not None:
            return self._log
        path = self.path / CONF_FILE
        if not self._plain.exists(path):  # most stores: a look is cheap
            return None
        with suppress(OSError, StoreError), closing(self._plain.open(path, writable=False)) as file:
            if file.size_bytes <= MAX_CONF_BYTES:
                return parse_log_paths(read_whole(file, path), str(path))
        return None
