"""Runs ``async def`` listeners: as many at a time as a consumer would have threads, but without threads.

On real time each call is a task of an event loop: the application's, or that of the thread that clients of
the process share. On virtual time it is stepped while time is moved.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

from typing_extensions import override

from seglog.client.home import Flow, Home, start, stepped
from seglog.consumer.pools.inline_pool import surface_on
from seglog.consumer.pools.pool import R, Work
from seglog.forked import abandon_in_children
from seglog.logs import logger
from seglog.remoting.later import Deferred, inbox_of, is_running_here

_log = logger(__name__)


class Turns(ABC):
    """Runs a bounded number of coroutines at a time; its state belongs to one loop or home.

    Args:
        most: The most at a time.
        name: The name of the work, for logs.
    """

    LEAVES_ALONE: ClassVar[bool] = False

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._waiting: deque[tuple[Work[Any], Deferred[Any]]] = deque()
        self._at_work = 0
        self._is_closed = False

    def run(self, work: Work[R]) -> Deferred[R]:
        """Runs the work when its turn has come."""
        result: Deferred[R] = Deferred()
        self._waiting.append((work, result))
        if not self._post(self._fill):
            result.cancel()
        return result

    def close(self) -> bool:
        """Starts nothing more, and cancels running work."""
        self._is_closed = True
        return self._post(self._end)

    def _fill(self) -> None:
        while self._waiting and (self._is_closed or self._at_work < self._most):
            work, result = self._waiting.popleft()
            if self._is_closed:
                result.cancel()
            else:
                self._at_work += 1
                self._begin(work, result)

    def _ended(self) -> None:
        self._at_work -= 1
        self._fill()

    def _end(self) -> None:
        self._fill()
        self._cancel()

    @abstractmethod
    def _post(self, task: Callable[[], None]) -> bool:
        """Calls a function in the loop or home of the state; returns whether that is still possible."""

    @abstractmethod
    def _begin(self, work: Work[R], result: Deferred[R]) -> None:
        """Runs the work; calls :meth:`_ended` after it."""

    @abstractmethod
    def _cancel(self) -> None:
        """Cancels running work."""


class TaskPool(Turns):
    """Tasks of an event loop.

    Args:
        loop: The loop.
        most: As for :class:`Turns`.
        name: Likewise.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int, name: str) -> None:
        super().__init__(most, name)
        self._loop = loop
        self._tasks: set[asyncio.Task[Any]] = set()
        self._cancelled = 0
        abandon_in_children(self, TaskPool._abandon)

    def _abandon(self) -> None:
        """Starts nothing more in a forked child; its loop may continue there, if one of its tasks forked."""
        self._is_closed = True
        here = asyncio.current_task(self._loop)
        for task in () if self._loop.is_closed() else self._tasks:
            if task is not here:
                task.cancel()

    def is_here(self) -> bool:
        """Returns whether the caller is one of its tasks; tasks made by a listener do not count."""
        return is_running_here(self._loop) and asyncio.current_task(self._loop) in self._tasks

    def surface(self, error: BaseException) -> None:
        """Logs it: only one message failed, as in Java, which catches ``Throwable``; the others continue."""
        if isinstance(error, asyncio.CancelledError) and (self._is_closed or self._cancelled):
            self._cancelled -= bool(self._cancelled)  # cancelled by the end of the loop, with all tasks
            return
        _log.error("a listener of %s raised %r: its message comes again", self._name, error, exc_info=error)

    @override
    def _post(self, task: Callable[[], None]) -> bool:
        if self._loop.is_closed():
            return False
        if is_running_here(self._loop):
            task()
        else:
            inbox_of(self._loop).post(task)
        return True

    @override
    def _begin(self, work: Work[R], result: Deferred[R]) -> None:
        has_begun = False

        async def steps() -> R:
            nonlocal has_begun
            has_begun = True
            return await work()

        task = self._loop.create_task(steps(), name=self._name)
        self._tasks.add(task)

        def end(_: object) -> None:
            self._tasks.discard(task)
            if not has_begun:  # the end of the loop cancelled it before it began
                self._waiting.appendleft((work, result))
                self._ended()
                return
            self._cancelled += bool(task.cancelling())
            error = asyncio.CancelledError() if task.cancelled() else task.exception()
            if error is None:
                result.resolve(task.result())
            else:
                result.fail(error)
            self._ended()

        task.add_done_callback(end)

    @override
    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()


class SteppedPool(Turns):
    """Coroutines that are stepped while virtual time is moved.

    Args:
        home: The home that runs meanwhile.
        most: As for :class:`Turns`.
        name: Likewise.
    """

    def __init__(self, home: Home, most: int, name: str) -> None:
        super().__init__(most, name)
        self._home = home
        self._flows: set[Flow[Any]] = set()

    def is_here(self) -> bool:
        """Returns whether the calling thread moves time, and so runs everything that has to end."""
        return self._home.is_here()

    def surface(self, error: BaseException) -> None:
        """Raises it in the call that moves time."""
        surface_on(self._home, error)

    @override
    def _post(self, task: Callable[[], None]) -> bool:
        self._home.post(task)
        return True

    @override
    def _begin(self, work: Work[R], result: Deferred[R]) -> None:
        flow = start(self._home, stepped(self._home, work()), self._name)
        self._flows.add(flow)

        def end(_: object) -> None:
            self._flows.discard(flow)
            if flow.error is None:
                result.resolve(flow.result())
            else:
                result.fail(flow.error)
            self._ended()

        flow.then(end)

    @override
    def _cancel(self) -> None:
        for flow in tuple(self._flows):
            flow.stop()
