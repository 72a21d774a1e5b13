"""Appends for the tasks of an event loop; none of them blocks the loop while the disk works.

SYNC puts are gathered during one turn of the loop and written together at its end, in the order of the calls:
one check of the files, one write, one sync for all of them. Any other append meanwhile, by any thread, writes
the gathered puts first.

An append writes to memory only, so the loop's thread does it. If a file or space is missing, the append is
set aside for another thread, and all later appends of tasks behind it, so that messages are stored in the
order in which tasks put them. A plain put waits itself; it is not set aside, and can overtake them. The other
thread writes all appends that are set aside in one go and notifies each loop once: if it were slower than the
loop, hundreds of puts in flight would stay set aside for ever. A task waits for the disk with a future, and
the loop is notified once for all its tasks.

Cancelling a task that waits takes nothing back: its message is stored, or will be.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import NoReturn, TypeVar

from seglog.errors import ClosedError
from seglog.storage.kernels.calls.fast_path import Gathered, Made
from seglog.storage.threads.on_demand import OnDemand
from seglog.storage.threads.waiting import WouldWaitError
from seglog.storage.writes.appender import Appender, Appends
from seglog.storage.writes.appends import Appended
from seglog.storage.writes.fast_path import FastPath
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import PutResult

R = TypeVar("R")
_Answer = Callable[[], None]
_Work = Callable[[], _Answer | None]


class AsyncAppends:
    """Appends for tasks, and waits for durability.

    Args:
        appends: The ordinary way.
        fast_path: The fast path, tried first.
        usual: The durability of puts that give none.

    Attributes:
        gathered: Puts to be written at the end of a turn, of any loop.
        gathers: The durability of the puts that are gathered; None if no put is.
        aside: Appends that wait for a thread; no later append may overtake them.
        due: The loops that have scheduled a drain.

    Thread rule: any thread, tasks of any number of loops.
    """

    def __init__(self, appends: Appends, fast_path: FastPath, usual: Durability) -> None:
        self.fast_path = fast_path
        self.usual = usual
        self.gathered: list[Gathered[PutResult]] = fast_path.gathered
        self.gathers = Durability.SYNC if isinstance(appends, Appender) else None
        self.due: set[asyncio.AbstractEventLoop] = set()
        self._made: list[Made[PutResult]] = []
        self._drains = threading.RLock()
        self._is_draining = False  # set by the thread that holds _drains: the lock is reentrant
        self._appends = appends
        self.aside: deque[tuple[asyncio.AbstractEventLoop, _Work]] = deque()
        self._lock = threading.Lock()
        self._is_closed = False
        self._worker = OnDemand("seglog-aside", self._work)
        self.durable = appends.durable
        if isinstance(appends, Appender):
            self._waiters = appends.waiters
            appends.drain_with(self.gathered, self.drain)

    def drain_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        """Schedules a drain in the running loop, after all its tasks that can put now have put."""
        for other in tuple(self.due):
            if other.is_closed():
                self.due.discard(other)
        self.due.add(loop)
        loop.call_soon(self._drain_for, loop)

    def _drain_for(self, loop: asyncio.AbstractEventLoop) -> None:
        self.drain()
        self.due.discard(loop)

    def drain(self) -> None:
        """Writes the gathered puts in the order of the calls; never waits for the disk.

        An error of one put is raised in its task only, and the others continue. Puts behind one that needs a
        file stay gathered; the thread that creates the file writes them.
        """
        if not self.gathered and not self._made:
            return
        with self._drains:
            if self._is_draining:  # called by the append of a gathered put, in the ordinary way
                return
            self._is_draining = True
            self._waiters.hold_back()  # a waiter's callback may append: it must not run within this lock
            try:
                while self._made or (self.gathered and not self.aside):
                    if not self._made and not self._put_some():
                        self._put_first()
                    while self._made:
                        self._settle(*self._made[0])
                        del self._made[0]
            finally:
                grown = self._waiters.release()
                self._is_draining = False
        for queue in grown:
            self._waiters.notify(*queue)

    def _put_some(self) -> bool:
        """Writes gathered puts by the fast path; returns whether it wrote any."""
        try:
            return self.fast_path.try_puts(self._made)
        except Exception:  # noqa: BLE001 - the ordinary way raises it, and the task gets it
            return bool(self._made)

    def _put_first(self) -> None:
        """Writes the first gathered put in the ordinary way, or sets it aside."""
        put = self.gathered[0]
        future = put[8]
        try:
            made, until = self._appends.put(*put[:8], False)
        except WouldWaitError:
            self._set_aside(put)
        except BaseException as error:
            _tell(future.get_loop(), _failed, future, error)
            if not isinstance(error, Exception):  # Ctrl-C, in any thread that drains
                del self.gathered[0]
                raise
        else:
            self._appends.settle(future.get_loop(), until or 0, (future,), (made,))
        del self.gathered[0]

    def _settle(
        self, futures: Sequence[asyncio.Future[PutResult | None]], results: Sequence[PutResult | None]
    ) -> None:
        """Has futures get their results when the last of them is on the disk."""
        last = next((result for result in reversed(results) if result is not None), None)
        until = 0 if last is None else last.phy_offset + last.size_bytes
        loops = {future.get_loop() for future in futures}
        for loop in loops:
            if len(loops) == 1:
                self._appends.settle(loop, until, futures, results)
                return
            own = [at for at, future in enumerate(futures) if future.get_loop() is loop]
            self._appends.settle(loop, until, [futures[at] for at in own], [results[at] for at in own])

    def _line_up(self) -> None:
        """Writes the gathered puts, or sets all of them aside, so that the next append comes behind them."""
        self.drain()
        with self._drains:
            while self.gathered and not self._is_draining:
                self._set_aside(self.gathered[0])
                del self.gathered[0]

    def _set_aside(self, put: Gathered[PutResult]) -> None:
        future = put[8]
        loop = future.get_loop()

        def work() -> _Answer | None:
            try:
                made, until = self._appends.put(*put[:8], True)
            except BaseException as error:  # noqa: BLE001 - the top of a thread: the task raises it
                failure = error
                return lambda: _failed(future, failure)
            self._appends.settle(loop, until or 0, (future,), (made,))
            return None

        with self._lock:
            is_closed = self._is_closed
            if not is_closed:
                self.aside.append((loop, work))
        if is_closed:
            _tell(loop, _failed, future, ClosedError("the store was closed"))
        else:
            self._worker.ask()

    async def run(self, append: Callable[[bool], Appended[R]]) -> R:
        """Returns the result of an append once it is durable; at once if the caller wants no durability.

        Args:
            append: Does the append; its argument is whether it may wait for the disk.

        Raises:
            StoreFailedError: The disk failed, now or earlier.
            ClosedError: The store was closed before the append.
        """
        appended = await self._append(append)
        if appended.until is not None:
            durable = self._appends.durable(appended.until)
            if durable is not None:
                await durable
        return appended.result

    async def _append(self, append: Callable[[bool], Appended[R]]) -> Appended[R]:
        if self.gathered:
            self._line_up()
        if not self.aside:
            try:
                return append(False)
            except WouldWaitError:
                pass
        loop = asyncio.get_running_loop()
        made: asyncio.Future[Appended[R]] = loop.create_future()
        with self._lock:
            if self._is_closed:
                raise ClosedError("the store was closed")
            self.aside.append((loop, _work_of(append, made)))
        self._worker.ask()
        return await made

    def _work(self) -> None:
        while self.aside:
            answers: dict[asyncio.AbstractEventLoop, list[_Answer]] = {}
            for _ in range(len(self.aside)):
                loop, work = self.aside[0]  # removed when written: until then later appends queue behind it
                answer = work()
                if answer is not None:
                    answers.setdefault(loop, []).append(answer)
                self.aside.popleft()
            for loop, of_loop in answers.items():
                _tell(loop, _give, of_loop)
            self.drain()

    def close(self) -> None:
        """Ends the thread; appends that are still set aside fail because the store is closed."""
        self.drain()
        with self._lock:
            self._is_closed = True
        self._worker.stop()
        self._work()


def no_memory() -> NoReturn:
    """Raises the error for a put that was stored, but whose result could not be created.

    Raises:
        MemoryError: Always.
    """
    raise MemoryError("the message is stored, but memory for its result is short")


def _work_of(append: Callable[[bool], Appended[R]], made: asyncio.Future[Appended[R]]) -> _Work:
    def work() -> _Answer:
        try:
            appended = append(True)
        except BaseException as error:  # noqa: BLE001 - the top of a thread: the task raises it
            failure = error
            return lambda: _failed(made, failure)
        return lambda: None if made.done() else made.set_result(appended)

    return work


def _tell(loop: asyncio.AbstractEventLoop, tell: Callable[..., None], *values: object) -> None:
    with suppress(RuntimeError):  # the loop was closed, and no task waits in it any more
        loop.call_soon_threadsafe(tell, *values)


def _failed(future: asyncio.Future[R], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)


def _give(answers: Iterable[_Answer]) -> None:
    for answer in answers:
        answer()
