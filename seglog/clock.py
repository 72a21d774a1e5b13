"""Time as an argument: code that waits or makes time stamps takes a :class:`Clock`.

With :class:`VirtualClock` a lease of 60 s or a retention of 72 h runs in a test in microseconds. No other
module calls ``time`` for this.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from datetime import timedelta
from typing import Final, Protocol

from typing_extensions import override


class Clock(Protocol):
    """Source of time stamps and of timed waits."""

    def now_ms(self) -> int:
        """Returns milliseconds since the epoch; may jump when the machine's time is set."""

    def monotonic_ms(self) -> float:
        """Returns milliseconds since an arbitrary moment; never goes back."""

    def wait(self, condition: threading.Condition, timeout_ms: float | None) -> bool:
        """Waits on ``condition``, which the caller holds, until notified or ``timeout_ms`` have passed.

        Returns:
            False if the time passed, True otherwise; the caller checks its own predicate again.
        """


CLOCK_CALLS: Final = ("now_ms", "monotonic_ms", "wait")
"""The methods by which an argument is recognized as a clock."""


def as_ms(duration: int | timedelta) -> int:
    """Returns a duration in milliseconds; the microseconds of a ``timedelta`` are rounded."""
    return round(duration / timedelta(milliseconds=1)) if isinstance(duration, timedelta) else duration


class SystemClock:
    """The machine's clock."""

    @override
    def __repr__(self) -> str:
        return "SystemClock()"

    def now_ms(self) -> int:
        """Returns the wall clock in milliseconds."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        """Returns the monotonic clock in milliseconds."""
        return time.monotonic_ns() / 1e6

    def wait(self, condition: threading.Condition, timeout_ms: float | None) -> bool:
        """Waits in real time."""
        if timeout_ms is None:
            return condition.wait()
        return condition.wait(min(max(0.0, timeout_ms) / 1000, threading.TIMEOUT_MAX))


class VirtualClock:
    """A clock that moves only by calls, for tests and replays.

    Args:
        start_ms: First value of both clocks.
    """

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = start_ms
        self._lock = threading.Lock()
        self._waiting: Counter[threading.Condition] = Counter()

    @override
    def __repr__(self) -> str:
        seconds, ms = divmod(self._now_ms, 1000)
        try:
            moment = time.strftime(f"%Y-%m-%d %H:%M:%S.{ms:03d} UTC", time.gmtime(seconds))
        except (ValueError, OverflowError, OSError):  # the time is outside of the calendar
            moment = f"{self._now_ms} ms"
        return f"<VirtualClock at {moment}>"

    def now_ms(self) -> int:
        """Returns the virtual time."""
        return self._now_ms

    def monotonic_ms(self) -> float:
        """Returns the virtual time."""
        return float(self._now_ms)

    def advance(self, by: int | timedelta) -> None:
        """Moves time forward and wakes all waits whose deadline may have passed.

        Args:
            by: Milliseconds, or a ``timedelta``.
        """
        by_ms = as_ms(by)
        with self._lock:
            self._now_ms += by_ms
            waiting = list(self._waiting)
        for condition in waiting:
            with condition:
                condition.notify_all()

    def wait(self, condition: threading.Condition, timeout_ms: float | None) -> bool:
        """Waits until notified; returns False once virtual time has reached the deadline."""
        # Under this lock advance() either finds this wait, or has moved the time before the deadline is
        # computed.
        with self._lock:
            self._waiting[condition] += 1
            deadline_ms = math.inf if timeout_ms is None else self._now_ms + timeout_ms
        try:
            if self._now_ms >= deadline_ms:
                return False
            condition.wait()
        finally:
            with self._lock:
                self._waiting -= Counter((condition,))
        return self._now_ms < deadline_ms
