"""How long an address is left alone after it could not be used."""

from __future__ import annotations

from typing import Final

FIRST_MS: Final = 100
LONGEST_MS: Final = 1_000
"""RocketMQ's client tries again with each request, and each waits for its connection."""


class Backoff:
    """Waits that double with each failure. One thread at a time.

    Attributes:
        why: Of the last failure; None where there was none since the last success.
    """

    def __init__(self) -> None:
        self.why: str | None = None
        self._next_ms = FIRST_MS
        self._until_ms = 0.0

    def failed(self, now_ms: float, why: str) -> None:
        """Begins a wait."""
        self.why = why
        self._until_ms = now_ms + self._next_ms
        self._next_ms = min(2 * self._next_ms, LONGEST_MS)

    def succeeded(self) -> None:
        """Ends it, and the next one is short again."""
        self.why = None
        self._next_ms = FIRST_MS
        self._until_ms = 0.0

    def left_ms(self, now_ms: float) -> float:
        """Returns how long the wait goes on; 0 without one."""
        return max(0.0, self._until_ms - now_ms)
