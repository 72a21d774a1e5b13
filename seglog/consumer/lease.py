"""The lock of one queue, from the holder's side.

At the broker a lock expires 60 s after its last renewal. Its holder counts from before it sent the request,
renews every 20 s, and stops consuming 30 s after the last success: so it has stopped long before another
client can begin, even if renewals fail.

Between 30 s and 60 s no other client can have had the queue, so after a renewal the holder continues where it
stopped. Later another client may have had it, and the holder starts from the committed offset.

Source: ``ProcessQueue.java REBALANCE_LOCK_MAX_LIVE_TIME``.
"""

from __future__ import annotations

from typing import Final

WORK_MS: Final = 30_000
BROKER_LIVE_MS: Final = 60_000


class Lease:
    """One queue's lock.

    Attributes:
        work_until_ms: Monotonic time until which the queue may be consumed.
        ours_until_ms: Monotonic time until which no other client can have got it.
    """

    __slots__ = ("ours_until_ms", "work_until_ms")

    def __init__(self) -> None:
        self.work_until_ms = -1.0
        self.ours_until_ms = -1.0

    def renew(self, asked_ms: float) -> bool:
        """Notes a successful request that was sent at ``asked_ms``.

        Returns whether another client may have had the queue meanwhile.
        """
        was_over = asked_ms > self.ours_until_ms
        self.ours_until_ms = asked_ms + BROKER_LIVE_MS
        self.work_until_ms = asked_ms + WORK_MS
        return was_over

    def lose(self) -> None:
        """Notes that the lock is lost."""
        self.work_until_ms = self.ours_until_ms = -1.0
