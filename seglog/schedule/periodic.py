"""A duty that has a turn every so often, as long as there is something for it to do."""

from __future__ import annotations

from abc import abstractmethod

from typing_extensions import override

from seglog.clock import Clock
from seglog.schedule.duties import Duty


class Periodic(Duty):
    """Does something at most once an interval.

    Args:
        clock: Its monotonic time.
        interval_ms: Between two turns.
    """

    def __init__(self, clock: Clock, interval_ms: int) -> None:
        super().__init__()
        # Nothing wakes it: its thread looks again after each interval.
        self.longest_sleep_ms = interval_ms
        self._clock = clock
        self._interval_ms = interval_ms
        self._next_ms = clock.monotonic_ms() + interval_ms

    @abstractmethod
    def is_needed(self) -> bool:
        """Returns whether a turn would find anything to do; quick, without waiting for a lock."""

    @abstractmethod
    def act(self) -> None:
        """Does it.

        Raises:
            SeglogError, OSError: It failed, and is tried again soon.
        """

    @override
    def left_ms(self) -> float | None:
        return self._next_ms - self._clock.monotonic_ms() if self.is_needed() else None

    @override
    def run(self) -> None:
        self._next_ms = self._clock.monotonic_ms() + self._interval_ms
        self.act()
