"""The files of one store for a reader: what is neither file nor folder counts as absent.

A link, pipe, device or socket in a store, and a folder in place of a file, is never opened; it is remembered
as a finding, and the rest of the store is read.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Collection
from pathlib import Path
from typing import NoReturn

from typing_extensions import override

from seglog.storage.directory.log_paths import LOG_PATHS, LogPaths
from seglog.storage.directory.log_root import LogRoot
from seglog.storage.files import FILE, FOLDER, Entry, RealFile, kind_of
from seglog.storage.files.beneath import Opener
from seglog.storage.findings.findings import Finding


class ReadingRoot(LogRoot):
    """The real files of one store, for reading only.

    Args:
        path: The store directory.
        follow: Folders directly in it that may be links to folders elsewhere.
        opener: How folders below it are opened; None for the way that is best here.
        log: As for :class:`~seglog.storage.directory.log_root.LogRoot`.

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
        super().__init__(path, follow=follow, opener=opener, log=log)
        self._odd_lock = threading.Lock()
        self._odd: dict[tuple[str, str, str], set[str]] = {}

    @property
    def findings(self) -> list[Finding]:
        """What was met so far that no store has, once for each folder and kind, and folders of the log.

        A folder of the log is found by its files; a broker finds it if its configuration states it, and so
        it is named unless one that is known here does.
        """
        with self._odd_lock:
            odd = [
                _finding(sorted(names), found, expected) for (_, found, expected), names in self._odd.items()
            ]
        return (
            odd
            + [
                Finding("log-folder", name, expected=f"{LOG_PATHS} with all folders of the log", found="none")
                for name in self.unstated_folders
            ]
            + [
                Finding("log-file-doubled", name, expected="one file of the log of a name", found=shown)
                for name, shown in self.places.doubled()
            ]
        )

    @override
    def meet_odd(self, path: Path, found: str, expected: str) -> None:
        name = self._name(path)
        with self._odd_lock:
            self._odd.setdefault((name.rpartition("/")[0], found, expected), set()).add(name)

    @override
    def exists(self, path: Path) -> bool:
        mode = self._mode(path)
        if not mode:
            return False
        kind = kind_of(mode)
        if kind not in (FILE, FOLDER):
            self.meet_odd(path, kind, FILE)
        return kind in (FILE, FOLDER)

    @override
    def read_file(self, path: Path) -> bytes:
        try:
            return super().read_file(path)
        except _OddError:
            return b""

    @override
    def open(self, path: Path, *, writable: bool) -> RealFile:
        if writable:
            raise PermissionError(errno.EACCES, "the store is read only", str(path))
        return super().open(path, writable=False)

    @override
    def list_dir(self, path: Path) -> list[Entry]:
        try:
            return super().list_dir(path)
        except _OddError:
            return []

    @override
    def _refuse(self, path: Path, found: str, expected: str) -> NoReturn:
        self.meet_odd(path, found, expected)
        raise _OddError(errno.ENOENT, f"it is {found}, where {expected} belongs", str(path))


class _OddError(FileNotFoundError):
    """Something is there that counts as absent."""


def _finding(names: list[str], found: str, expected: str) -> Finding:
    more = f", and {len(names) - 1} more in this folder" if len(names) > 1 else ""
    return Finding("file-kind", names[0], expected=expected, found=found + more)
