"""The duty that saves what has changed in a broker's tables, every few seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from typing_extensions import override

from seglog.broker.duties import Duty
from seglog.clock import Clock


class Saving(Duty):
    """Saves tables that have changed, at most once an interval.

    Args:
        clock: Its monotonic time.
        interval_ms: Between two saves.
        is_needed: Whether something has changed since the last save.
        save: Saves all of it.
    """

    name: ClassVar[str] = "saving"

    def __init__(
        self, clock: Clock, interval_ms: int, is_needed: Callable[[], bool], save: Callable[[], None]
    ) -> None:
        super().__init__()
        # Nobody wakes it: a commit is far too frequent for that.
        self.longest_sleep_ms = interval_ms
        self._clock = clock
        self._interval_ms = interval_ms
        self._is_needed = is_needed
        self._save = save
        self._next_ms = clock.monotonic_ms() + interval_ms

    @override
    def left_ms(self) -> float | None:
        return self._next_ms - self._clock.monotonic_ms() if self._is_needed() else None

    @override
    def run(self) -> None:
        self._next_ms = self._clock.monotonic_ms() + self._interval_ms
        self._save()
