"""The durations of sends and pulls of a server, in the figures that RocketMQ's tools read.

Source: ``StoreStatsService.java``, ``setPutMessageEntireTimeMax, putMessageDistributeTimeToString,
getRuntimeInfo``. Difference: a call is timed from its turn until its answer is ready, as a client sees it;
RocketMQ leaves out the checks before the message is put or read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

_SPAN_S: Final = 60.0
"""Shares and percentiles are those of the last whole minute, as in RocketMQ."""
_MOST_MS: Final = 10_000
_BOUNDS_MS: Final = (
    *(("[<=0ms]", 0), ("[0~10ms]", 1), ("[10~50ms]", 10), ("[50~100ms]", 50), ("[100~200ms]", 100)),
    *(("[200~500ms]", 200), ("[500ms~1s]", 500), ("[1~2s]", 1_000), ("[2~3s]", 2_000), ("[3~4s]", 3_000)),
    *(("[4~5s]", 4_000), ("[5~10s]", 5_000), ("[10s~]", _MOST_MS)),
)
"""RocketMQ's names of the shares, and the milliseconds from which on a call counts in each."""


class CallTimes:
    """The durations of one server's calls. The loop notes them; any thread may read them.

    Args:
        now_s: The loop's time.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._ends_s = now_s() + _SPAN_S
        self._puts: Counter[int] = Counter()  # by whole milliseconds, in this minute
        self._last: Mapping[int, int] | None = None  # in the one before
        self._most_put_ms = self._most_get_ms = 0

    def note_get(self, took_s: float) -> None:
        """Notes a pull."""
        self._most_get_ms = max(self._most_get_ms, int(took_s * 1_000))

    def note_put(self, began_s: float, now_s: float) -> None:
        """Notes a send: the start of its turn, and the time of its answer."""
        if now_s >= self._ends_s:
            self._turn(now_s)
        took_ms = int((now_s - began_s) * 1_000)
        self._puts[min(took_ms, _MOST_MS)] += 1
        self._most_put_ms = max(self._most_put_ms, took_ms)

    def figures(self) -> dict[str, str]:
        """Returns the figures by RocketMQ's names."""
        now_s = self._now_s()
        if now_s >= self._ends_s:
            self._turn(now_s)
        return {
            "getMessageEntireTimeMax": str(self._most_get_ms),
            "putLatency99": f"{self._quantile_ms(0.99):.2f}",
            "putLatency999": f"{self._quantile_ms(0.999):.2f}",
            "putMessageDistributeTime": self._shares(),
            "putMessageEntireTimeMax": str(self._most_put_ms),
        }

    def _turn(self, now_s: float) -> None:
        """Begins a new minute; if more than a minute has passed, the last one is empty."""
        is_next = now_s < self._ends_s + _SPAN_S
        self._last = self._puts if is_next else {}
        self._puts = Counter()
        self._ends_s = now_s + _SPAN_S

    def _shares(self) -> str:
        if self._last is None:
            return "null"  # as RocketMQ has it in its first minute
        last = self._last
        ends = [*(begin for _, begin in _BOUNDS_MS), _MOST_MS + 1]
        counts = [
            sum(number for ms, number in last.items() if begin <= ms < end) for begin, end in pairwise(ends)
        ]
        return "".join(f"{name}:{count} " for (name, _), count in zip(_BOUNDS_MS, counts, strict=True))

    def _quantile_ms(self, share: float) -> float:
        last = self._last or {}
        wanted, seen = sum(last.values()) * share, 0
        for took_ms in sorted(last):
            seen += last[took_ms]
            if seen >= wanted:
                return float(took_ms)
        return 0.0
