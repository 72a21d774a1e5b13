"""Where listeners of both kinds are called: tasks of an event loop, and threads for the plain ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from seglog.consumer.pools.pool import ListenerPool, R, Work
from seglog.consumer.pools.thread_pool import ThreadPool
from seglog.remoting.later import Deferred


class MixedPool:
    """A pool of tasks, and threads that these wait for.

    Args:
        tasks: Run what is awaited.
        threads: Call what is plain.
    """

    LEAVES_ALONE: ClassVar[bool] = False

    def __init__(self, tasks: ListenerPool, threads: ThreadPool) -> None:
        self._tasks = tasks
        self._threads = threads

    def call_plain(self, call: Callable[[], object]) -> Awaitable[object]:
        """Has a function called in a thread; what is returned is awaited in a task."""

        async def called() -> object:
            return call()

        return self._threads.run(called)

    def is_here(self) -> bool:
        """Returns whether a task or a thread of it is what calls."""
        return self._threads.is_here() or self._tasks.is_here()

    def run(self, work: Work[R]) -> Deferred[R]:
        """Has something run as a task."""
        return self._tasks.run(work)

    def surface(self, error: BaseException) -> None:
        """Does as the tasks do."""
        self._tasks.surface(error)

    def close(self) -> bool:
        """Runs nothing more, cancels the tasks, and leaves a plain listener that is at work to itself."""
        self._threads.close()
        return self._tasks.close()
