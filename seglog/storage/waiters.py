"""Threads that wait for a queue to grow.

A put tells only the queue that it wrote to, and costs nothing where nobody waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from seglog.clock import Clock


class Waiters:
    """Who waits for which queue."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, int], tuple[threading.Condition, int]] = {}

    def notify(self, topic: str, queue_id: int) -> None:
        """Wakes those who wait for this queue."""
        if not self._waiting:
            return
        entry = self._waiting.get((topic, queue_id))
        if entry is not None:
            with entry[0]:
                entry[0].notify_all()

    def notify_all(self) -> None:
        """Wakes everyone: the store closes."""
        with self._lock:
            conditions = [condition for condition, _count in self._waiting.values()]
        for condition in conditions:
            with condition:
                condition.notify_all()

    def wait(self, topic: str, queue_id: int, ready: Callable[[], bool], timeout_ms: float) -> bool:
        """Waits until ``ready`` or until ``timeout_ms`` have passed; returns what ``ready`` says then."""
        if ready():
            return True
        key = (topic, queue_id)
        with self._lock:
            condition, count = self._waiting.get(key, (threading.Condition(), 0))
            self._waiting[key] = (condition, count + 1)
        try:
            deadline_ms = self._clock.monotonic_ms() + timeout_ms
            with condition:
                while not ready():
                    left_ms = deadline_ms - self._clock.monotonic_ms()
                    if left_ms <= 0 or not self._clock.wait(condition, left_ms):
                        return ready()
            return True
        finally:
            with self._lock:
                condition, count = self._waiting[key]
                if count == 1:
                    del self._waiting[key]
                else:
                    self._waiting[key] = (condition, count - 1)
