"""Durability: how far the log is on the disk, and who waits for it.

Group commit: of all threads that need the log on the disk, one syncs for everyone who came before it
began; the others wait, and one of them leads the next round. No lock of the store is held meanwhile.

After one failed sync nothing is acknowledged any more. The kernel reports a lost write once and then
forgets it, so trying again would acknowledge what is not there; only opening the store again, which reads
what really is on the disk, helps.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable

from seglog.errors import StoreFailedError


class Durability(enum.Enum):
    """When a put returns, and what it survives then."""

    ASYNC = "async"
    """In the page cache: survives the death of the process, not of the machine."""
    SYNC = "sync"
    """On the disk: survives both."""


class GroupCommit:
    """Brings a growing log to the disk for many threads at once.

    Args:
        sync: Brings ``[start, end)`` to the disk; an ``OSError`` of it is final.
        written: Returns how far the log is written now.
        flushed: How far it is on the disk already.
    """

    def __init__(self, sync: Callable[[int, int], None], written: Callable[[], int], flushed: int) -> None:
        self._sync = sync
        self._written = written
        self._turn = threading.Condition()
        self._leading = False
        self._flushed = flushed
        self._failure: OSError | None = None

    @property
    def flushed(self) -> int:
        """Everything below this is on the disk."""
        return self._flushed

    def check(self) -> None:
        """Does nothing while syncs work.

        Raises:
            StoreFailedError: One failed.
        """
        if self._failure is not None:
            raise StoreFailedError(
                f"a flush of the log failed ({self._failure.strerror}); nothing was acknowledged since"
            ) from self._failure

    def fail(self, error: OSError) -> None:
        """Closes the latch for a failure seen elsewhere, such as in a sync of a queue."""
        with self._turn:
            self._failure = self._failure or error
            self._turn.notify_all()

    def ensure(self, phy_offset: int) -> None:
        """Returns once everything below ``phy_offset`` is on the disk.

        Raises:
            StoreFailedError: This sync or one before it failed.
        """
        with self._turn:
            while self._flushed < phy_offset:
                self.check()
                if not self._leading:
                    self._leading = True
                    break
                self._turn.wait()
            else:
                return
        self._lead()
        self.check()

    def _lead(self) -> None:
        start = end = self._flushed
        try:
            written = self._written()
            self._sync(start, written)
            end = written
        except OSError as error:
            self._failure = error
        finally:
            with self._turn:
                self._leading = False
                self._flushed = end
                self._turn.notify_all()
