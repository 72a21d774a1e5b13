"""The counts of a consumer: totals and rates.

Source: ``ConsumerStatsManager.java``, ``StatsItem.java``.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from seglog.clock import Clock
from seglog.remoting.heartbeat import TopicRates

SLICE_MS: Final = 10_000
_MINUTE: Final = 6
_HOUR: Final = 360


class Counts:
    """The totals of a consumer.

    Attributes:
        delivered: Messages that the listener finished.
        expired: Messages that the listener did not get because their TTL had passed.
        failed: Messages that the listener failed at, counted each time.
        filtered: Pulled messages with a tag that is not wanted: codes of tags collide.
        given_up: Messages that were sent back to the broker, or to the dead letters.
        unreadable: Records that could not be decoded; they are skipped.
    """

    __slots__ = ("delivered", "expired", "failed", "filtered", "given_up", "unreadable")

    def __init__(self) -> None:
        self.delivered = 0
        self.expired = 0
        self.failed = 0
        self.filtered = 0
        self.given_up = 0
        self.unreadable = 0

    @override
    def __repr__(self) -> str:
        return f"Counts({', '.join(f'{name}={getattr(self, name)}' for name in self.__slots__)})"

    def add(self, other: Counts) -> None:
        """Adds the counts of another."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(slots=True)
class _Slice:
    number: int
    pulls: int = 0
    pulled: int = 0
    pull_ms: float = 0.0
    calls: int = 0
    call_ms: float = 0.0
    done: int = 0
    failed: int = 0


class Rates:
    """The rates of a consumer in one topic, in slices of ten seconds, for an hour. One thread at a time.

    Args:
        clock: Its monotonic time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._slices: deque[_Slice] = deque(maxlen=_HOUR)

    def pulled(self, count: int, took_ms: float) -> None:
        """Notes a pull that found messages."""
        now = self._now()
        now.pulls += 1
        now.pulled += count
        now.pull_ms += took_ms

    def consumed(self, done: int, failed: int, took_ms: float) -> None:
        """Notes messages that the listener was called with."""
        now = self._now()
        now.calls += done + failed
        now.done += done
        now.failed += failed
        now.call_ms += took_ms

    def now(self) -> TopicRates:
        """Returns the rates of the last minute."""
        number = self._number()
        minute = [one for one in self._slices if one.number > number - _MINUTE]
        pulls, calls = sum(one.pulls for one in minute), sum(one.calls for one in minute)
        seconds = _MINUTE * SLICE_MS / 1000
        return TopicRates(
            sum(one.pull_ms for one in minute) / max(1, pulls),
            sum(one.pulled for one in minute) / seconds,
            sum(one.call_ms for one in minute) / max(1, calls),
            sum(one.done for one in minute) / seconds,
            sum(one.failed for one in minute) / seconds,
            sum(one.failed for one in self._slices if one.number > number - _HOUR),
        )

    def _number(self) -> int:
        return int(self._clock.monotonic_ms() // SLICE_MS)

    def _now(self) -> _Slice:
        number = self._number()
        if not self._slices or self._slices[-1].number != number:
            self._slices.append(_Slice(number))
        return self._slices[-1]
