"""Refuses to write a file that the user names where the store is.

Links are resolved: what counts is the file that a write would reach, not the words of its path.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from seglog.errors import InvalidArgumentError
from seglog.storage.store_root import StoreRoot

_HELP = "name a file outside of the store"


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
            raise InvalidArgumentError(f"{target} would lie in the store {files.path}", help=_HELP)
    try:
        status = real.stat()
    except OSError:  # there is no such file, so that it has no other name
        return
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        name = _name_in(files, status)
        if name is not None:
            raise InvalidArgumentError(f"{target} is another name of {name}, a file of the store", help=_HELP)


@contextmanager
def new_file_outside(files: StoreRoot, target: Path | None) -> Iterator[BinaryIO | None]:
    """Makes a new file outside of a store, and opens it once; None for no file.

    What is written goes to the file that was made, whatever becomes of its path meanwhile. A block that ends
    with an error leaves no file.

    Args:
        files: The files of the store.
        target: The file; its folders are made.

    Raises:
        InvalidArgumentError: It exists already, or is in the store.
    """
    if target is None:
        yield None
        return
    check_outside(files, target)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(
            target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666
        )
    except FileExistsError:
        raise InvalidArgumentError(f"{target} exists already", help="name a new file") from None
    with open(descriptor, "wb") as file:
        made = os.fstat(descriptor)
        try:
            # A folder of the path may have become a link since it was looked at.
            if _name_in(files, made) is not None:
                raise InvalidArgumentError(f"{target} would lie in the store {files.path}", help=_HELP)
            yield file
        except BaseException:
            with suppress(OSError):
                if os.path.samestat(target.lstat(), made):
                    target.unlink()
            raise


def _name_in(files: StoreRoot, wanted: os.stat_result) -> Path | None:
    """Returns the path of a file in a store, None if it is not there."""
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
