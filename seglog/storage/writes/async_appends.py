"""Appends for the tasks of an event loop: none of them keeps the loop from running while the disk works.

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
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from seglog.errors import ClosedError
from seglog.storage.threads.on_demand import OnDemand
from seglog.storage.threads.waiting import WouldWaitError
from seglog.storage.writes.appender import Appends
from seglog.storage.writes.appends import Appended
from seglog.storage.writes.fast_path import FastPath

R = TypeVar("R")
_Answer = Callable[[], None]
_Work = Callable[[], _Answer]


class AsyncAppends:
    """Makes appends and waits for them.

    Args:
        appends: Where they go.
        fast_path: What puts are tried with first.

    Thread rule: any thread, tasks of any number of loops.
    """

    def __init__(self, appends: Appends, fast_path: FastPath) -> None:
        self.fast_path = fast_path
        self._appends = appends
        self._aside: deque[tuple[asyncio.AbstractEventLoop, _Work]] = deque()
        self._lock = threading.Lock()
        self._is_closed = False
        self._worker = OnDemand("seglog-aside", self._work)
        self.durable = appends.durable

    def is_behind(self) -> bool:
        """Returns whether earlier appends still wait, which no other may pass."""
        return bool(self._aside)

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
        if not self._aside:
            try:
                return append(False)
            except WouldWaitError:
                pass
        loop = asyncio.get_running_loop()
        made: asyncio.Future[Appended[R]] = loop.create_future()
        with self._lock:
            if self._is_closed:
                raise ClosedError("the store was closed")
            self._aside.append((loop, _work_of(append, made)))
        self._worker.ask()
        return await made

    def _work(self) -> None:
        while self._aside:
            answers: dict[asyncio.AbstractEventLoop, list[_Answer]] = {}
            for _ in range(len(self._aside)):
                loop, work = self._aside[0]  # it stays in line until it is made
                answers.setdefault(loop, []).append(work())
                self._aside.popleft()
            for loop, of_loop in answers.items():
                with suppress(RuntimeError):  # the loop was closed, and no task waits in it any more
                    loop.call_soon_threadsafe(_give, of_loop)

    def close(self) -> None:
        """Ends the thread; what still waits for it finds the store closed."""
        with self._lock:
            self._is_closed = True
        self._worker.stop()
        self._work()


def _work_of(append: Callable[[bool], Appended[R]], made: asyncio.Future[Appended[R]]) -> _Work:
    def work() -> _Answer:
        try:
            appended = append(True)
        except BaseException as error:  # noqa: BLE001 - the top of a thread: the task raises it
            failure = error
            return lambda: None if made.done() else made.set_exception(failure)
        return lambda: None if made.done() else made.set_result(appended)

    return work


def _give(answers: Sequence[_Answer]) -> None:
    for answer in answers:
        answer()
