"""``Files`` on a disk in memory, for processes that are killed and machines that lose power.

One object is one process: after a number of calls it dies before the next one, and nothing it does then
has any effect. What it left is found by the next process after :meth:`CrashFiles.after_kill`, with
everything that was written, or :meth:`CrashFiles.after_power_loss`, with what the disk happens to hold.

Single threaded; the same seed and the same calls give the same disk.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from seglog.errors import StoreLockedError
from seglog.storage.files.files import DiskUsage, Entry, Stamp
from seglog.storage.files.store_lock import LOCK_MARK
from tests.support.crash.crash_disk import PAGE_BYTES, Change, Content, Disk, Folder, Node, is_hole

_MAX_FILE_BYTES: Final = 64 << 20


class KilledError(BaseException):
    """The process is gone before this call."""


class CrashFile:
    """An open file of a process."""

    def __init__(self, files: CrashFiles, content: Content, *, writable: bool) -> None:
        self._files = files
        self._content = content
        self._writable = writable

    @property
    def size_bytes(self) -> int:
        return len(self._content.data)

    @property
    def descriptor(self) -> int:
        return -1

    def read_into(self, buffer: memoryview, position: int) -> int:
        self._files.check_alive()
        piece = self._content.data[position : position + len(buffer)]
        buffer[: len(piece)] = piece
        return len(piece)

    def write_at(self, data: bytes | bytearray | memoryview, position: int) -> None:
        self._files.step()
        end = position + len(data)
        if end > len(self._content.data):
            self._files.resize(self._content, end)
        self._content.data[position:end] = data

    def next_data(self, position: int) -> int | None:
        self._files.check_alive()
        data = self._content.data
        while position < len(data):
            if not is_hole(data, position):
                return position
            position += PAGE_BYTES - position % PAGE_BYTES
        return None

    def set_size(self, size_bytes: int) -> None:
        self._files.step()
        self._files.resize(self._content, size_bytes)

    def reserve(self, position: int, size_bytes: int) -> None:
        self._files.step()
        if position + size_bytes > len(self._content.data):
            self._files.resize(self._content, position + size_bytes)

    def map(self) -> memoryview:
        self._files.check_alive()
        view = memoryview(self._content.data)
        return view if self._writable else view.toreadonly()

    def sync(self) -> None:
        self._files.step()
        self._files.sync_content(self._content)

    def close(self) -> None:
        """Nothing is held."""


class CrashFiles:
    """What one process sees of the disk.

    Attributes:
        chance: Decides what the kernel writes by itself, and what a power cut leaves.
        disk: The disk.
        calls: Calls so far that change the disk or sync it.
        calls_left: How many more of them succeed; None for all.
        disk_usage: How full the disk says that it is.
        write_back_share: How often the kernel writes something by itself between two calls.
    """

    write_back_share = 0.15
    disk_usage = DiskUsage(used_bytes=1 << 30, available_bytes=99 << 30)

    def __init__(self, chance: random.Random | None = None, disk: Disk | None = None) -> None:
        self.chance = chance or random.Random(0)
        self.disk = disk or Disk()
        self.calls = 0
        self.calls_left: int | None = None
        self._is_dead = False
        self._locked: set[Path] = set()

    @classmethod
    def holding(cls, contents: Mapping[Path, bytes]) -> Self:
        """Returns files of these contents, all on the disk."""
        made = cls()
        for path, content in contents.items():
            made.make_dirs(path.parent)
            made.write_file(path, content)
            made.sync_dir(path.parent)
        return made

    def contents(self) -> dict[Path, bytes]:
        """Returns every file as processes see it."""
        return {
            path / name: bytes(node.data)
            for path, folder in self.disk.folders.items()
            for name, node in folder.names.items()
            if isinstance(node, Content)
        }

    def die(self) -> None:
        """Ends the process."""
        self._is_dead = True

    def after_kill(self) -> Self:
        """Returns the files as the next process of the same machine finds them."""
        self.die()
        return type(self)(self.chance, self.disk)

    def after_power_loss(self) -> Self:
        """Returns the files as the machine finds them when it has power again."""
        self.die()
        return type(self)(self.chance, self.disk.image(self.chance))

    # ---------------------------------------------------------------------- what a process asks for

    def list_dir(self, path: Path) -> list[Entry]:
        self.check_alive()
        folder = self.disk.folders.get(path)
        names = sorted(folder.names.items()) if folder is not None else []
        return [
            Entry(name, is_dir=True, size_bytes=PAGE_BYTES)
            if isinstance(node, Folder)
            else Entry(name, is_dir=False, size_bytes=len(node.data))
            for name, node in names
        ]

    def exists(self, path: Path) -> bool:
        self.check_alive()
        return self._find(path) is not None

    def is_dir(self, path: Path) -> bool:
        self.check_alive()
        return path in self.disk.folders

    def open(self, path: Path, *, writable: bool) -> CrashFile:
        self.check_alive()
        return CrashFile(self, self._content(path), writable=writable)

    def create(self, path: Path, size_bytes: int) -> CrashFile:
        self.step()
        if self._find(path) is not None:
            raise _os_error(errno.EEXIST, path)
        made = self._link(path)
        self.step()
        self.resize(made, size_bytes)
        return CrashFile(self, made, writable=True)

    def read_file(self, path: Path) -> bytes:
        self.check_alive()
        return bytes(self._content(path).data)

    def write_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        self.step()
        content = self._link(path) if self._find(path) is None else self._content(path)
        if content.data:
            self.resize(content, 0)
        self.step()
        self.resize(content, len(data))
        content.data[:] = data
        if sync:
            self.step()
            self.sync_content(content)

    def make_dirs(self, path: Path, *, sync: bool = True) -> None:
        if self.is_dir(path):
            return
        self.make_dirs(path.parent, sync=sync)
        self.step()
        self.disk.make_folder(path)
        if sync:
            self.sync_dir(path.parent)

    def rename(self, source: Path, target: Path) -> None:
        self.step()
        node = self._content(source)
        ends = (self._folder(source.parent), source.name), (self._folder(target.parent), target.name)
        self.disk.change(Change(node, *ends))

    def remove(self, path: Path) -> None:
        self.step()
        node = self._content(path)
        self.disk.change(Change(node, gone=(self._folder(path.parent), path.name)))

    def sync_dir(self, path: Path) -> None:
        self.step()
        self.disk.sync_names(self._folder(path))

    def usage(self, path: Path) -> DiskUsage:
        self._folder(path)
        return self.disk_usage

    def stamp(self, path: Path) -> Stamp:
        self._content(path)
        return Stamp(0o644, 0)

    def set_stamp(self, path: Path, stamp: Stamp) -> None:
        """Nothing of it is kept."""

    def remove_dir(self, path: Path) -> None:
        self.step()
        if self._folder(path).names:
            raise _os_error(errno.ENOTEMPTY, path)
        self.disk.remove_folder(path)

    def lock(self, root: Path) -> CrashLock:
        path = root / "lock"
        if path in self._locked:
            raise StoreLockedError(f"this process has {root} open for writing")
        if self._find(path) is None:
            self.write_file(path, b"lock", sync=False)
        self._locked.add(path)
        return CrashLock(self, self._locked, path)

    # --------------------------------------------------------------------------- what really happens

    def check_alive(self) -> None:
        """Raises KilledError in a process that is dead."""
        if self._is_dead:
            raise KilledError

    def step(self) -> None:
        """Counts a call; the process may die before it, and the kernel may write something by itself."""
        self.check_alive()
        if self.calls_left is not None:
            if self.calls_left == 0:
                self.die()
                raise KilledError
            self.calls_left -= 1
        self.calls += 1
        if self.chance.random() < self.write_back_share:
            self.disk.write_back(self.chance)

    def sync_content(self, content: Content) -> None:
        """Brings a file to the disk."""
        content.sync()

    def resize(self, content: Content, size_bytes: int) -> None:
        """Cuts or extends a file."""
        if size_bytes > _MAX_FILE_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        if size_bytes != len(content.data):
            content.resize(size_bytes)

    def _link(self, path: Path) -> Content:
        made = Content()
        self.disk.change(Change(made, new=(self._folder(path.parent), path.name)))
        return made

    def _find(self, path: Path) -> Node | None:
        folder = self.disk.folders.get(path.parent)
        return None if folder is None else folder.names.get(path.name)

    def _folder(self, path: Path) -> Folder:
        found = self.disk.folders.get(path)
        if found is None:
            raise _os_error(errno.ENOENT, path)
        return found

    def _content(self, path: Path) -> Content:
        found = self._find(path)
        if found is None:
            raise _os_error(errno.ENOENT, path)
        if isinstance(found, Folder):
            raise _os_error(errno.EISDIR, path)
        return found


class CrashLock:
    """The lock of a store, gone with the process."""

    def __init__(self, files: CrashFiles, locked: set[Path], path: Path) -> None:
        self._files = files
        self._locked = locked
        self._path = path

    def is_marked(self) -> bool:
        return self._files.read_file(self._path) == LOCK_MARK

    def mark(self) -> None:
        if not self.is_marked():
            self._files.write_file(self._path, LOCK_MARK)

    def release(self) -> None:
        self._locked.discard(self._path)


def _os_error(code: int, path: Path) -> OSError:
    return OSError(code, os.strerror(code), str(path))
