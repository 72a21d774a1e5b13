"""Translates errors of the operating system into our errors.

Inside the engine an ``OSError`` stays an ``OSError`` as long as a caller may act on it; before it reaches the
caller of a :class:`~seglog.storage.store.MessageStore` this module translates it.
"""

from __future__ import annotations

import errno
import os
from contextlib import ContextDecorator
from pathlib import Path
from typing import Final

from seglog.errors import (
    FullError,
    NotAStoreError,
    NotFoundError,
    ReadOnlyError,
    StoreError,
    StoreFailedError,
)

_BY_ERRNO: Final[dict[int, tuple[type[StoreError], str, str]]] = {
    errno.ENOSPC: (FullError, "the file system is full", ""),
    errno.EDQUOT: (FullError, "the disk quota is used up", ""),
    errno.EROFS: (
        ReadOnlyError,
        "the file system is read-only",
        "reading commands work here; to write, use a file system that is mounted for writing",
    ),
    errno.EACCES: (
        StoreError,
        "permission denied",
        "run as the owner of the store, or change its permissions",
    ),
    errno.EPERM: (StoreError, "not permitted", "run as the owner of the store, or change its permissions"),
    errno.ENOENT: (NotFoundError, "no such file or folder", ""),
    errno.ENOTDIR: (NotAStoreError, "not a folder", ""),
    errno.EEXIST: (NotAStoreError, "something else has that name", ""),
    errno.EMFILE: (StoreError, "too many open files", "raise the limit with `ulimit -n`"),
    errno.ENOMEM: (
        StoreError,
        "no memory, or no address space, for a map of the file",
        (
            "raise the limit (`ulimit -v`; of a container its memory), or free memory; a new store with"
            " small=True has files of 16 MiB"
        ),
    ),
    errno.EIO: (StoreFailedError, "the disk failed", ""),
}
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_PASSING: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR})


def explain_os_error(error: OSError) -> StoreError:
    """Returns our error for an error of the operating system."""
    reason = error.strerror or str(error)
    kind, text, advice = _BY_ERRNO.get(error.errno or 0, (StoreError, reason, ""))
    where = f"{os.fsdecode(error.filename)}: " if error.filename is not None else ""
    return kind(f"{where}{text}", help=advice or None)


def is_passing(error: OSError) -> bool:
    """Returns whether the error is a temporary lack of resources, and not a failure of the disk."""
    return error.errno in _PASSING


class _Explained(ContextDecorator):
    """The block of :func:`explained`."""

    __slots__ = ()

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError):
            raise explain_os_error(error) from error


_EXPLAINED: Final = _Explained()  # it has no state, and each write of a commit enters it


def explained() -> _Explained:
    """Translates an ``OSError`` of the block into our error."""
    return _EXPLAINED


def translate(error: OSError, path: Path) -> Exception:
    """Returns the error to raise for an error of the operating system: FullError if no space is left."""
    if is_full(error):
        return FullError(f"{path}: no space left for the next write")
    return with_path(error, path)


def is_full(error: OSError) -> bool:
    """Returns whether a write found no space."""
    return error.errno in _FULL


def with_path(error: OSError, path: Path) -> OSError:
    """Returns an error of the operating system with a path; calls with a descriptor raise it without one."""
    if error.filename is None:
        error.filename = str(path)
    return error
