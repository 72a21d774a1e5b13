"""A duty that runs periodically, as long as there is work."""

from __future__ import annotations

from abc import abstractmethod

from typing_extensions import override

from seglog.clock import Clock
from seglog.schedule.duties import Duty


class Periodic(Duty):
    """Runs at most once an interval.

    Args:
        clock: Its monotonic time.
        interval_ms: The time between two turns.
    """

    def __init__(self, clock: Clock, interval_ms: int) -> None:
        super().__init__()
        # Nothing wakes it: its thread checks after each interval.
        self.longest_sleep_ms = interval_ms
        self._clock = clock
        self._interval_ms = interval_ms
        self._next_ms = clock.monotonic_ms() + interval_ms

    @abstractmethod
    def is_needed(self) -> bool:
        """Returns whether a turn would find work; quick, and without waiting for a lock."""

    @abstractmethod
    def act(self) -> None:
        """Does the work.

        Raises:
            SeglogError, OSError: It failed; it is tried again soon.
        """

    @override
    def left_ms(self) -> float | None:
        return self._next_ms - self._clock.monotonic_ms() if self.is_needed() else None

    @override
    def run(self) -> None:
        self._next_ms = self._clock.monotonic_ms() + self._interval_ms
        self.act()
