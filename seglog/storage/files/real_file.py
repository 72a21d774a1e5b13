"""One open file of the operating system; positions are bytes from its start.

Errors of calls with its descriptor have the file's path.
"""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path

from seglog.storage.files.os_errors import translate, with_path


def read_fully(descriptor: int, buffer: memoryview, position: int) -> int:
    """Reads until the buffer is full; returns the number of bytes, fewer only at the end of the file."""
    done = 0
    while done < len(buffer) and (count := os.preadv(descriptor, [buffer[done:]], position + done)):
        done += count
    return done


def write_fully(descriptor: int, data: bytes | bytearray | memoryview, position: int) -> None:
    """Writes until all bytes are written."""
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
            path: Its path.
            flags: Flags of ``open``.
            folder: Descriptor of its folder; None to use the path.
            descriptor: Its descriptor, if it is open already.
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
        """Length of the file now, read without its times; see :meth:`MappedFile.check_held`."""
        return os.lseek(self._descriptor, 0, os.SEEK_END)

    @property
    def descriptor(self) -> int:
        """The descriptor of the operating system."""
        return self._descriptor

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Reads with ``preadv``, until the buffer is full or the file ends."""
        try:
            return read_fully(self._descriptor, buffer, position)
        except OSError as error:
            raise with_path(error, self._path) from error

    def write_at(self, data: bytes | bytearray | memoryview, position: int) -> None:
        """Writes with ``pwrite``, until all bytes are written."""
        try:
            write_fully(self._descriptor, data, position)
        except OSError as error:
            raise translate(error, self._path) from error

    def next_data(self, position: int) -> int | None:
        """Finds data with ``SEEK_DATA``; on a system without it everything counts as data."""
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
        """Allocates with ``posix_fallocate``; does nothing on a system without it."""
        if not hasattr(os, "posix_fallocate"):
            return
        try:
            os.posix_fallocate(self._descriptor, position, size_bytes)
        except OSError as error:
            raise translate(error, self._path) from error

    def map(self) -> memoryview:
        """Maps the whole file; the map keeps a descriptor of its own."""
        access = mmap.ACCESS_WRITE if self._writable else mmap.ACCESS_READ
        try:
            return memoryview(mmap.mmap(self._descriptor, 0, access=access))
        except OSError as error:
            raise with_path(error, self._path) from error

    def sync(self) -> None:
        """``fdatasync``: releases the GIL, and covers what was written through any map of the file."""
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise with_path(error, self._path) from error

    def close(self) -> None:
        """Closes the descriptor; a second call, as one after an interrupt, does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:  # its number may be another file's by now
            os.close(descriptor)
