"""Refuses to write a file that the user names where the store is.

Links are resolved: what counts is the file that a write would reach, not the words of its path.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

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


def _name_in(files: StoreRoot, wanted: os.stat_result) -> Path | None:
    """Returns the path of a file in a store, None if it is not there."""
    folders = [files.path]
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
