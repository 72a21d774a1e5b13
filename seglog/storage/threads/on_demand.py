"""A thread that runs one task on request."""

from __future__ import annotations

import threading
from collections.abc import Callable

from seglog.joining import join


class OnDemand:
    """A task with a thread of its own, which starts with the first request.

    Requests that come while the task runs lead to one more run afterwards, however many they are.

    Args:
        name: Name of the thread.
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
        """Requests a run of the task; does nothing after :meth:`stop`."""
        with self._turn:
            if self._stopping:
                return
            self._asked = True
            if self._thread is None:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                thread.start()
                self._thread = (
                    thread  # an interrupt before this line costs a second thread, which ends as well
                )
            # To all: a notify() that an interrupt ended leaves a waiter in the list that waits no more.
            self._turn.notify_all()

    def stop(self) -> None:
        """Returns once the thread has ended; waits for the task if it runs."""
        with self._turn:
            self._stopping = True
            thread = self._thread
            self._turn.notify_all()
        if thread is not None:
            join(thread)

    def _run(self) -> None:
        while True:
            with self._turn:
                while not self._asked and not self._stopping:
                    self._turn.wait()
                if self._stopping:
                    return
                self._asked = False  # before the task: a request during it leads to another run
            self._task()
