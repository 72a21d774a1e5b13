"""Appends for the tasks of an event loop: none of them keeps the loop from running while the disk works.

An append touches memory only, so the loop's thread makes it, unless a file or space is missing; then it
goes to a thread. While any is there all others follow it, so that messages are stored in the order in which
they were put. For the disk a task waits on a future, and the loop is told once for all its tasks.

Cancelling a task that waits takes nothing back: its message is stored, or will be.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from seglog.errors import ClosedError
from seglog.storage.appender import Appended, Appender
from seglog.storage.writer import WouldWaitError

R = TypeVar("R")


class AsyncAppends:
    """Makes appends and waits for them.

    Args:
        appender: Where they go.

    Thread rule: any thread, tasks of any number of loops.
    """

    def __init__(self, appender: Appender) -> None:
        self._appender = appender
        self._aside = ThreadPoolExecutor(1, "seglog-aside")
        self._lock = threading.Lock()
        self._aside_count = 0

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
            durable = self._appender.durable(appended.until)
            if durable is not None:
                await durable
        return appended.result

    async def _append(self, append: Callable[[bool], Appended[R]]) -> Appended[R]:
        if not self._aside_count:
            try:
                return append(False)
            except WouldWaitError:
                pass
        with self._lock:
            self._aside_count += 1
        try:
            try:
                made = asyncio.get_running_loop().run_in_executor(self._aside, append, True)
            except RuntimeError as error:
                raise ClosedError("the store was closed") from error
            return await made
        finally:
            with self._lock:
                self._aside_count -= 1

    def close(self) -> None:
        """Ends the thread; what still waits for it finds the store closed."""
        self._aside.shutdown()
