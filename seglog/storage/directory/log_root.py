"""The files of one store whose log may lie in several folders: shown, and written, as one.

RocketMQ spreads a log over the folders that ``storePathCommitLog`` names. Here all of its files appear in
``commitlog``, each under its own number, for readers and writers alike; a call that names one of them reaches
the folder where it is. Which folders these are, the files tell (:mod:`seglog.storage.directory.log_folders`).
Where the next file belongs they do not tell: a writer needs a ``broker.conf`` that states the folders, given
by the caller or found in the store, and its lock is refused without one.

Source: ``MultiPathMappedFileQueue.java``.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from typing_extensions import override

from seglog.errors import UnsupportedStoreError
from seglog.storage.directory.log_paths import CONF_FILE, LogPaths, PlacedFolders
from seglog.storage.directory.log_places import LogPlaces
from seglog.storage.files.beneath import Opener
from seglog.storage.files.files import DiskUsage, Entry
from seglog.storage.files.real_file import RealFile
from seglog.storage.files.store_lock import StoreLock
from seglog.storage.files.store_root import StoreRoot
from seglog.storage.format.names import COMMIT_LOG
from seglog.text import shell_line, shell_text

_PREFIX: Final = f"{COMMIT_LOG}/".encode()


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
        self._plain = StoreRoot(self.path, follow=follow, opener=opener)
        self.places = LogPlaces(self._plain, self.path, log, self._plain.folder_names)

    @override
    def close(self) -> None:
        if "_plain" in vars(self):
            self._plain.close()
        super().close()

    @property
    def shows_one_log(self) -> bool:
        """Always true: all files of the log appear in ``commitlog``."""
        return True

    @property
    @override
    def as_it_is(self) -> StoreRoot:
        return self._plain

    @property
    @override
    def log_folders(self) -> tuple[str, ...]:
        return tuple(name for name in self.places.folders.names if self._plain.is_dir(self.path / name))

    @property
    @override
    def unstated_folders(self) -> tuple[str, ...]:
        with suppress(UnsupportedStoreError):  # one that states others states not these
            if self.places.stated() is not None:
                return ()
        return self.log_folders

    def stated_folders(self) -> PlacedFolders | None:
        """Returns the folders of the log that a configuration states, None if none states any.

        Raises:
            UnsupportedStoreError: It states other folders than the store has.
        """
        return self.places.stated()

    def demand_stated(self) -> None:
        """Refuses to write to a log in several folders unless a configuration states all of them.

        Raises:
            UnsupportedStoreError: None states them, or one states others.
        """
        folders = self.places.look()
        placed = self.places.stated()
        if folders.lone:
            name, folder = min(folders.lone.items())
            raise UnsupportedStoreError(
                f"{self.path / folder / name} holds a part of the log that {self.path / COMMIT_LOG} lacks",
                help=f"nothing was changed; move it into {shell_text(self.path / COMMIT_LOG)}, or what should"
                " not be of the log out of the store; reading works without",
            )
        if doubled := self.places.doubled():
            name, shown = doubled[0]
            raise UnsupportedStoreError(
                f"{self.path / name} and {self.path / shown} have the name of one file of the log",
                help="nothing was changed; move the one out of the store that is a copy, or give it the name"
                f" that its records state (`{shell_line(['seglog', 'dump', '--log', self.path])}` shows those"
                f" of {shown}); reading works with {shown} alone",
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
        return self.places.entries(super().list_dir) if self._is_log(path) else super().list_dir(path)

    @override
    def usage(self, path: Path) -> DiskUsage:
        if not self._is_log(path) or not (folders := self.log_folders):
            return super().usage(path)
        used = [super(LogRoot, self).usage(self.path / name) for name in (COMMIT_LOG, *folders)]
        return min(used, key=lambda usage: usage.used_percent)

    @override
    def create(self, path: Path, size_bytes: int) -> RealFile:
        if self._is_log(path.parent) and not self.exists(path):
            path = self.path / self.places.new_folder(path.name, size_bytes) / path.name
            self.make_dirs(path.parent)
        return super().create(path, size_bytes)

    @override
    def rename(self, source: Path, target: Path) -> None:
        if self._is_log(target.parent) and self.places.folders and not self.exists(target):
            folder = "/".join(self._parts(source)[:-1])
            target = self.path / next(self.places.renamed_folders(folder, target.name)) / target.name
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
        is_of_log = len(parts) == 2 and parts[0] == COMMIT_LOG
        return self.places.parts_of(parts[1]) if is_of_log else parts

    @override
    def _plain_name(self, path: Path) -> bytes | None:
        name = super()._plain_name(path)
        if name is None or not name.startswith(_PREFIX) or not self.places.folders:
            return name
        return os.fsencode("/".join(self._parts(path)))

    def _is_log(self, path: Path) -> bool:
        return super()._parts(path) == (COMMIT_LOG,)
