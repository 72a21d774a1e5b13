"""A thread that does one thing again and again until it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable

from seglog.clock import Clock
from seglog.joining import join


class Background:
    """One recurring task.

    Args:
        clock: Measures the interval.
        name: Name of the thread.
        task: Called once per interval; the thread ends when it returns False.

    Thread rule: :meth:`start` and :meth:`stop` belong to one owner.
    """

    def __init__(self, clock: Clock, name: str, task: Callable[[], bool]) -> None:
        self._clock = clock
        self._name = name
        self._task = task
        self._turn = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None

    @property
    def is_stopping(self) -> bool:
        """Whether the task should come to an end soon."""
        return self._stopping

    def start(self, interval_ms: float) -> None:
        """Starts the thread, which waits ``interval_ms`` before each turn."""
        self._thread = threading.Thread(target=self._run, args=(interval_ms,), name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Returns once the thread has ended; waits for the current turn of the task."""
        with self._turn:
            self._stopping = True
            self._turn.notify_all()
        if self._thread is not None:
            join(self._thread)

    def pause(self, duration_ms: float) -> bool:
        """Pauses the task within its turn; returns False once the thread must stop."""
        deadline_ms = self._clock.monotonic_ms() + duration_ms
        with self._turn:
            while not self._stopping and self._clock.wait(
                self._turn, deadline_ms - self._clock.monotonic_ms()
            ):
                pass  # woken before its time, as a virtual clock does at every step
        return not self._stopping

    def _run(self, interval_ms: float) -> None:
        while self.pause(interval_ms) and self._task():
            pass
