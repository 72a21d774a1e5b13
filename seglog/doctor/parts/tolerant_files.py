"""Files of which some cannot be read: a check continues after them, and reports them.

A file that must not be opened counts as empty; a name that is neither a file nor a folder counts as absent
(:mod:`seglog.storage.directory.reading_root`). After a read error of the disk only the piece around it
counts as zeros.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final, Protocol

from typing_extensions import override

from seglog.errors import CorruptError
from seglog.storage.directory import LogPaths, ReadingRoot
from seglog.storage.files import Entry, Files, RealFile, read_whole
from seglog.storage.findings import Finding

_PIECE_BYTES: Final = 4096
_UNREADABLE: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EIO, errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.EFBIG}
)


class UnreadFiles:
    """The unreadable parts of a store, one finding for each file.

    Thread rule: any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[str, Finding] = {}

    def add(self, finding: Finding) -> None:
        """Adds a finding, unless the file has one already."""
        with self._lock:
            self._found.setdefault(finding.file, finding)

    def findings(self) -> list[Finding]:
        """Returns the findings in the order of adding."""
        with self._lock:
            return list(self._found.values())


class CheckedFiles(Files, Protocol):
    """The interface through which a check reads a store; an unreadable file is noted, and counts as empty."""

    @property
    def findings(self) -> list[Finding]:
        """Returns findings on files that could not be read so far, and on file kinds that no store has."""

    def add(self, finding: Finding) -> None:
        """Records a file that another reader could not read."""

    def meet_odd(self, path: Path, found: str, expected: str) -> None:
        """Records a name that is of another kind than it should be."""

    def status(self, path: Path) -> os.stat_result:
        """Returns the file system's attributes of a name."""

    def scan(self, path: Path) -> list[tuple[str, os.stat_result]]:
        """Returns each name in a directory, sorted, with the file system's attributes."""

    @property
    def log_folders(self) -> tuple[str, ...]:
        """Folders of the log beside ``commitlog``, relative to the store."""

    def lock_holder(self) -> int | None:
        """Returns the process that has the store open for writing, -1 if it is unknown, None without one."""


class ForgivingFiles(ReadingRoot):
    """The real files of one store, for reading only; an absent file reads as an empty one.

    Args:
        root: The store directory.
        follow: Folders directly in it that may be links to folders elsewhere.
        log: The folders of the log that a configuration states; None to take ``broker.conf`` in the store.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        follow: Collection[str] = (),
        log: LogPaths | None = None,
    ) -> None:
        super().__init__(root, follow=follow, log=log)
        self._unread = UnreadFiles()

    @property
    @override
    def findings(self) -> list[Finding]:
        """Returns findings on unreadable files, one for each, and on kinds of files that no store has."""
        return [*super().findings, *self._unread.findings()]

    @override
    def open(self, path: Path, *, writable: bool) -> RealFile:
        try:
            return super().open(path, writable=writable)
        except FileNotFoundError:
            raise
        except OSError as error:
            if writable:
                raise
            self.note(path, error)
            return _ForgivingFile(path, os.O_RDONLY, None, _open_nothing(), self)

    @override
    def _new_file(
        self, path: Path, flags: int, folder: int | None, descriptor: int | None = None
    ) -> RealFile:
        return _ForgivingFile(path, flags, folder, descriptor, self)

    @override
    def _mode(self, path: Path) -> int:
        try:
            return super()._mode(path)
        except OSError as error:
            self.note(path, error)
            return 0

    @override
    def read_file(self, path: Path) -> bytes:
        try:
            handle = self.open(path, writable=False)
        except FileNotFoundError:
            return b""
        try:
            return read_whole(handle, path)
        except CorruptError:
            self.note(path, OSError(errno.EFBIG, os.strerror(errno.EFBIG)))
            return b""
        except OSError as error:
            self.note(path, error)
            return b""
        finally:
            handle.close()

    @override
    def list_dir(self, path: Path) -> list[Entry]:
        try:
            return super().list_dir(path)
        except OSError as error:
            self.note(path, error)
            return []

    def note(self, path: Path, error: OSError, position_bytes: int = 0, size_bytes: int = 0) -> None:
        """Records that a file cannot be read; raises errors for which another read is no remedy."""
        if error.errno not in _UNREADABLE:
            raise error
        finding = Finding(
            "file-unreadable",
            self._name(path),
            position_bytes,
            size_bytes,
            "bytes",
            error.strerror or str(error),
        )
        self.add(finding)

    def add(self, finding: Finding) -> None:
        """Records a file that another reader could not read."""
        self._unread.add(finding)


def _open_nothing() -> int:
    """Returns a descriptor of an empty file."""
    with TemporaryFile() as file:
        return os.dup(file.fileno())


class _ForgivingFile(RealFile):
    """An open file whose unreadable places read as zeros."""

    __slots__ = ("_files",)

    def __init__(
        self, path: Path, flags: int, folder: int | None, descriptor: int | None, files: ForgivingFiles
    ) -> None:
        super().__init__(path, flags, folder, descriptor)
        self._files = files

    @override
    def read_into(self, buffer: memoryview, position: int) -> int:
        try:
            return super().read_into(buffer, position)
        except OSError as error:
            self._files.note(self._path, error, position, len(buffer))
        done = 0
        wanted = max(0, min(len(buffer), self.size_bytes - position))
        while done < wanted:
            until = done + _PIECE_BYTES - (position + done) % _PIECE_BYTES
            piece = buffer[done : min(wanted, until)]
            piece[:] = bytes(len(piece))
            with suppress(OSError):  # the error was noted above
                super().read_into(piece, position + done)
            done += len(piece)
        return done
