"""Files with several names: hard links for backups and branches, and copies in place of them.

A link is a second name for the same bytes, so a file with several names must not be written: whoever wants
to write breaks the link first, by a copy that takes the name over. :class:`~seglog.storage.files.RealFiles`
does so whenever it opens a file for writing. Times of change are kept: RocketMQ's retention goes by them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_CHUNK_BYTES: Final = 8 << 20
_UNFINISHED: Final = ".own"
_NO_LINKS: Final = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP)
"""Another file system, one without links, or too many of them."""


def break_link(path: Path) -> None:
    """Gives a file bytes of its own, durably; the other names keep the old ones.

    A copy that was not finished lies beside the folder: in it, it would keep RocketMQ from starting.
    """
    folder = path.parent
    if path.name.isdecimal():
        made = folder.with_name(f"{folder.name}-{path.name}{_UNFINISHED}")
    else:
        made = path.with_name(path.name + _UNFINISHED)
    made.unlink(missing_ok=True)
    try:
        copy_file(path, made)
        made.replace(path)
    except BaseException:
        made.unlink(missing_ok=True)
        raise
    sync_dir(folder)


def link_or_copy(source: Path, target: Path) -> bool:
    """Makes a second name for a file, or a copy where there can be none; returns whether it is a name."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        copy_file(source, target)
        return False
    # What was linked may be in the page cache only.
    descriptor = os.open(target, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return True


def copy_file(source: Path, target: Path, end: int | None = None) -> None:
    """Copies a file durably: holes stay holes, and its time of change is kept.

    Args:
        source: The file.
        target: Must not exist.
        end: Where its bytes end; behind them the copy is a hole, of the same length. None for all of it.
    """
    read = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        status = os.fstat(read)
        write = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            os.ftruncate(write, status.st_size)
            _copy_data(read, write, status.st_size if end is None else min(end, status.st_size))
            os.utime(write, ns=(status.st_atime_ns, status.st_mtime_ns))
            os.fsync(write)
        finally:
            os.close(write)
    finally:
        os.close(read)


def link_count(path: Path) -> int:
    """Returns how many names a file has."""
    return path.stat().st_nlink


@contextmanager
def kept_times(path: Path) -> Iterator[None]:
    """Gives a file the time of change back that it had before the block."""
    status = path.stat()
    yield
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def sync_dir(folder: Path) -> None:
    """Returns once the names in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy_data(read: int, write: int, end: int) -> None:
    at = 0
    while at < end:
        start, data_end = _next_data(read, at, end)
        for position in range(start, data_end, _CHUNK_BYTES):
            rest = memoryview(os.pread(read, min(_CHUNK_BYTES, data_end - position), position))
            while rest:
                count = os.pwrite(write, rest, position)
                rest, position = rest[count:], position + count  # noqa: PLW2901 - a short write goes on
        at = data_end


def _next_data(descriptor: int, at: int, end: int) -> tuple[int, int]:
    """Returns where data starts at or behind ``at`` and where it ends."""
    if not hasattr(os, "SEEK_DATA"):
        return at, end
    try:
        start = min(os.lseek(descriptor, at, os.SEEK_DATA), end)
        return start, min(os.lseek(descriptor, start, os.SEEK_HOLE), end)
    except OSError as error:
        if error.errno == errno.ENXIO:  # nothing but a hole is left
            return end, end
        if error.errno == errno.EINVAL:
            return at, end
        raise
