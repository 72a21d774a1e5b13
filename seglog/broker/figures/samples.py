"""Counts as they were at moments of the last minute, hour and day, so that rates can be told of each.

A count only grows, and one that did not change needs no sample. Of each step the last sample is kept; so a
rate looks back one step further than it should at most.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Hashable, Mapping
from typing import Final, NamedTuple, TypeAlias

Counts: TypeAlias = Mapping[Hashable, int]
_LEAST_MS: Final = 1_000
"""A rate is never told of less."""


class Span(enum.Enum):
    """How far a rate looks back: milliseconds, and how many pass between two samples."""

    SECONDS = 10_000, 10_000
    MINUTE = 60_000, 10_000
    MINUTES = 600_000, 60_000
    HOUR = 3_600_000, 600_000
    DAY = 86_400_000, 3_600_000


class Rate(NamedTuple):
    """What was counted in a span, and how much a second that is."""

    total: int
    per_s: float


class Samples:
    """Samples of counts; the caller sees to it that one thread calls it.

    Args:
        now_ms: Monotonic time.
        counts: As they are now.
    """

    def __init__(self, now_ms: float, counts: Counts) -> None:
        self._series = {span: deque([(now_ms, dict(counts))]) for span in Span}

    def take(self, now_ms: float, counts: Counts) -> None:
        """Takes a sample, in place of the last one if that is of the same step; the first one stays."""
        copied = dict(counts)  # one for all spans
        for span, series in self._series.items():
            length_ms, step_ms = span.value
            if len(series) > 1 and series[-1][0] // step_ms == now_ms // step_ms:
                series.pop()
            series.append((now_ms, copied))
            while len(series) > 1 and series[1][0] <= now_ms - length_ms:
                series.popleft()

    def rate(self, span: Span, now_ms: float, name: Hashable, count: int) -> Rate:
        """Returns how much of a count came in a span.

        Args:
            span: The span, or since the beginning if that is less ago.
            now_ms: Monotonic time.
            name: Of the count.
            count: As it is now.
        """
        length_ms, step_ms = span.value
        series = self._series[span]
        began_ms, counts = series[0]
        for one in series:
            if one[0] > now_ms - length_ms:
                break
            began_ms, counts = one
        grown = count - counts.get(name, 0)
        passed_ms = max(_LEAST_MS, min(now_ms - began_ms, length_ms + step_ms))
        return Rate(grown, grown * 1_000 / passed_ms)
