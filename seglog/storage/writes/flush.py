"""Durability: how far the log is on the disk, and who waits for it.

Group commit: of all who need the log on the disk, one syncs for everyone who came before it began; the
others wait, and one of them leads the next round. Threads lead themselves, and each waits at a lock of its
own: woken at one condition, they would all stand in line for its lock. Of those that a round releases each
wakes the next: woken at once, they would all stand in line for the GIL. For tasks of event loops a thread of
the store leads. A loop asks for it once all its tasks that can put have put, and is told once a round,
however many of them wait. No lock of the store is held meanwhile.

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
"""How far the log must be on the disk, whose futures get their results then, and which."""
_Listener = tuple[int, Callable[[StoreFailedError | None], None]]


class _Caller:
    """A thread that needs the log on the disk: it leads a round, or waits while another one syncs.

    Attributes:
        phy_offset: How far it needs the log on the disk.
        waking: Whom it wakes once it is awake, has led, or is interrupted.
    """

    __slots__ = ("_turn", "phy_offset", "waking")

    def __init__(self, phy_offset: int) -> None:
        self.phy_offset = phy_offset
        self.waking: tuple[_Caller, ...] = ()
        self._turn = threading.Lock()
        self._turn.acquire()

    def wait(self) -> None:
        """Waits without the GIL, and for no other waiter."""
        self._turn.acquire()
        self.wake_others()

    def go(self) -> None:
        """Ends the wait."""
        with suppress(RuntimeError):  # for the second time: who woke it was interrupted, and made sure
            self._turn.release()

    def wake_others(self) -> None:
        """Ends the waits of those that it wakes."""
        for each in self.waking:
            each.go()
        self.waking = ()  # after: an interrupt between the two must not lose one


class Durability(enum.Enum):
    """When a put returns: once the message is in the page cache, or on the disk."""

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
        self._turn = threading.Lock()  # held for a few steps, never while anything waits
        # Who leads, and who waits. A pair that is replaced in one step: an interrupt finds it whole.
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
                if leader is None:
                    self._round = (caller, followers)
                else:
                    followers.append(caller)
            if self._round[0] is not caller:
                caller.wait()
            if self._round[0] is caller:
                self._lead(caller)
        except BaseException:
            self._give_up(caller)  # Ctrl-C: no thread may wait for one that has gone
            raise
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
            tasks = self._tasks.get(loop)
            if tasks is None:
                tasks = self._tasks[loop] = []
            tasks.append((phy_offset, (future,), (None,)))
            if loop in self._asked:
                return future
            self._asked.add(loop)
        loop.call_soon(self._ask, loop)  # behind all tasks that can put now
        return future

    def settle(
        self,
        loop: asyncio.AbstractEventLoop,
        phy_offset: int,
        futures: Sequence[asyncio.Future[R]],
        results: Sequence[R],
    ) -> None:
        """Has futures get their results once everything below ``phy_offset`` is on the disk; asks for that.

        Those of them get the error that are not done when something has failed.

        Args:
            loop: Theirs.
            phy_offset: How far.
            futures: Whose tasks wait.
            results: What each gets.
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
        """Has a function called once everything below ``phy_offset`` is on the disk.

        Nothing syncs on its account before :meth:`ask`: one asks for many.

        Args:
            phy_offset: How far.
            told: Called once, by any thread, given the error if the disk failed; it neither waits nor raises.

        Returns:
            Whether it will be called; not if everything is on the disk already.

        Raises:
            StoreFailedError: Something failed before.
        """
        with self._turn:
            self._latch.check()
            if self._flushed >= phy_offset:
                return False
            self._listeners.append((phy_offset, told))
            return True

    def ask(self) -> None:
        """Has what is written now brought to the disk, by the thread for tasks."""
        self._leader.ask()

    def close(self) -> None:
        """Ends the thread for tasks, after everything was synced or the latch closed."""
        self._leader.stop()
        if self._tasks:
            self._lead_for_tasks()  # they came as it stopped
        else:
            self._tell()

    def _lead(self, caller: _Caller) -> None:
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
            self._pass_on(caller, end)
            self._tell()

    def _pass_on(self, caller: _Caller, flushed: int) -> None:
        """Releases those that waited for no more than that, and has one of the others lead.

        Called again after an interrupt, it does what is left of that.
        """
        with self._turn:
            leader, followers = self._round
            if leader is caller:
                self._flushed, is_over = flushed, self._latch.is_closed
                later = [each for each in followers if not is_over and each.phy_offset > flushed]
                released = [each for each in followers if is_over or each.phy_offset <= flushed]
                for each, behind in pairwise(released):
                    each.waking = (behind,)
                caller.waking = (*later[:1], *released[:1])  # the next leader first: its sync takes longest
                self._round = (later[0] if later else None, later[1:])
        caller.wake_others()

    def _give_up(self, caller: _Caller) -> None:
        """Takes a caller that was interrupted out of the round, however often it is interrupted at that."""
        while True:
            with suppress(KeyboardInterrupt):
                with self._turn:
                    followers = self._round[1]
                    if caller in followers:
                        followers.remove(caller)
                self._pass_on(caller, self._flushed)
                return

    def _ask(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._turn:
            self._asked.discard(loop)
        self._leader.ask()

    def _lead_for_tasks(self) -> None:
        with suppress(StoreFailedError):  # the futures tell it
            self.ensure(self._written())
        self._tell()

    def _tell(self) -> None:
        """Notifies each loop, in one call, which of its tasks wait no more, and each listener."""
        if self._listeners:
            self._tell_listeners()
        if not self._tasks:
            return
        with self._turn:
            reached = None if self._latch.is_closed else self._flushed
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
                    self._asked.discard(loop)  # it may have ended before it asked
        for loop, tasks in due.items():
            with suppress(RuntimeError):  # the loop was closed, and no task waits in it any more
                loop.call_soon_threadsafe(self._resolve, tasks)

    def _tell_listeners(self) -> None:
        with self._turn:
            is_over, flushed = self._latch.is_closed, self._flushed
            listeners = self._listeners
            self._listeners = [] if is_over else [each for each in listeners if each[0] > flushed]
        for end, told in listeners:
            if end <= flushed:
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
        """The latch closed: waiters are notified, by a thread that holds no lock of ours."""
        with self._turn:
            leader, followers = self._round
            self._round = (leader, [])
        for each in followers:
            each.go()
        self._tell()
