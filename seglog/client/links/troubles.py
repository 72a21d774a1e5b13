"""Limits the logging of repeated failures: at once, then after ever longer times, so that no disk fills.

The line to an unreachable address logs that, once for all requests: failures for this reason alone are DEBUG
elsewhere. Refusals of brokers and missing answers are logged by the caller, now and then for each kind.
"""

from __future__ import annotations

import logging
import math
import threading
from typing import Final

from seglog.clock import Clock
from seglog.errors import CannotConnectError, ClientClosedError, ConnectionEndedError, SeglogError
from seglog.logs import logger

FIRST_MS: Final = 30_000
"""The pause before a failure is logged again; each further pause is twice as long."""
LONGEST_MS: Final = 32 * FIRST_MS
CALM_MS: Final = 120_000
"""After this long without a failure the next one is new: longer than the interval of timed work, 30 s."""
MOST_KINDS: Final = 4_096
_SAID_ELSEWHERE: Final = (ClientClosedError, CannotConnectError, ConnectionEndedError)
_log = logger(__name__)


def level_of(error: SeglogError) -> int:
    """Returns the level at which the log says that what was asked has failed.

    The line logs that an address is unreachable. A failure only because the client was closed follows from a
    close that timed out before its listeners ended: its error was raised to the caller.

    Args:
        error: What it failed with.
    """
    return logging.DEBUG if isinstance(error, _SAID_ELSEWHERE) else logging.WARNING


class Seldom:
    """Decides when one trouble is logged. One thread at a time."""

    __slots__ = ("_due_ms", "_gap_ms", "_last_ms", "_said_ms")

    def __init__(self) -> None:
        self._due_ms = self._last_ms = self._said_ms = -math.inf
        self._gap_ms = FIRST_MS

    def is_due(self, now_ms: float) -> bool:
        """Returns whether the present trouble must be logged; the caller then logs it."""
        if now_ms - self._last_ms >= CALM_MS:
            self.over()
        self._last_ms = now_ms
        if now_ms < self._due_ms:
            return False
        self._said_ms, self._due_ms = now_ms, now_ms + self._gap_ms
        self._gap_ms = min(2 * self._gap_ms, LONGEST_MS)
        return True

    def over(self) -> None:
        """Makes the next trouble count as a first one, but not twice in ``FIRST_MS``."""
        self._gap_ms = FIRST_MS
        self._due_ms = min(self._due_ms, self._said_ms + FIRST_MS)


class Troubles:
    """The troubles of one client, whose kinds are each logged only now and then. Any thread may call it.

    Args:
        clock: The clock of the pauses.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kinds: dict[str, Seldom] = {}

    def level(self, kind: str, error: SeglogError) -> int:
        """Returns the level at which the log says that what was asked has failed.

        Args:
            kind: The kind of request; each has its own pauses.
            error: What it failed with.
        """
        level = level_of(error)
        return level if level == logging.DEBUG else self.seldom(kind)

    def seldom(self, kind: str) -> int:
        """Returns WARNING if a kind must be logged again, else DEBUG."""
        with self._lock:
            if len(self._kinds) >= MOST_KINDS:
                self._kinds.clear()
            trouble = self._kinds.setdefault(kind, Seldom())
            return logging.WARNING if trouble.is_due(self._clock.monotonic_ms()) else logging.DEBUG


class Absence:
    """Logs that an address is unreachable, first, now and then, and when it is back. For one thread.

    Args:
        address: "host:port".
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._seldom = Seldom()
        self._since_ms: float | None = None
        self._failures = 0
        self._is_said = False

    def failed(self, now_ms: float, why: str) -> None:
        """Notes that a needed connection has ended or could not be made.

        Args:
            now_ms: Monotonic time.
            why: The reason, with the address.
        """
        self._failures += 1
        if self._since_ms is None:
            self._since_ms = now_ms
            more = "each request tries it again"
        else:
            more = (
                f"it is away for {(now_ms - self._since_ms) / 1000:.0f} s, was tried {self._failures} times"
            )
        is_due = self._seldom.is_due(now_ms)
        self._is_said |= is_due
        _log.log(logging.WARNING if is_due else logging.DEBUG, "%s; %s", why, more)

    def served(self, now_ms: float) -> None:
        """Notes that the address has answered."""
        if self._since_ms is not None:
            away_s = (now_ms - self._since_ms) / 1000
            level = logging.INFO if self._is_said else logging.DEBUG
            _log.log(level, "connected again to %s, after %.1f s", self._address, away_s)
            self._since_ms, self._failures, self._is_said = None, 0, False
            self._seldom.over()
