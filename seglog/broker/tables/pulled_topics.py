"""Topics that groups pull with a subscription in the pull itself, which no heartbeat names.

A consumer that chooses its queues itself need not name its topics in its heartbeats. Requests about a group's
topics (its lag, a clone of its offsets) include those that it pulled in the last ten minutes.

Truth: memory only. Source: ``ConsumerManager.java compensateSubscribeData, removeExpireConsumerGroupInfo``.
"""

from __future__ import annotations

from typing import Final

from seglog.clock import Clock

LIVE_MS: Final = 600_000
"""``subscriptionExpiredTimeout``."""
_MIN_NAMES: Final = 64
"""Number of outdated entries at which they are removed."""


class PulledTopics:
    """The times of the last such pulls, by group and topic. Any thread may call it.

    Args:
        clock: Its monotonic time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pulled_ms: dict[tuple[str, str], float] = {}
        self._most = _MIN_NAMES

    def note(self, group: str, topic: str) -> None:
        """Notes a pull."""
        now_ms = self._clock.monotonic_ms()
        self._pulled_ms[group, topic] = now_ms
        if len(self._pulled_ms) > self._most:
            kept = {key: at_ms for key, at_ms in self._pulled_ms.copy().items() if now_ms - at_ms <= LIVE_MS}
            self._pulled_ms = kept
            self._most = 2 * len(kept) + _MIN_NAMES

    def has(self, group: str, topic: str) -> bool:
        """Returns whether a group has pulled a topic lately."""
        at_ms = self._pulled_ms.get((group, topic))
        return at_ms is not None and self._clock.monotonic_ms() - at_ms <= LIVE_MS
