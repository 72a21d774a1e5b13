"""Queues that an application has given up while it was at messages of them, until nothing is left to commit.

What it has polled of them is committed once it says that it is done with it, as of queues that it has.

Called by what a member's queues and commits are in, on the client's home; what is in it any thread may read.
Truth: memory only.
"""

from __future__ import annotations

from collections.abc import Iterator

from seglog.clock import Clock
from seglog.consumer.counts import Counts
from seglog.consumer.process_queue import ProcessQueue
from seglog.remoting.message_queue import MessageQueue


class PartedQueues:
    """The given up queues of one member.

    Args:
        clock: Of its client.
        past: Counts what was done of queues that are forgotten.
    """

    def __init__(self, clock: Clock, past: Counts) -> None:
        self._clock = clock
        self._past = past
        self._all: list[ProcessQueue] = []

    def __iter__(self) -> Iterator[ProcessQueue]:
        """Yields those that there are now; it may be changed meanwhile."""
        return iter(tuple(self._all))

    def add(self, held: ProcessQueue) -> None:
        """Keeps a dropped queue, unless nothing is left to be committed of it."""
        self._all.append(held)
        self.forget()

    def forget(self, queue: MessageQueue | None = None) -> None:
        """Forgets those of which nothing is left to be committed, and all that are a given queue."""
        now_ms = self._clock.monotonic_ms()
        for held in self:
            if held.queue == queue or held.is_settled(now_ms):
                self._all.remove(held)
                self._past.add(held.counts)
