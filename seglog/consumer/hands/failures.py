"""Counts similar failures of each message in this process, so that repeated ones are logged in short."""

from __future__ import annotations

import threading
from typing import Final

from seglog.forked import abandon_in_children

MOST_KEPT: Final = 1_024
"""Most messages that are remembered; the oldest are dropped, and count as new when they fail again."""


class Failures:
    """The last failures of a consumer. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[str, tuple[object, int]] = {}
        abandon_in_children(self, Failures._abandon)

    def _abandon(self) -> None:
        self._lock = threading.Lock()  # in a forked child: another thread of the parent may have held it

    def count(self, message: str, error: Exception) -> int:
        """Notes a failure; returns how often the message has failed in a row with such an error, from 1 on.

        Args:
            message: Its unique key or id.
            error: The exception; two are alike if they have the same type and were raised at the same line.
        """
        alike = type(error), _place_of(error)
        with self._lock:
            before, times = self._last.pop(message, (None, 0))
            times = times + 1 if before == alike else 1
            self._last[message] = alike, times
            if len(self._last) > MOST_KEPT:
                del self._last[next(iter(self._last))]
        return times


def _place_of(error: Exception) -> object:
    """Returns the line at which an error was raised."""
    trace, place = error.__traceback__, None
    while trace is not None:
        place = trace.tb_frame.f_code, trace.tb_lineno
        trace = trace.tb_next
    return place
