"""Whether others use a folder: a lock that all have together, and that refuses nothing.

It is on the folder, so it has no file. The system gives it back once who has it ends it or dies. Programs
that do not ask for it, such as clients in Java, have none and are not seen.

Truth: none; where a file system has no such locks none is seen.
"""

from __future__ import annotations

import fcntl
import os
import weakref
from contextlib import suppress
from pathlib import Path

from seglog.forked import abandon_in_children


class FolderUse:
    """A use of a folder, which is made where it is missing; it lasts until :meth:`end`, or as long as this.

    Args:
        folder: The folder. Where it cannot be opened nothing is said: who needs its files will hear of that.

    Attributes:
        is_shared: Whether another process, or another use in this one, had it when this began.
    """

    def __init__(self, folder: Path) -> None:
        self.is_shared = False
        self._end: weakref.finalize[[int], FolderUse] | None = None
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._end = weakref.finalize(self, os.close, descriptor)
            abandon_in_children(self, FolderUse.end)  # a child that lives on would have it for its parent
            self.is_shared = not _is_alone(descriptor)

    def end(self) -> None:
        """Ends it; a second call does nothing."""
        if self._end is not None:
            self._end()


def _is_alone(descriptor: int) -> bool:
    """Takes the lock; returns whether no other had it: then it can be had alone for a moment."""
    is_alone = True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        is_alone = False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:  # another one is at the same, which has it then
        is_alone = False
    return is_alone
