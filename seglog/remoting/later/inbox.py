"""What other threads have for one thread, which is woken once for all that came until it looks.

It does some of that at a time, and has itself woken for the rest: an event loop serves others in between.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from seglog.logs import logger

AT_ONCE: Final = 64
"""Tasks that are done in one go."""
Task = Callable[[], object]
_log = logger(__name__)


class Inbox:
    """Tasks for one thread; any thread may post.

    Args:
        wake: Has a function run by that thread soon, such as ``loop.call_soon_threadsafe``.
    """

    def __init__(self, wake: Callable[[Task], object]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._tasks: list[Task] = []

    def post(self, task: Task) -> None:
        """Has a task done by the thread; it neither waits nor raises."""
        with self._lock:
            self._tasks.append(task)
            is_woken = len(self._tasks) > 1
        if not is_woken:
            self._wake(self._run)

    @property
    def is_empty(self) -> bool:
        """Whether no task waits that was posted."""
        return not self._tasks

    def _run(self) -> None:
        with self._lock:
            tasks = self._tasks[:AT_ONCE]
            del self._tasks[:AT_ONCE]
            is_more = bool(self._tasks)
        if is_more:
            self._wake(self._run)
        left = iter(tasks)
        try:
            for task in left:
                try:
                    task()
                except Exception:  # noqa: BLE001 - the next ones are of others
                    _log.exception("a task failed that was posted to a thread")
        finally:  # what ends a program may be raised, and the thread may go on
            self._return(list(left))

    def _return(self, tasks: list[Task]) -> None:
        """Has tasks done first that were taken out, and not done."""
        if not tasks:
            return
        with self._lock:
            is_woken = bool(self._tasks)
            self._tasks[:0] = tasks
        if not is_woken:
            self._wake(self._run)
