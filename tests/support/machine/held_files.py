"""A store's files on a disk whose syncs are counted, and held back for as long as a test wants."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typing_extensions import override

from seglog.storage.files.files import OpenFile
from seglog.testing import RoomyFiles


class HeldFiles(RoomyFiles):
    """Files whose syncs wait while they are held.

    Attributes:
        log_syncs: Syncs of files of the log until now.
        saves: Files that were written whole and synced until now, by name.
        fails: Whether syncs fail from now on.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._open = threading.Event()
        self._open.set()
        self.log_syncs = 0
        self.saves: list[str] = []
        self.fails = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Holds all syncs back within it."""
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()

    def pass_sync(self, *, of_log: bool) -> None:
        """Waits for the disk."""
        self._open.wait()
        self.log_syncs += of_log
        if self.fails:
            raise OSError(errno.EIO, "the disk is gone")

    @override
    def open(self, path: Path, *, writable: bool) -> Any:
        return _HeldFile(super().open(path, writable=writable), self, of_log="commitlog" in path.parts)

    @override
    def create(self, path: Path, size_bytes: int) -> Any:
        return _HeldFile(super().create(path, size_bytes), self, of_log="commitlog" in path.parts)

    @override
    def write_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        super().write_file(path, data, sync=sync)
        if sync:
            self.saves.append(path.name.removesuffix(".tmp"))
            self.pass_sync(of_log=False)


class _HeldFile:
    def __init__(self, file: OpenFile, disk: HeldFiles, *, of_log: bool) -> None:
        self._file = file
        self._disk = disk
        self._of_log = of_log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def sync(self) -> None:
        self._disk.pass_sync(of_log=self._of_log)
        self._file.sync()
