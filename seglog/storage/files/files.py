"""The file calls of the engine: all disk access uses :class:`Files`, which tests can replace.

Tests use file systems that crash, report wrong results or fill up. The real files of a store are those of a
:class:`~seglog.storage.files.store_root.StoreRoot`. Paths are :class:`pathlib.Path`; errors are the operating
system's ``OSError``, translated where their meaning is known (``ENOSPC`` at an allocation becomes
:class:`~seglog.errors.FullError`).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from seglog.errors import CorruptError, FileKindError
from seglog.storage.files.exchange import exchange
from seglog.storage.files.file_kinds import FILE, kind_of
from seglog.storage.files.hardlinks import break_link, sync_dir, unfinished_path
from seglog.storage.files.os_errors import translate, with_path
from seglog.storage.files.real_file import RealFile, write_fully
from seglog.storage.files.store_lock import StoreLock

MAX_WHOLE_BYTES = 128 << 20
"""The longest file that is read as a whole: config, tables, journals; RocketMQ's longest are timer logs of
100 MiB.

The length of a file in an untrusted store must not decide how much memory is used.
"""
_STEP_BYTES = 1 << 20
TOO_LONG = "file-too-long"
"""Kind of the damage of a longer file."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a directory."""

    name: str
    is_dir: bool
    size_bytes: int


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """The usage of a file system.

    Attributes:
        used_bytes: In use, by any user.
        available_bytes: Available to this process, without the space that is reserved for root.
    """

    used_bytes: int
    available_bytes: int

    @classmethod
    def of(cls, folder: Path | int) -> DiskUsage:
        """Returns the usage of the file system of a folder, given by path or descriptor."""
        found = os.statvfs(folder)
        return cls((found.f_blocks - found.f_bfree) * found.f_frsize, found.f_bavail * found.f_frsize)

    @property
    def used_percent(self) -> int:
        """Share in use, rounded up, as RocketMQ counts it."""
        return -(-100 * self.used_bytes // max(1, self.used_bytes + self.available_bytes))


class OpenFile(Protocol):
    """An open file; positions are bytes from its start. Calls on one file may come from any thread."""

    @property
    def size_bytes(self) -> int:
        """Length of the file now."""

    @property
    def descriptor(self) -> int:
        """The file's descriptor, for writes without this object; -1 for none."""

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Reads up to ``len(buffer)`` bytes, fewer only at the end of the file; returns their number."""

    def write_at(self, data: bytes | bytearray | memoryview, position: int) -> None:
        """Writes all of ``data``."""

    def next_data(self, position: int) -> int | None:
        """Returns the start of the next written bytes, None if only holes follow.

        A file system without holes may return ``position`` itself.
        """

    def set_size(self, size_bytes: int) -> None:
        """Cuts the file or extends it by a hole."""

    def reserve(self, position: int, size_bytes: int) -> None:
        """Allocates space for the range.

        Raises:
            FullError: The file system has not enough space; the content of the file is unchanged.
        """

    def map(self) -> memoryview:
        """Returns the whole file as writable memory, which stays valid as long as a view of it lives."""

    def sync(self) -> None:
        """Returns once all data of the file, and its size, is on the disk."""

    def close(self) -> None:
        """Closes the descriptor; maps stay."""


class HeldLock(Protocol):
    """The exclusive right to write to one store."""

    def is_marked(self) -> bool:
        """Returns whether the mark is still there: no RocketMQ has started on the store since."""

    def mark(self) -> None:
        """Writes a mark into the ``lock`` file, durably; a RocketMQ overwrites it when it starts."""

    def release(self) -> None:
        """Releases the lock; a second call does nothing."""


class Files(Protocol):
    """A file system."""

    def list_dir(self, path: Path) -> list[Entry]:
        """Returns the entries of a directory sorted by name; an absent directory has none."""

    def exists(self, path: Path) -> bool:
        """Whether there is anything of that name."""

    def is_dir(self, path: Path) -> bool:
        """Whether there is a directory of that name."""

    def open(self, path: Path, *, writable: bool) -> OpenFile:
        """Opens an existing file; for writing, first breaks its hard links."""

    def create(self, path: Path, size_bytes: int) -> OpenFile:
        """Creates a sparse file of that size; it must not exist."""

    def read_file(self, path: Path) -> bytes:
        """Returns the whole content.

        Raises:
            CorruptError: It is longer than :data:`MAX_WHOLE_BYTES`.
        """

    def write_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        """Creates or replaces a small file in place; not atomic."""

    def make_dirs(self, path: Path, *, sync: bool = True) -> None:
        """Creates a directory and its missing parents; ``sync`` makes the names durable."""

    def rename(self, source: Path, target: Path) -> None:
        """Renames atomically, replacing ``target``."""

    def remove(self, path: Path) -> None:
        """Removes a file."""

    def remove_dir(self, path: Path) -> None:
        """Removes an empty directory."""

    def sync_dir(self, path: Path) -> None:
        """Returns once the names in the directory are on the disk."""

    def usage(self, path: Path) -> DiskUsage:
        """Returns the usage of the file system of a folder."""

    def lock(self, root: Path) -> HeldLock:
        """Takes the lock of a store directory, and creates its ``lock`` file where it is missing.

        Raises:
            StoreLockedError: Another process, or this one, holds it.
            ReadOnlyError: The directory cannot be written.
        """


class Stamp(NamedTuple):
    """What a file system keeps beside the content of a file: rights, and when it was changed last."""

    mode: int
    modified_ns: int


class StampingFiles(Files, Protocol):
    """A file system that takes rights and times, or does not care for them as a draft."""

    def set_stamp(self, path: Path, stamp: Stamp) -> None:
        """Gives a file rights and a time."""


class RestoringFiles(StampingFiles, Protocol):
    """A file system on which a store can be put back as it was, rights, times and folders too."""

    def stamp(self, path: Path) -> Stamp:
        """Returns the rights and the time of a file."""


class SwappingFiles(RestoringFiles, Protocol):
    """A file system on which one folder can take another's place."""

    def exchange(self, first: Path, second: Path) -> bool:
        """Exchanges two folders at once; returns False, and does nothing, where the system cannot."""


class RealFiles:
    """The operating system's files, by any path: for folders of the caller's own, such as staging folders.

    The files of a store are those of a :class:`~seglog.storage.files.store_root.StoreRoot`, which no name in
    it leads out of.

    Args:
        most_whole_bytes: The longest file that may be read as a whole.
    """

    _most_whole_bytes = MAX_WHOLE_BYTES

    def __init__(self, most_whole_bytes: int = MAX_WHOLE_BYTES) -> None:
        self._most_whole_bytes = most_whole_bytes

    def list_dir(self, path: Path) -> list[Entry]:
        """Returns the entries of a directory sorted by name; an absent directory has none."""
        try:
            with os.scandir(path) as found:
                names = sorted(found, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return []
        entries: list[Entry] = []
        for item in names:
            try:
                status = item.stat()
            except FileNotFoundError:  # removed by its owner while we looked, or a dangling link
                continue
            entries.append(Entry(item.name, stat.S_ISDIR(status.st_mode), status.st_size))
        return entries

    def exists(self, path: Path) -> bool:
        """Whether there is anything of that name."""
        return path.exists()

    def is_dir(self, path: Path) -> bool:
        """Whether there is a directory of that name."""
        return path.is_dir()

    def open(self, path: Path, *, writable: bool) -> RealFile:
        """Opens an existing file; breaks the hard links of one that is to be written."""
        if not writable:
            return RealFile(path, os.O_RDONLY)
        if path.stat().st_nlink > 1:
            try:
                break_link((None, str(path)), (None, str(unfinished_path(path))))
            except OSError as error:
                raise translate(error, path) from error
        return RealFile(path, os.O_RDWR)

    def create(self, path: Path, size_bytes: int) -> RealFile:
        """Creates a sparse file of that size; leaves none behind if that fails."""
        try:
            made = RealFile(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        except OSError as error:
            raise translate(error, path) from error
        try:
            made.set_size(size_bytes)
        except BaseException:
            made.close()
            path.unlink()
            raise
        return made

    def read_file(self, path: Path) -> bytes:
        """Returns the whole content; never waits for the other end of a pipe.

        Raises:
            FileKindError: It is neither a file nor a folder.
            IsADirectoryError: It is a folder.
            CorruptError: It is longer than permitted.
        """
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            _check_regular(status.st_mode, path)
            check_whole(status.st_size, path, self._most_whole_bytes)
            with open(descriptor, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(descriptor)

    def write_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        """Creates or replaces a small file in place; not atomic.

        Raises:
            FileKindError: The name exists and is neither a file nor a folder.
        """
        is_new = not path.exists()
        if not is_new:
            status = path.stat()
            _check_regular(status.st_mode, path)
            if status.st_nlink > 1:
                path.unlink()  # the other names keep their bytes
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise translate(error, path) from error
        try:
            write_fully(descriptor, data, 0)
        except OSError as error:
            os.close(descriptor)
            if is_new:
                path.unlink()
            raise translate(error, path) from error
        try:
            if sync:
                os.fsync(descriptor)  # ENOSPC from here means lost data, not a refused write
        except OSError as error:
            raise with_path(error, path) from error
        finally:
            os.close(descriptor)

    def make_dirs(self, path: Path, *, sync: bool = True) -> None:
        """Creates a directory and its parents where they are missing; ``sync`` makes the names durable."""
        if path.is_dir():
            return
        self.make_dirs(path.parent, sync=sync)
        try:
            path.mkdir(exist_ok=True)
        except OSError as error:
            raise translate(error, path) from error
        if sync:
            self.sync_dir(path.parent)

    def rename(self, source: Path, target: Path) -> None:
        """Renames atomically, replacing ``target``."""
        try:
            source.replace(target)
        except OSError as error:
            raise translate(error, target) from error

    def remove(self, path: Path) -> None:
        """Removes a file."""
        path.unlink()

    def sync_dir(self, path: Path) -> None:
        """Syncs the directory itself."""
        try:
            sync_dir(path)
        except OSError as error:
            raise with_path(error, path) from error

    def usage(self, path: Path) -> DiskUsage:
        """Asks with ``statvfs``."""
        return DiskUsage.of(path)

    def lock(self, root: Path) -> StoreLock:
        """Takes the lock that RocketMQ uses too."""
        return StoreLock(root)

    def stamp(self, path: Path) -> Stamp:
        """Returns the rights and the time of a file."""
        status = path.stat()
        return Stamp(stat.S_IMODE(status.st_mode), status.st_mtime_ns)

    def set_stamp(self, path: Path, stamp: Stamp) -> None:
        """Gives a file rights and a time."""
        path.chmod(stamp.mode)
        os.utime(path, ns=(path.stat().st_atime_ns, stamp.modified_ns))

    def remove_dir(self, path: Path) -> None:
        """Removes an empty directory."""
        path.rmdir()

    def exchange(self, first: Path, second: Path) -> bool:
        """Exchanges with ``renameat2``; returns False if the system or file system cannot do it."""
        return exchange((None, str(first)), (None, str(second)))


def _check_regular(mode: int, path: Path) -> None:
    """Does nothing for a regular file, by its mode; raises for every other kind."""
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        found = kind_of(mode)
        raise FileKindError(
            f"{path} is {found}, where {FILE} belongs",
            file=str(path),
            found=found,
            help=f"move {path} away, or put {FILE} in its place",
        )


def check_whole(size_bytes: int, path: Path, most_bytes: int = MAX_WHOLE_BYTES) -> None:
    """Does nothing if a file of this length may be read as a whole.

    Raises:
        CorruptError: The file is longer than any such file of RocketMQ or ours.
    """
    if size_bytes > most_bytes:
        expected = f"at most {most_bytes} bytes"
        raise CorruptError(TOO_LONG, file=str(path), expected=expected, found=f"{size_bytes} bytes")


def read_part(handle: OpenFile, position_bytes: int, size_bytes: int) -> memoryview:
    """Returns up to ``size_bytes`` of an open file; fewer at its end."""
    buffer = memoryview(bytearray(max(0, min(size_bytes, handle.size_bytes - position_bytes))))
    if len(buffer) <= _STEP_BYTES:
        return buffer[: handle.read_into(buffer, position_bytes)]
    at = 0
    while at < len(buffer):
        # Skips holes: files of the timer are preallocated, 140 MB of which most are holes.
        data = handle.next_data(position_bytes + at)
        if data is None:
            return buffer[: max(0, handle.size_bytes - position_bytes)]
        at = max(at, data - position_bytes)
        wanted = buffer[at : at + _STEP_BYTES]
        count = handle.read_into(wanted, position_bytes + at)
        at += count
        if count < len(wanted):
            return buffer[:at]
    return buffer


def read_whole(handle: OpenFile, path: Path) -> bytes:
    """Returns the whole content of an open file.

    Raises:
        CorruptError: As :func:`check_whole`.
    """
    check_whole(handle.size_bytes, path)
    return bytes(read_part(handle, 0, handle.size_bytes))


def read_all(files: Files, path: Path) -> bytes:
    """Returns the whole content of a file of any length that this program wrote."""
    with closing(files.open(path, writable=False)) as handle:
        return bytes(read_part(handle, 0, handle.size_bytes))


def read_start(files: Files, path: Path, size_bytes: int) -> bytes:
    """Returns up to ``size_bytes`` from the start of a file; empty if the file does not exist."""
    try:
        handle = files.open(path, writable=False)
    except (FileNotFoundError, IsADirectoryError):
        return b""
    with closing(handle):
        return bytes(read_part(handle, 0, size_bytes))


@contextmanager
def lock_held(files: Files, root: Path) -> Iterator[HeldLock]:
    """Holds the lock of a store while the block runs.

    Raises:
        StoreLockedError: Another process writes to the store.
    """
    lock = files.lock(root)
    try:
        yield lock
    finally:
        lock.release()
