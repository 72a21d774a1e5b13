"""Refuses to write a user's output file inside of the store, or in a folder that cannot be written.

Links are resolved: the file that a write would reach counts, not the text of its path.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from seglog.errors import FullError, InvalidArgumentError
from seglog.storage.files.os_errors import explain_os_error, is_full
from seglog.storage.files.store_root import StoreRoot

_HELP = "name a file outside of the store"
_FULL_HELP = "free space there, or name a file on another file system"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def check_outside(files: StoreRoot, target: Path) -> None:
    """Refuses a file that is in a store, or is another name of a file in it.

    Args:
        files: The files of the store.
        target: The file that would be written; it need not exist.

    Raises:
        InvalidArgumentError: It is in the store.
    """
    real = Path(os.path.realpath(target))
    for folder in (files.path, *(files.path / name for name in files.follow)):
        if any(_is_same(above, folder) for above in (real, *real.parents)):
            raise InvalidArgumentError(f"{target} would be in the store {files.path}", help=_HELP)
    try:
        status = real.stat()
    except OSError:  # the file does not exist, so it has no other name
        return
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        name = _name_in(files, status)
        if name is not None:
            raise InvalidArgumentError(f"{target} is another name of {name}, a file of the store", help=_HELP)


def check_writable(folder: Path) -> None:
    """Refuses a folder in which no file can be created, before a long operation starts.

    Args:
        folder: The folder; if it does not exist, its nearest existing parent is checked.

    Raises:
        ReadOnlyError: Its file system is mounted read-only.
        StoreError: Its permissions forbid it.
    """
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if os.access(there, os.W_OK | os.X_OK):
        return
    code = errno.EROFS if os.statvfs(there).f_flag & os.ST_RDONLY else errno.EACCES
    raise explain_os_error(OSError(code, os.strerror(code), str(there)))


@contextmanager
def new_file_outside(
    files: StoreRoot, target: Path, *, replace: bool = False, advice: str = "name a new file"
) -> Iterator[BinaryIO]:
    """Creates a new file outside of a store, and opens it once.

    All bytes are written to the file that was created, even if its path changes meanwhile. A block that ends
    with an error leaves no new file, and an old file unchanged.

    Args:
        files: The files of the store.
        target: The file; its folders are created.
        replace: Whether the file replaces an existing one, once it is complete.
        advice: Advice of the error for an existing file that is not replaced.

    Raises:
        InvalidArgumentError: The file exists and must not be replaced, is no regular file, or is in the
            store.
    """
    check_outside(files, target)
    target.parent.mkdir(parents=True, exist_ok=True)
    path = _replacement(target) if replace else target
    try:
        descriptor = os.open(path, _NEW, 0o666)
    except FileExistsError:
        raise InvalidArgumentError(f"{target} exists already", help=advice) from None
    made = os.fstat(descriptor)
    try:
        with open(descriptor, "wb") as file:
            _check_made(files, made, target)
            yield file
        if path != target:
            path.replace(target)
    except BaseException as error:
        with suppress(OSError):
            if os.path.samestat(path.lstat(), made):
                path.unlink()
        if isinstance(error, OSError) and is_full(error):
            raise FullError(f"{target}: the file system is full", help=_FULL_HELP) from error
        raise


def open_outside(files: StoreRoot, target: Path) -> BinaryIO:
    """Opens a file outside of a store for writing, empty; creates it and its missing folders.

    Args:
        files: The files of the store.
        target: The file.

    Raises:
        InvalidArgumentError: It is no regular file, or is in the store.
    """
    check_outside(files, target)
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidArgumentError(f"{target} is no regular file", help=_HELP)
        _check_made(files, status, target)
        os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return open(descriptor, "wb")


def _replacement(target: Path) -> Path:
    """Returns the path of a new file that will replace another one.

    Raises:
        InvalidArgumentError: The other one is no regular file.
    """
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        return target
    if not stat.S_ISREG(mode):
        raise InvalidArgumentError(f"{target} is no regular file", help="name another file")
    return target.with_name(f".seglog-{secrets.token_hex(4)}.part")


def _check_made(files: StoreRoot, made: os.stat_result, target: Path) -> None:
    """Refuses an open file that is in a store: a folder of its path may have been replaced by a link."""
    if _name_in(files, made) is not None:
        raise InvalidArgumentError(f"{target} would be in the store {files.path}", help=_HELP)


def _name_in(files: StoreRoot, wanted: os.stat_result) -> Path | None:
    """Returns the path of a file in a store, None if the store does not have it."""
    folders = [files.path, *(files.path / name for name in files.follow)]
    while folders:
        folder = folders.pop()
        for name, status in files.scan(folder):
            if os.path.samestat(status, wanted):
                return folder / name
            if stat.S_ISDIR(status.st_mode):
                folders.append(folder / name)
    return None


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist
        return False
