"""Files with several names: hard links for backups and branches, and copies in place of them.

A link is a second name for the same bytes, so a file with several names must not be written: a writer first
breaks the link, by a copy that replaces the name. Real files do so whenever a file is opened for writing. The
copy keeps the time of change, because RocketMQ's retention uses it.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from seglog.storage.files.file_kinds import FILE, kind_error, kind_of
from seglog.storage.files.file_owner import give_copy
from seglog.storage.files.real_file import write_fully

Place = tuple[int | None, str]
"""Descriptor of a folder and a name in it; or None and a whole path."""

_CHUNK_BYTES: Final = 8 << 20
_UNFINISHED: Final = ".own"
_SAFE: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_LINKS: Final = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP)
"""Errors of a link: another file system, a file system without links, or too many links."""


def unfinished_path(path: Path) -> Path:
    """Returns the path of the copy of a file until it is finished.

    For a file whose name is a number it is beside the folder: in the folder it would keep RocketMQ from
    starting.
    """
    if path.name.isdecimal():
        return path.parent.with_name(f"{path.parent.name}-{path.name}{_UNFINISHED}")
    return path.with_name(path.name + _UNFINISHED)


def break_link(file: Place, made: Place) -> None:
    """Gives a file bytes of its own, durably; the other names keep the old ones.

    Args:
        file: The file.
        made: Path of its copy until it is finished, on the same file system.
    """
    folder, name = file
    made_folder, made_name = made
    with suppress(FileNotFoundError):
        os.unlink(made_name, dir_fd=made_folder)
    try:
        _copy_whole(file, made)
        os.replace(made_name, name, src_dir_fd=made_folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(made_name, dir_fd=made_folder)
        raise
    if folder is None:
        sync_dir(Path(name).parent)


def _copy_whole(source: Place, target: Place) -> None:
    read = os.open(source[1], os.O_RDONLY | _SAFE, dir_fd=source[0])
    try:
        write = os.open(target[1], os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, 0o644, dir_fd=target[0])
        try:
            copy_bytes(read, write)
            give_copy(write, read)
        finally:
            os.close(write)
    finally:
        os.close(read)


def can_link(error: OSError) -> bool:
    """Returns False if the error shows that links are not possible here; True for any other error."""
    return error.errno not in _NO_LINKS


def copy_bytes(read: int, write: int, end: int | None = None) -> None:
    """Copies an open file into an empty one durably: holes stay holes, and its time of change is kept.

    Args:
        read: Descriptor of the file.
        write: Descriptor of the copy.
        end: End of the bytes to copy; behind it the copy is a hole, up to the same length. None for all
            bytes.

    Raises:
        FileKindError: The file is no regular file.
    """
    status = os.fstat(read)
    if not stat.S_ISREG(status.st_mode):
        raise kind_error("what was to be copied", kind_of(status.st_mode), FILE)
    os.ftruncate(write, status.st_size)
    _copy_data(read, write, status.st_size if end is None else min(end, status.st_size))
    os.utime(write, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.fsync(write)


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
            write_fully(write, os.pread(read, min(_CHUNK_BYTES, data_end - position), position), position)
        at = data_end


def _next_data(descriptor: int, at: int, end: int) -> tuple[int, int]:
    """Returns start and end of the next data at or behind ``at``."""
    if not hasattr(os, "SEEK_DATA"):
        return at, end
    try:
        start = min(os.lseek(descriptor, at, os.SEEK_DATA), end)
        return start, min(os.lseek(descriptor, start, os.SEEK_HOLE), end)
    except OSError as error:
        if error.errno == errno.ENXIO:  # only a hole follows
            return end, end
        if error.errno == errno.EINVAL:
            return at, end
        raise
