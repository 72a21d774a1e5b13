"""Whether other processes use a folder: a shared lock, which refuses nothing.

The lock is on the folder itself, so it needs no file. The system releases it when its holder ends it or dies.
Programs that do not take the lock, such as clients in Java, are not seen.

Truth: none; on a file system without such locks no use is seen.
"""

from __future__ import annotations

import fcntl
import os
import weakref
from contextlib import suppress
from pathlib import Path

from seglog.forked import abandon_in_children


class FolderUse:
    """A use of a folder, which is created if missing; lasts until :meth:`end` or the end of this object.

    Args:
        folder: The folder. If it cannot be opened, no error is raised: the first access to its files raises
            one.

    Attributes:
        is_shared: Whether another process, or another use in this one, held the lock when this use began.
    """

    def __init__(self, folder: Path) -> None:
        self.is_shared = False
        self._end: weakref.finalize[[int], FolderUse] | None = None
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._end = weakref.finalize(self, os.close, descriptor)
            abandon_in_children(self, FolderUse.end)  # a forked child would keep its parent's lock
            self.is_shared = not _is_alone(descriptor)

    def end(self) -> None:
        """Ends the use; a second call does nothing."""
        if self._end is not None:
            self._end()


def _is_alone(descriptor: int) -> bool:
    """Takes the lock; returns whether no other held it: then it can be taken exclusively for a moment."""
    is_alone = True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        is_alone = False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:  # another process does the same now, and holds the exclusive lock
        is_alone = False
    return is_alone
