"""Small files in memory that can lose power: what was synced stays, of the rest anything may.

Content is durable once it was written with ``sync``; names are once their folder was synced. Before that,
any subset of the changed names may have reached the disk, in the order in which they were made.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

from seglog.storage.files import Entry, OpenFile

_Names = dict[Path, bytes]


class PowerLossFiles:
    """As much of ``Files`` as config files need."""

    def __init__(self, names: _Names | None = None) -> None:
        self.names: _Names = dict(names or {})
        self.calls_left: int | None = None
        self._durable: _Names = dict(self.names)
        self._pending: list[Callable[[_Names], None]] = []

    def images(self) -> Iterator[PowerLossFiles]:
        """Yields every state in which the disk may be found if the power fails now."""
        for kept in itertools.product((False, True), repeat=len(self._pending)):
            names = dict(self._durable)
            for change, is_kept in zip(self._pending, kept, strict=True):
                if is_kept:
                    change(names)
            yield PowerLossFiles(names)

    def read_file(self, path: Path) -> bytes:
        return self.names[path]

    def exists(self, path: Path) -> bool:
        return path in self.names

    def write_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        self._count()
        content = data if sync else data[: len(data) // 2]
        self.names[path] = data
        self._change(lambda names: names.__setitem__(path, content))

    def rename(self, source: Path, target: Path) -> None:
        self._count()
        self.names[target] = self.names.pop(source)

        def move(names: _Names) -> None:
            if source in names:
                names[target] = names.pop(source)

        self._change(move)

    def remove(self, path: Path) -> None:
        self._count()
        del self.names[path]

        def drop(names: _Names) -> None:
            names.pop(path, None)

        self._change(drop)

    def sync_dir(self, path: Path) -> None:
        self._count()
        self._pending.clear()
        self._durable = dict(self.names)

    def make_dirs(self, path: Path) -> None:
        """Folders need no entry here."""

    def list_dir(self, path: Path) -> list[Entry]:
        return [Entry(name.name, False, len(data)) for name, data in sorted(self.names.items())]

    def open(self, path: Path, *, writable: bool) -> OpenFile:
        raise FileNotFoundError(path)

    def create(self, path: Path, size_bytes: int) -> OpenFile:
        raise FileExistsError(path)

    def _change(self, change: Callable[[_Names], None]) -> None:
        self._pending.append(change)

    def _count(self) -> None:
        if self.calls_left is not None:
            if self.calls_left == 0:
                raise KilledError
            self.calls_left -= 1


class KilledError(BaseException):
    """The process is gone before this call."""
