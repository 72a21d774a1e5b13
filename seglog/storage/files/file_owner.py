"""Owner and rights of what root creates in a store: those of the folder that it is in.

An operator repairs as root what the broker's user has to open afterwards. Anyone else can only create files
of their own, with the rights that their umask leaves.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from seglog.storage.files.beneath import FOLDER_FLAGS

_FILE_RIGHTS: Final = 0o666
_ALL_RIGHTS: Final = 0o7777
_ROOT: Final = 0


def give_file(descriptor: int, folder: int) -> None:
    """Gives a file that was just created the owner and the rights of its folder, if root creates it.

    Args:
        descriptor: The open file.
        folder: Descriptor of its folder.
    """
    _give(descriptor, folder, _FILE_RIGHTS)


def give_folder(name: str, folder: int) -> None:
    """Does the same for a folder that was just created.

    Args:
        name: Its name.
        folder: Descriptor of the folder that it is in.
    """
    if os.geteuid() == _ROOT:
        descriptor = os.open(name, FOLDER_FLAGS, dir_fd=folder)
        try:
            _give(descriptor, folder, _ALL_RIGHTS)
        finally:
            os.close(descriptor)


def give_copy(copy: int, source: int) -> None:
    """Gives a copy that was just created the owner and the rights of its source, if root creates it.

    Args:
        copy: Descriptor of the copy.
        source: Descriptor of the source.
    """
    _take_after(copy, os.fstat(source), _ALL_RIGHTS)


def _give(descriptor: int, folder: int, rights: int) -> None:
    status = os.fstat(folder)
    if status.st_uid != _ROOT:
        _take_after(descriptor, status, rights)


def _take_after(descriptor: int, other: os.stat_result, rights: int) -> None:
    if os.geteuid() == _ROOT:
        with suppress(OSError):  # a file system without owners, or one that maps root to someone else
            os.fchown(descriptor, other.st_uid, other.st_gid)
            os.fchmod(descriptor, other.st_mode & rights)
