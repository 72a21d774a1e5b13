"""Appends for the tasks of an event loop: none of them keeps the loop from running while the disk works.

Puts that are to be on the disk are gathered during one turn of the loop, and made together at its end: one
look at the files, one write, one sync for all. They are made in the order of the calls. Any other append
meanwhile, by any thread, has the gathered ones made first, so that the order of all calls is kept.

An append touches memory only, so the loop's thread makes it, unless a file or space is missing; then it
goes to a thread. Until that has made it others follow it, so that messages are stored in the order in which
they were put. The thread makes all that wait for it in one go and notifies each loop once: if it were slower
than the loop, hundreds of puts in flight would follow each other there for good. For the disk a task waits
on a future, and the loop is notified once for all its tasks.

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
    """Makes appends and waits for them.

    Args:
        appends: Where they go.
        fast_path: What puts are tried with first.
        usual: What puts wait for unless they say otherwise.

    Attributes:
        gathered: Puts to be made at the end of a turn, of any loop; only :meth:`drain` takes one out.
        gathers: What puts wait for that are gathered; None where none are.
        aside: Appends that wait for a thread, which no later one may pass.
        due: The loops that are going to drain.

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
        self._is_draining = False  # by its holder
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
        """Has the running loop drain once all its tasks that can put now have put."""
        for other in tuple(self.due):
            if other.is_closed():
                self.due.discard(other)
        self.due.add(loop)
        loop.call_soon(self._drain_for, loop)

    def _drain_for(self, loop: asyncio.AbstractEventLoop) -> None:
        self.drain()
        self.due.discard(loop)

    def drain(self) -> None:
        """Makes what was gathered, in the order of the calls; waits for no disk.

        An error of one is its own, and the others go on. What is behind one that waits for a file stays
        gathered, and is made by the thread that makes that file.
        """
        if not self.gathered and not self._made:
            return
        with self._drains:
            if self._is_draining:  # this is one of them, by the ordinary way
                return
            self._is_draining = True
            self._waiters.hold_back()
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
        """Makes gathered ones by the fast path; returns whether it could."""
        try:
            return self.fast_path.try_puts(self._made)
        except Exception:  # noqa: BLE001 - the ordinary way raises it, and the task gets it
            return bool(self._made)

    def _put_first(self) -> None:
        """Makes the first of the gathered in the ordinary way, or sets it aside."""
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
        """Makes what was gathered, or sets all of it aside: what comes next goes behind it."""
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
        """Returns what an append gives back once it is durable, or made, as its caller wants.

        Args:
            append: Makes it, given whether it may wait for the disk.

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
                loop, work = self.aside[0]  # it stays in line until it is made
                answer = work()
                if answer is not None:
                    answers.setdefault(loop, []).append(answer)
                self.aside.popleft()
            for loop, of_loop in answers.items():
                _tell(loop, _give, of_loop)
            self.drain()

    def close(self) -> None:
        """Ends the thread; what still waits for it finds the store closed."""
        self.drain()
        with self._lock:
            self._is_closed = True
        self._worker.stop()
        self._work()


def no_memory() -> NoReturn:
    """Says that a put was made, but nothing of it can be said.

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
