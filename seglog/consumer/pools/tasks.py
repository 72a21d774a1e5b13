"""Listeners that are ``async def``: so many at a time as a consumer would have threads, without one.

On real time each is a task of an event loop: the application's, or that of the thread that clients of the
process share. On virtual time it is stepped while time is moved.
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
    """Runs coroutines, so many at a time; its state is that of one loop or home.

    Args:
        most: How many.
        name: Of what is run, for people.
    """

    LEAVES_ALONE: ClassVar[bool] = False

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._waiting: deque[tuple[Work[Any], Deferred[Any]]] = deque()
        self._at_work = 0
        self._is_closed = False

    def run(self, work: Work[R]) -> Deferred[R]:
        """Has something run in its turn."""
        result: Deferred[R] = Deferred()
        self._waiting.append((work, result))
        if not self._post(self._fill):
            result.cancel()
        return result

    def close(self) -> bool:
        """Lets nothing more begin, and cancels what is at work."""
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
        """Has a function called where the state is; returns whether that is still possible."""

    @abstractmethod
    def _begin(self, work: Work[R], result: Deferred[R]) -> None:
        """Runs something; calls :meth:`_ended` after it."""

    @abstractmethod
    def _cancel(self) -> None:
        """Cancels what is at work."""


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
        """Begins nothing more, in a forked child; there a loop may go on, if one of its tasks has forked."""
        self._is_closed = True
        here = asyncio.current_task(self._loop)
        for task in () if self._loop.is_closed() else self._tasks:
            if task is not here:
                task.cancel()

    def is_here(self) -> bool:
        """Returns whether one of its tasks is what calls; one that a listener has made is none of them."""
        return is_running_here(self._loop) and asyncio.current_task(self._loop) in self._tasks

    def surface(self, error: BaseException) -> None:
        """Logs it: a message failed, as in Java, which catches ``Throwable``, and the others go on."""
        if isinstance(error, asyncio.CancelledError) and (self._is_closed or self._cancelled):
            self._cancelled -= bool(self._cancelled)  # by who ends the loop, and all tasks with it
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
            if not has_begun:  # it was cancelled, by who ends the loop, before its turn, which comes again
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
    """Coroutines that go on while virtual time is moved.

    Args:
        home: What is run meanwhile.
        most: As for :class:`Turns`.
        name: Likewise.
    """

    def __init__(self, home: Home, most: int, name: str) -> None:
        super().__init__(most, name)
        self._home = home
        self._flows: set[Flow[Any]] = set()

    def is_here(self) -> bool:
        """Returns whether time is moved by the calling thread, which runs all that has to end."""
        return self._home.is_here()

    def surface(self, error: BaseException) -> None:
        """Has it come to who moves time."""
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
