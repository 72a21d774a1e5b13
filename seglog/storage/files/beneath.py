"""Opens folders below an open folder: no name on the path may be a link or lead out of it.

Linux resolves a whole path in this way with ``openat2`` (``RESOLVE_BENEATH``, ``RESOLVE_NO_SYMLINKS``,
``RESOLVE_NO_MAGICLINKS``), through the C kernel. Without a compiler, without that call (Linux before 5.6) or
without permission to use it (a seccomp filter), the names are opened one by one, none through a link.
Both ways are safe if another process replaces folders by links meanwhile; they differ only in speed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from typing import Final

from seglog.storage.kernels.open_beneath import native_open_beneath

PATH_ONLY: Final = getattr(os, "O_PATH", os.O_RDONLY)
"""Opens a folder only as a base for paths; needs no permission to read the folder."""
FOLDER_FLAGS: Final = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_REFUSED: Final = frozenset({errno.ENOSYS, errno.EPERM, errno.EINVAL})

Opener = Callable[[int, Sequence[str], int], int]
"""Takes a folder's descriptor, names below it, and ``os.O_PATH`` or ``os.O_RDONLY``; returns a descriptor."""


def walk_beneath(folder: int, names: Sequence[str], access: int) -> int:
    """Opens a folder name by name.

    Args:
        folder: Descriptor of the folder that the path begins in.
        names: Names of folders, each in the one before; at least one.
        access: ``os.O_PATH`` or ``os.O_RDONLY``, for the last folder.

    Raises:
        OSError: ``ENOENT``; ``ELOOP`` or ``ENOTDIR`` for a name that is no folder.
    """
    at = folder
    try:
        for number, name in enumerate(names, 1):
            flags = (access if number == len(names) else PATH_ONLY) | FOLDER_FLAGS
            below = os.open(name, flags, dir_fd=at)
            # In this order an interrupt closes no descriptor twice: its number may be another file's by then.
            previous, at = at, below
            if previous != folder:
                os.close(previous)
    except BaseException:
        if at != folder:
            os.close(at)
        raise
    return at


def openat2_beneath(folder: int, names: Sequence[str], access: int) -> int:
    """Opens a folder with ``openat2``; arguments and errors as of :func:`walk_beneath`."""
    if native_open_beneath is None:
        raise OSError(errno.ENOSYS, "there is no openat2 without the C kernel")
    return native_open_beneath(folder, os.fsencode("/".join(names)), access | FOLDER_FLAGS)


def choose_opener(folder: int) -> Opener:
    """Returns the opener that works in this process; ``folder`` is the descriptor of any folder."""
    try:
        os.close(openat2_beneath(folder, ["."], PATH_ONLY))
    except OSError as error:
        if error.errno in _REFUSED:
            return walk_beneath
        raise
    return openat2_beneath
