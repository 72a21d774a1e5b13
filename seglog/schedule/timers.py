"""Functions that are called once, at their time: deadlines. No timer has a thread of its own.

All timers together are one duty: on real time one thread sleeps until the first is due; on virtual time they
run while time is moved. A late function is called at once.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable
from typing import ClassVar, Final, Protocol

from typing_extensions import override

from seglog.clock import Clock
from seglog.logs import logger
from seglog.schedule.duties import Duty

MIN_CANCELLED: Final = 64
"""Number of cancelled timers at which they are removed."""

_Call = Callable[[], object]
_log = logger(__name__)


class Timer:
    """A function that waits for its time.

    Attributes:
        call: None once it was called or cancelled.
    """

    __slots__ = ("call",)

    def __init__(self, call: _Call) -> None:
        self.call: _Call | None = call


class AnyTimers(Protocol):
    """Calls functions at their time. Any thread may call it."""

    def after(self, delay_ms: float, call: _Call) -> Timer:
        """Calls a function after a time; the function must neither wait nor raise."""

    def cancel(self, timer: Timer) -> None:
        """Has a function not called any more; another thread may be about to call it."""


class Timers(Duty):
    """Timers in the order of their times. Any thread may call it.

    Args:
        clock: Its monotonic time.
    """

    name: ClassVar[str] = "timers"

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._heap: list[tuple[float, int, Timer]] = []
        self._numbers = itertools.count()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def after(self, delay_ms: float, call: _Call) -> Timer:
        """Calls a function after a time.

        Args:
            delay_ms: The time from now.
            call: Called by the thread of this duty, or by the one that moves time; it must neither wait nor
                raise.
        """
        timer = Timer(call)
        at_ms = self._clock.monotonic_ms() + max(0.0, delay_ms)
        with self._lock:
            heapq.heappush(self._heap, (at_ms, next(self._numbers), timer))
            self._count += 1
            is_first = self._heap[0][2] is timer
        if is_first:
            self.wake()
        return timer

    def cancel(self, timer: Timer) -> None:
        """Has a function not called any more; another thread may be about to call it."""
        with self._lock:
            if timer.call is None:
                return
            self._take(timer)
            if len(self._heap) > 2 * self._count + MIN_CANCELLED:
                self._heap = [entry for entry in self._heap if entry[2].call is not None]
                heapq.heapify(self._heap)

    @override
    def left_ms(self) -> float | None:
        with self._lock:
            while self._heap and self._heap[0][2].call is None:
                heapq.heappop(self._heap)
            return self._heap[0][0] - self._clock.monotonic_ms() if self._heap else None

    @override
    def run(self) -> None:
        now_ms = self._clock.monotonic_ms()
        end = next(self._numbers)  # timers set meanwhile have their turn later
        while (call := self._next_due(now_ms, end)) is not None:
            try:
                call()
            except Exception:  # noqa: BLE001 - the other timers must run too, and are called only once
                _log.exception("a function failed at its time")

    def _next_due(self, now_ms: float, end: int) -> _Call | None:
        """Removes one due timer; one by one, because a call may cancel those behind it."""
        with self._lock:
            while self._heap and self._heap[0][0] <= now_ms and self._heap[0][1] < end:
                timer = heapq.heappop(self._heap)[2]
                call = timer.call
                if call is not None:
                    self._take(timer)
                    return call
        return None

    def _take(self, timer: Timer) -> None:
        timer.call = None
        self._count -= 1
