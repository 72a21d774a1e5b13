"""Durability: the offset up to which the log is on the disk, and the callers that wait for it.

Group commit: one caller, the leader, syncs the log for all callers that came before its sync began. The other
callers wait, and one of them leads the next round. A thread that calls leads itself. Each waiting thread has
a lock of its own: if all threads waited at one condition, they would all contend for its lock when it is
notified. The threads that a round releases wake each other one by one: if all woke at once, they would all
contend for the GIL. For tasks of event loops a thread of the store leads. A loop requests a round when all
its tasks that can put have put, and the loop is notified once per round, however many of its tasks wait.
Neither the append lock nor the lock of this class is held during a sync.

After one failed sync no put is acknowledged any more: see :mod:`seglog.storage.files.latch`.
"""

from __future__ import annotations

import asyncio
import enum
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, TypeVar

from seglog.errors import StoreFailedError
from seglog.storage.files.latch import Latch
from seglog.storage.threads.on_demand import OnDemand

R = TypeVar("R")
_Task = tuple[int, "Sequence[asyncio.Future[Any]]", Sequence[object]]
"""The offset below which the log must be on the disk, the futures to resolve then, and their results."""
_Listener = tuple[int, Callable[[StoreFailedError | None], None]]


class _Caller:
    """A thread that needs the log on the disk: the thread leads a round, or waits while another thread syncs.

    Attributes:
        phy_offset: The thread needs the log on the disk below this offset.
        waking: The callers that this thread wakes once it is awake, has led a round, or is interrupted.
    """

    __slots__ = ("_turn", "phy_offset", "waking")

    def __init__(self, phy_offset: int) -> None:
        self.phy_offset = phy_offset
        self.waking: tuple[_Caller, ...] = ()
        self._turn = threading.Lock()
        self._turn.acquire()

    def wait(self) -> None:
        """Waits without holding the GIL; contends with no other waiter."""
        self._turn.acquire()  # held since __init__: blocks until go() releases it
        self.wake_others()

    def go(self) -> None:
        """Ends the wait."""
        # Released already: the thread that woke this caller was interrupted and then woke it again.
        with suppress(RuntimeError):
            self._turn.release()

    def wake_others(self) -> None:
        """Ends the waits of the callers in ``waking``."""
        for each in self.waking:
            each.go()
        self.waking = ()  # cleared last: an interrupt in the loop must not lose a caller; go() may run twice


class Durability(enum.Enum):
    """When a put returns: once the message is in the page cache, or on the disk."""

    ASYNC = "async"
    """In the page cache: survives the death of the process, not of the machine."""
    SYNC = "sync"
    """On the disk: survives both."""


class GroupCommit:
    """Brings a growing log to the disk for many threads and tasks at once.

    Args:
        sync: Syncs the log's bytes ``[start, end)``; after an ``OSError`` it is never tried again.
        written: Returns the physical offset at which the log ends now.
        flushed: The log is on the disk already below this offset.
        latch: Closes with the first failure of a sync, here or elsewhere in the store.

    Thread rule: any thread; :meth:`future` only from the thread of its event loop.
    """

    def __init__(
        self, sync: Callable[[int, int], None], written: Callable[[], int], flushed: int, latch: Latch
    ) -> None:
        self._sync = sync
        self._written = written
        self._latch = latch
        self._turn = threading.Lock()  # held for a few steps only, never during a wait or a sync
        # The leader, and the callers that wait. The pair is replaced in one assignment, so that an interrupt
        # never leaves a new leader with the old list of waiting callers.
        self._round: tuple[_Caller | None, list[_Caller]] = (None, [])
        self._flushed = flushed
        self._listeners: list[_Listener] = []
        self._tasks: dict[asyncio.AbstractEventLoop, list[_Task]] = {}
        self._asked: set[asyncio.AbstractEventLoop] = set()
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
        caller = _Caller(phy_offset)
        try:
            with self._turn:
                self._latch.check()
                if self._flushed >= phy_offset:
                    return
                leader, followers = self._round
                # A leader that already reads the end of the log may sync less than this caller needs:
                # _pass_on decides by phy_offset whether this caller is released or waits on.
                if leader is None:
                    self._round = (caller, followers)
                else:
                    followers.append(caller)
            if self._round[0] is not caller:
                caller.wait()
            # True for the first caller of a round, and for a waiting caller that the last leader chose as the
            # next one. All other callers were released: synced, or failed.
            if self._round[0] is caller:
                self._lead(caller)
        except BaseException:
            self._give_up(caller)  # Ctrl-C: no other thread may wait for a leader that has left
            raise
        self._latch.check()  # a waiter also wakes when the latch closes, with its bytes not on the disk

    def future(self, phy_offset: int) -> asyncio.Future[None] | None:
        """Returns a future that is done once everything below ``phy_offset`` is on the disk; None if it is.

        The future belongs to the running loop. Cancelling it stops no sync.

        Raises:
            StoreFailedError: A sync failed earlier. After a later failure the future raises it.
        """
        loop = asyncio.get_running_loop()
        with self._turn:
            self._latch.check()
            if self._flushed >= phy_offset:
                return None
            future: asyncio.Future[None] = loop.create_future()
            tasks = self._tasks.get(loop)
            if tasks is None:
                tasks = self._tasks[loop] = []
            tasks.append((phy_offset, (future,), (None,)))
            if loop in self._asked:
                return future
            self._asked.add(loop)
        loop.call_soon(self._ask, loop)  # runs after all tasks that can put now: one sync covers their puts
        return future

    def settle(
        self,
        loop: asyncio.AbstractEventLoop,
        phy_offset: int,
        futures: Sequence[asyncio.Future[R]],
        results: Sequence[R],
    ) -> None:
        """Gives futures their results once everything below ``phy_offset`` is on the disk; requests the sync.

        After a failure the futures that are not done get the error instead.

        Args:
            loop: The loop of all the futures.
            phy_offset: Physical offset below which the log must be on the disk.
            futures: The futures that tasks await.
            results: The result of each future.
        """
        task = phy_offset, futures, results
        with self._turn:
            is_due = self._flushed >= phy_offset or self._latch.is_closed
            if not is_due:
                self._tasks.setdefault(loop, []).append(task)
        if not is_due:
            self._leader.ask()
        else:
            with suppress(RuntimeError):  # the loop was closed, and no task waits in it any more
                loop.call_soon_threadsafe(self._resolve, (task,))

    def notify(self, phy_offset: int, told: Callable[[StoreFailedError | None], None]) -> bool:
        """Calls a function once everything below ``phy_offset`` is on the disk.

        No sync starts for it before :meth:`ask`: the caller requests one sync for many functions.

        Args:
            phy_offset: Physical offset below which the log must be on the disk.
            told: Called once, by any thread, with the error if the disk failed; must neither wait nor raise.

        Returns:
            Whether the function will be called: False if the log is on the disk up to there already.

        Raises:
            StoreFailedError: A sync failed earlier.
        """
        with self._turn:
            self._latch.check()
            if self._flushed >= phy_offset:
                return False
            self._listeners.append((phy_offset, told))
            return True

    def ask(self) -> None:
        """Requests a sync of everything that is written now, by the thread that leads for tasks."""
        self._leader.ask()

    def close(self) -> None:
        """Ends the thread that leads for tasks, after everything was synced or the latch closed."""
        self._leader.stop()
        if self._tasks:
            self._lead_for_tasks()  # tasks that came while the thread stopped
        else:
            self._tell()

    def _lead(self, caller: _Caller) -> None:
        start = end = self._flushed  # what is reported if the sync does not succeed: nothing new
        try:
            written = self._written()  # before the sync: bytes appended during it may not be on the disk
            self._sync(start, written)
            end = written
        except OSError as error:
            self._latch.fail(error, "the sync of the log")
        except StoreFailedError:
            pass  # another sync failed meanwhile, so this one was not tried
        finally:  # after an interrupt as well: the waiting callers need a new leader
            self._pass_on(caller, end)
            self._tell()

    def _pass_on(self, caller: _Caller, flushed: int) -> None:
        """Releases the callers that need no more than ``flushed``, and makes one of the others the leader.

        Called again after an interrupt, it finishes the work of the first call.
        """
        with self._turn:
            leader, followers = self._round
            if leader is caller:  # otherwise the first call replaced the round, and only waking is left
                self._flushed, is_over = flushed, self._latch.is_closed
                later = [each for each in followers if not is_over and each.phy_offset > flushed]
                released = [each for each in followers if is_over or each.phy_offset <= flushed]
                # Each released caller wakes the one behind it. Set before the round is replaced: a caller
                # that is in no list and in no ``waking`` would wait for ever.
                for each, behind in pairwise(released):
                    each.waking = (behind,)
                caller.waking = (*later[:1], *released[:1])  # the next leader first: its sync takes longest
                self._round = (later[0] if later else None, later[1:])
        caller.wake_others()

    def _give_up(self, caller: _Caller) -> None:
        """Removes a caller that was interrupted from the round, even if further interrupts come meanwhile."""
        while True:
            with suppress(KeyboardInterrupt):
                with self._turn:
                    followers = self._round[1]
                    if caller in followers:
                        followers.remove(caller)
                self._pass_on(caller, self._flushed)  # wakes the callers that this one was to wake, too
                return

    def _ask(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._turn:
            self._asked.discard(loop)
        self._leader.ask()

    def _lead_for_tasks(self) -> None:
        with suppress(StoreFailedError):  # the futures and listeners get the error from _tell
            self.ensure(self._written())
        self._tell()

    def _tell(self) -> None:
        """Notifies listeners, and each loop once, of the waits that are over."""
        if self._listeners:
            self._tell_listeners()
        if not self._tasks:
            return
        with self._turn:
            reached = None if self._latch.is_closed else self._flushed  # None: all tasks get the error
            due: dict[asyncio.AbstractEventLoop, list[_Task]] = {}
            for loop, tasks in list(self._tasks.items()):
                later = [] if reached is None else [task for task in tasks if task[0] > reached]
                if len(later) == len(tasks):
                    continue
                due[loop] = [task for task in tasks if reached is None or task[0] <= reached]
                if later:
                    self._tasks[loop] = later
                else:
                    del self._tasks[loop]
                    self._asked.discard(loop)  # a loop that was closed never runs its _ask
        # Without the lock: waking a loop can take a system call.
        for loop, tasks in due.items():
            with suppress(RuntimeError):  # the loop was closed, and no task waits in it any more
                loop.call_soon_threadsafe(self._resolve, tasks)

    def _tell_listeners(self) -> None:
        with self._turn:
            is_over, flushed = self._latch.is_closed, self._flushed
            listeners = self._listeners
            self._listeners = [] if is_over else [each for each in listeners if each[0] > flushed]
        # Without the lock: a listener may call notify or ask.
        for end, told in listeners:
            if end <= flushed:  # on the disk before the failure, so not an error
                told(None)
            elif is_over:
                told(self._latch.error())

    def _resolve(self, tasks: Sequence[_Task]) -> None:
        for _end, futures, results in tasks:
            for future, result in zip(futures, results, strict=True):
                if future.done():  # its task was cancelled
                    continue
                if self._latch.is_closed:
                    future.set_exception(self._latch.error())
                else:
                    future.set_result(result)

    def _wake(self) -> None:
        """Wakes all waiting callers when the latch closes; called without a lock of this object."""
        with self._turn:
            leader, followers = self._round
            self._round = (leader, [])  # the leader stays: its own _pass_on ends the round
        for each in followers:
            each.go()
        self._tell()
