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

    def _run(self) -> None:
        with self._lock:
            tasks = self._tasks[:AT_ONCE]
            del self._tasks[:AT_ONCE]
            is_more = bool(self._tasks)
        if is_more:
            self._wake(self._run)
        for task in tasks:
            try:
                task()
            except Exception:  # noqa: BLE001 - the next ones are of others
                _log.exception("a task failed that was posted to a thread")
