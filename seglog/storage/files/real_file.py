"""One open file of the operating system; positions are bytes from its start.

Errors of calls by its descriptor name the file.
"""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path

from seglog.storage.files.os_errors import translate, with_path


def read_fully(descriptor: int, buffer: memoryview, position: int) -> int:
    """Reads as often as it takes; returns how many bytes, fewer only at the end."""
    done = 0
    while done < len(buffer) and (count := os.preadv(descriptor, [buffer[done:]], position + done)):
        done += count
    return done


def write_fully(descriptor: int, data: bytes | bytearray | memoryview, position: int) -> None:
    """Writes as often as it takes."""
    rest = memoryview(data)
    while rest:
        count = os.pwrite(descriptor, rest, position)
        rest, position = rest[count:], position + count


class RealFile:
    """A file of the operating system."""

    __slots__ = ("_descriptor", "_path", "_writable")

    def __init__(
        self, path: Path, flags: int, folder: int | None = None, descriptor: int | None = None
    ) -> None:
        """Opens a file.

        Args:
            path: What it is called.
            flags: Of ``open``.
            folder: Descriptor of the folder that it is in; None to find that by the path.
            descriptor: Its own, where it was opened already.
        """
        self._path = path
        self._writable = flags & os.O_RDWR != 0
        if descriptor is not None:
            self._descriptor = descriptor
            return
        name = path if folder is None else path.name
        self._descriptor = os.open(name, flags | os.O_CLOEXEC, 0o644, dir_fd=folder)

    @property
    def size_bytes(self) -> int:
        """Length of the file now, asked for without its times; see :meth:`MappedFile.check_held`."""
        return os.lseek(self._descriptor, 0, os.SEEK_END)

    @property
    def descriptor(self) -> int:
        """That of the operating system."""
        return self._descriptor

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Reads with ``preadv``, as often as it takes."""
        try:
            return read_fully(self._descriptor, buffer, position)
        except OSError as error:
            raise with_path(error, self._path) from error

    def write_at(self, data: bytes | bytearray | memoryview, position: int) -> None:
        """Writes with ``pwrite``, as often as it takes."""
        try:
            write_fully(self._descriptor, data, position)
        except OSError as error:
            raise translate(error, self._path) from error

    def next_data(self, position: int) -> int | None:
        """Asks with ``SEEK_DATA``; a system without it counts everything as data."""
        if not hasattr(os, "SEEK_DATA"):
            return position if position < self.size_bytes else None
        try:
            return os.lseek(self._descriptor, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return None
            if error.errno == errno.EINVAL:
                return position if position < self.size_bytes else None
            raise

    def set_size(self, size_bytes: int) -> None:
        """Cuts or extends with ``ftruncate``."""
        try:
            os.ftruncate(self._descriptor, size_bytes)
        except OSError as error:
            raise translate(error, self._path) from error

    def reserve(self, position: int, size_bytes: int) -> None:
        """Reserves with ``posix_fallocate``; a system without it writes nothing and relies on luck."""
        if not hasattr(os, "posix_fallocate"):
            return
        try:
            os.posix_fallocate(self._descriptor, position, size_bytes)
        except OSError as error:
            raise translate(error, self._path) from error

    def map(self) -> memoryview:
        """Maps the whole file; the map keeps a descriptor of its own."""
        access = mmap.ACCESS_WRITE if self._writable else mmap.ACCESS_READ
        return memoryview(mmap.mmap(self._descriptor, 0, access=access))

    def sync(self) -> None:
        """``fdatasync``: releases the GIL, and covers what was written through any map of the file."""
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise with_path(error, self._path) from error

    def close(self) -> None:
        """Closes the descriptor."""
        os.close(self._descriptor)
