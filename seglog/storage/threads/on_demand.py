"""A thread that does one thing when it is asked to."""

from __future__ import annotations

import threading
from collections.abc import Callable

from seglog.joining import join


class OnDemand:
    """A task for a thread of its own, which begins with the first wish.

    Asked while it works, it does its task once more afterwards, however often it was asked.

    Args:
        name: Of the thread.
        task: Called without any lock held.
    """

    def __init__(self, name: str, task: Callable[[], None]) -> None:
        self._name = name
        self._task = task
        self._turn = threading.Condition()
        self._asked = False
        self._stopping = False
        self._thread: threading.Thread | None = None

    def ask(self) -> None:
        """Has the task done soon; does nothing after :meth:`stop`."""
        with self._turn:
            if self._stopping:
                return
            self._asked = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._turn.notify()

    def stop(self) -> None:
        """Returns once the thread has ended, after the task if it is at it."""
        with self._turn:
            self._stopping = True
            thread = self._thread
            self._turn.notify()
        if thread is not None:
            join(thread)

    def _run(self) -> None:
        while True:
            with self._turn:
                while not self._asked and not self._stopping:
                    self._turn.wait()
                if self._stopping:
                    return
                self._asked = False
            self._task()
