"""The pause before an address that failed is used again."""

from __future__ import annotations

from typing import Final

FIRST_MS: Final = 100
LONGEST_MS: Final = 1_000
"""RocketMQ's client has no pause: it tries again with each request, which waits for its connection."""


class Backoff:
    """Pauses that double with each failure. One thread at a time.

    Attributes:
        why: The reason of the last failure; None if there was none since the last success.
    """

    def __init__(self) -> None:
        self.why: str | None = None
        self._next_ms = FIRST_MS
        self._until_ms = 0.0

    def failed(self, now_ms: float, why: str) -> None:
        """Begins a pause."""
        self.why = why
        self._until_ms = now_ms + self._next_ms
        self._next_ms = min(2 * self._next_ms, LONGEST_MS)

    def succeeded(self) -> None:
        """Ends the pause; the next one is short again."""
        self.why = None
        self._next_ms = FIRST_MS
        self._until_ms = 0.0

    def left_ms(self, now_ms: float) -> float:
        """Returns the rest of the pause in ms; 0 without one."""
        return max(0.0, self._until_ms - now_ms)
