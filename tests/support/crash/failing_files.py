"""The real file system, of which one call fails: the N-th, or all from the N-th on."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar

from seglog.errors import FullError
from seglog.storage.files.files import Entry, OpenFile, RealFiles

P = ParamSpec("P")
T = TypeVar("T")

NEEDS_SPACE = frozenset({"create", "write", "write_file", "reserve", "make_dirs", "rename", "set_size"})


@dataclass
class Fault:
    """Which call fails.

    Attributes:
        at: Number of the first call that fails, counted from 1 over the calls in ``names``; 0 for none.
        error: Its errno.
        sticky: Whether all calls after it fail too.
        names: The calls that count, all if empty.
        count: Calls so far.
        fired: What failed, in order.
    """

    at: int = 0
    error: int = errno.EIO
    sticky: bool = False
    names: frozenset[str] = frozenset()
    count: int = 0
    fired: list[str] = field(default_factory=list)

    def check(self, name: str, path: Path) -> None:
        """Counts a call, and raises if it is to fail.

        Raises:
            OSError: It is its turn.
            FullError: So it is, and the call is one that the file layer translates.
        """
        if self.names and name not in self.names:
            return
        self.count += 1
        if self.at and (self.count >= self.at if self.sticky else self.count == self.at):
            self.fired.append(f"{name} {path.name}")
            if self.error in {errno.ENOSPC, errno.EDQUOT} and name in NEEDS_SPACE:
                raise FullError(f"{path}: no space left for the next write")
            raise OSError(self.error, os.strerror(self.error), str(path))


class FailingFile:
    """An open file whose calls may fail."""

    def __init__(self, file: OpenFile, path: Path, fault: Fault) -> None:
        self._file = file
        self._path = path
        self._fault = fault
        self.close = file.close
        self.read_into = self._guard("read", file.read_into)
        self.write_at = self._guard("write", file.write_at)
        self.next_data = file.next_data
        self.set_size = self._guard("set_size", file.set_size)
        self.reserve = self._guard("reserve", file.reserve)
        self.map = self._guard("map", file.map)
        self.sync = self._guard("sync", file.sync)

    @property
    def size_bytes(self) -> int:
        return self._file.size_bytes

    @property
    def descriptor(self) -> int:
        return -1

    def _guard(self, name: str, call: Callable[P, T]) -> Callable[P, T]:
        def guarded(*arguments: P.args, **named: P.kwargs) -> T:
            self._fault.check(name, self._path)
            return call(*arguments, **named)

        return guarded


class FailingFiles:
    """A file system whose calls may fail."""

    def __init__(self, fault: Fault) -> None:
        self._files = RealFiles()
        self._fault = fault
        self.exists = self._files.exists
        self.is_dir = self._files.is_dir
        self.usage = self._files.usage
        self.lock = self._files.lock
        self.stamp = self._files.stamp
        self.set_stamp = self._files.set_stamp
        self.remove_dir = self._files.remove_dir

    def list_dir(self, path: Path) -> list[Entry]:
        self._fault.check("list_dir", path)
        return self._files.list_dir(path)

    def open(self, path: Path, *, writable: bool) -> FailingFile:
        self._fault.check("open", path)
        return FailingFile(self._files.open(path, writable=writable), path, self._fault)

    def create(self, path: Path, size_bytes: int) -> FailingFile:
        self._fault.check("create", path)
        return FailingFile(self._files.create(path, size_bytes), path, self._fault)

    def read_file(self, path: Path) -> bytes:
        self._fault.check("read_file", path)
        return self._files.read_file(path)

    def write_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        self._fault.check("write_file", path)
        self._files.write_file(path, data, sync=sync)

    def make_dirs(self, path: Path, *, sync: bool = True) -> None:
        self._fault.check("make_dirs", path)
        self._files.make_dirs(path, sync=sync)

    def rename(self, source: Path, target: Path) -> None:
        self._fault.check("rename", source)
        self._files.rename(source, target)

    def remove(self, path: Path) -> None:
        self._fault.check("remove", path)
        self._files.remove(path)

    def sync_dir(self, path: Path) -> None:
        self._fault.check("sync_dir", path)
        self._files.sync_dir(path)
