"""Files of which some cannot be read: a check goes on behind them, and says which.

A file that must not be opened counts as gone. Where the disk gives an error, only the piece around it counts
as zeros.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from typing_extensions import override

from seglog.storage.files import Entry, RealFile, RealFiles, check_whole
from seglog.storage.findings import Finding

_PIECE_BYTES: Final = 4096
_UNREADABLE: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EIO, errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.EFBIG}
)
_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK
"""A pipe where a file belongs must not keep us waiting."""


class ForgivingFiles(RealFiles):
    """The real files of one store, for reading only; an absent file reads as an empty one.

    Args:
        root: The store directory.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._found: dict[str, Finding] = {}

    @property
    def findings(self) -> list[Finding]:
        """What could not be read so far, once for each file."""
        with self._lock:
            return list(self._found.values())

    @override
    def open(self, path: Path, *, writable: bool) -> RealFile:
        if writable:
            raise PermissionError(errno.EACCES, "a check never writes", str(path))
        try:
            return _ForgivingFile(path, self)
        except FileNotFoundError:
            raise
        except OSError as error:
            self.note(path, error)
            raise FileNotFoundError(errno.ENOENT, "it cannot be read", str(path)) from error

    @override
    def read_file(self, path: Path) -> bytes:
        try:
            handle = self.open(path, writable=False)
        except FileNotFoundError:
            return b""
        try:
            check_whole(handle.size_bytes, path)
            buffer = memoryview(bytearray(handle.size_bytes))
            return bytes(buffer[: handle.read_into(buffer, 0)])
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
        """Remembers that a file cannot be read; raises what is no matter of reading again."""
        if error.errno not in _UNREADABLE:
            raise error
        name = path.relative_to(self._root).as_posix() if path.is_relative_to(self._root) else str(path)
        finding = Finding(
            "file-unreadable",
            name,
            position_bytes,
            size_bytes,
            "bytes",
            error.strerror or str(error),
        )
        self.add(finding)

    def add(self, finding: Finding) -> None:
        """Remembers a file that somebody else could not read."""
        with self._lock:
            self._found.setdefault(finding.file, finding)


class _ForgivingFile(RealFile):
    """An open file whose bad places read as zeros."""

    __slots__ = ("_files",)

    def __init__(self, path: Path, files: ForgivingFiles) -> None:
        self._files = files
        super().__init__(path, _FLAGS)
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            self.close()
            raise OSError(errno.ENXIO, "it is no file", str(path))

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
            with suppress(OSError):  # it was noted above
                super().read_into(piece, position + done)
            done += len(piece)
        return done
