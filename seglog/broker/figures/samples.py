"""Samples of counts over the last minute, hour and day, to compute the rate over each.

A count only grows, and an unchanged count needs no sample. The last sample of each step is kept, so a rate
looks back at most one step too far.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Hashable, Mapping
from typing import Final, NamedTuple, TypeAlias

Counts: TypeAlias = Mapping[Hashable, int]
_LEAST_MS: Final = 1_000
"""A rate is never computed over less time."""


class Span(enum.Enum):
    """The span of a rate in milliseconds, and the milliseconds between two samples."""

    SECONDS = 10_000, 10_000
    MINUTE = 60_000, 10_000
    MINUTES = 600_000, 60_000
    HOUR = 3_600_000, 600_000
    DAY = 86_400_000, 3_600_000


class Rate(NamedTuple):
    """The count in a span, and the rate per second."""

    total: int
    per_s: float


class Samples:
    """Samples of counts; only one thread at a time may call it.

    Args:
        now_ms: Monotonic time.
        counts: The present counts.
    """

    def __init__(self, now_ms: float, counts: Counts) -> None:
        self._series = {span: deque([(now_ms, dict(counts))]) for span in Span}

    def take(self, now_ms: float, counts: Counts) -> None:
        """Takes a sample; it replaces the last sample if both are of the same step, but never the first."""
        copied = dict(counts)  # one for all spans
        for span, series in self._series.items():
            length_ms, step_ms = span.value
            if len(series) > 1 and series[-1][0] // step_ms == now_ms // step_ms:
                series.pop()
            series.append((now_ms, copied))
            while len(series) > 1 and series[1][0] <= now_ms - length_ms:
                series.popleft()

    def rate(self, span: Span, now_ms: float, name: Hashable, count: int) -> Rate:
        """Returns the growth of a count in a span.

        Args:
            span: The span; the time since the beginning if that is shorter.
            now_ms: Monotonic time.
            name: The name of the count.
            count: Its present value.
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
