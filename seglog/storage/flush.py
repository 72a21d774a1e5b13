"""Durability: how far the log is on the disk, and who waits for it.

Group commit: of all who need the log on the disk, one syncs for everyone who came before it began; the
others wait, and one of them leads the next round. Threads lead themselves; for tasks of event loops a
thread of the store does, and each loop is told once a round, however many of its tasks wait. No lock of
the store is held meanwhile.

After one failed sync nobody is acknowledged any more: see :mod:`seglog.storage.latch`.
"""

from __future__ import annotations

import asyncio
import enum
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from seglog.errors import StoreFailedError
from seglog.storage.latch import Latch
from seglog.storage.on_demand import OnDemand

_Waiting = tuple[int, "asyncio.Future[None]"]


class Durability(enum.Enum):
    """When a put returns, and what it survives then."""

    ASYNC = "async"
    """In the page cache: survives the death of the process, not of the machine."""
    SYNC = "sync"
    """On the disk: survives both."""


class GroupCommit:
    """Brings a growing log to the disk for many threads and tasks at once.

    Args:
        sync: Brings ``[start, end)`` to the disk; an ``OSError`` of it is final.
        written: Returns how far the log is written now.
        flushed: How far it is on the disk already.
        latch: Closes with the first failure, of this or anything else.

    Thread rule: any thread; :meth:`future` only the one of its loop.
    """

    def __init__(
        self, sync: Callable[[int, int], None], written: Callable[[], int], flushed: int, latch: Latch
    ) -> None:
        self._sync = sync
        self._written = written
        self._latch = latch
        self._turn = threading.Condition()
        self._leading = False
        self._flushed = flushed
        self._waiting: dict[asyncio.AbstractEventLoop, list[_Waiting]] = {}
        self._leader = OnDemand("seglog-commit", self._lead_for_tasks)
        latch.on_close(self._wake)

    @property
    def flushed(self) -> int:
        """Everything below this is on the disk."""
        return self._flushed

    def ensure(self, phy_offset: int) -> None:
        """Returns once everything below ``phy_offset`` is on the disk.

        Raises:
            StoreFailedError: This sync, or anything before it, failed.
        """
        with self._turn:
            while self._flushed < phy_offset:
                self._latch.check()
                if not self._leading:
                    self._leading = True
                    break
                self._turn.wait()
            else:
                self._latch.check()
                return
        self._lead()
        self._latch.check()

    def future(self, phy_offset: int) -> asyncio.Future[None] | None:
        """Returns what is done once everything below ``phy_offset`` is on the disk; None if it is.

        The future belongs to the running loop. Cancelling it stops nothing.

        Raises:
            StoreFailedError: Something failed before; the future raises it if it does from now on.
        """
        loop = asyncio.get_running_loop()
        with self._turn:
            self._latch.check()
            if self._flushed >= phy_offset:
                return None
            future: asyncio.Future[None] = loop.create_future()
            self._waiting.setdefault(loop, []).append((phy_offset, future))
        self._leader.ask()
        return future

    def close(self) -> None:
        """Ends the thread for tasks, after everything was synced or the latch closed."""
        self._leader.stop()
        self._tell()

    def _lead(self) -> None:
        start = end = self._flushed
        try:
            written = self._written()
            self._sync(start, written)
            end = written
        except OSError as error:
            self._latch.fail(error, "the sync of the log")
        except StoreFailedError:
            pass  # another sync failed meanwhile, and this one was not even tried
        finally:
            with self._turn:
                self._leading = False
                self._flushed = end
                self._turn.notify_all()
            self._tell()

    def _lead_for_tasks(self) -> None:
        while self._waiting and not self._latch.is_closed:
            with suppress(StoreFailedError):  # the futures tell it
                self.ensure(self._written())
            self._tell()
        self._tell()

    def _tell(self) -> None:
        """Tells each loop, in one call, which of its tasks wait no more."""
        if not self._waiting:
            return
        with self._turn:
            reached = None if self._latch.is_closed else self._flushed
            due: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
            for loop, waiting in list(self._waiting.items()):
                later = [] if reached is None else [entry for entry in waiting if entry[0] > reached]
                if len(later) == len(waiting):
                    continue
                due[loop] = [future for end, future in waiting if reached is None or end <= reached]
                if later:
                    self._waiting[loop] = later
                else:
                    del self._waiting[loop]
        for loop, futures in due.items():
            with suppress(RuntimeError):  # the loop was closed, and nobody waits in it any more
                loop.call_soon_threadsafe(self._resolve, futures)

    def _resolve(self, futures: Sequence[asyncio.Future[None]]) -> None:
        for future in futures:
            if future.done():  # its task was cancelled
                continue
            if self._latch.is_closed:
                future.set_exception(self._latch.error())
            else:
                future.set_result(None)

    def _wake(self) -> None:
        """The latch closed: whoever waits is told, but by a thread that is in no lock of ours."""
        with self._turn:
            self._turn.notify_all()
        self._tell()
