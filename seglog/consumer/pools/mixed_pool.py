"""Calls listeners of both kinds: in tasks of an event loop, and plain ones in threads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from seglog.consumer.pools.pool import ListenerPool, R, Work
from seglog.consumer.pools.thread_pool import ThreadPool
from seglog.remoting.later import Deferred


class MixedPool:
    """A pool of tasks, with threads for plain listeners.

    Args:
        tasks: Runs the async listeners.
        threads: Calls the plain ones.
    """

    LEAVES_ALONE: ClassVar[bool] = False

    def __init__(self, tasks: ListenerPool, threads: ThreadPool) -> None:
        self._tasks = tasks
        self._threads = threads

    def call_plain(self, call: Callable[[], object]) -> Awaitable[object]:
        """Calls a function in a thread; a task awaits the result."""

        async def called() -> object:
            return call()

        return self._threads.run(called)

    def is_here(self) -> bool:
        """Returns whether the caller is one of its tasks or threads."""
        return self._threads.is_here() or self._tasks.is_here()

    def run(self, work: Work[R]) -> Deferred[R]:
        """Runs the work as a task."""
        return self._tasks.run(work)

    def surface(self, error: BaseException) -> None:
        """Does the same as the pool of tasks."""
        self._tasks.surface(error)

    def close(self) -> bool:
        """Starts nothing more, cancels the tasks, and leaves running plain listeners to themselves."""
        self._threads.close()
        return self._tasks.close()
