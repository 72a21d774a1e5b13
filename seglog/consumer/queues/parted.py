"""Queues that an application gave up while it was processing their messages, until all is committed.

Their polled messages are committed once the application has finished them, as for queues that it still has.

Called by a member's queues and commits, on the client's home; any thread may read it.
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
        clock: The clock of its client.
        past: Takes the counts of forgotten queues.
    """

    def __init__(self, clock: Clock, past: Counts) -> None:
        self._clock = clock
        self._past = past
        self._all: list[ProcessQueue] = []

    def __iter__(self) -> Iterator[ProcessQueue]:
        """Yields the present queues; the collection may be changed meanwhile."""
        return iter(tuple(self._all))

    def add(self, held: ProcessQueue) -> None:
        """Keeps a dropped queue, unless it has nothing left to commit."""
        self._all.append(held)
        self.forget()

    def forget(self, queue: MessageQueue | None = None) -> None:
        """Removes queues with nothing left to commit, and all entries of a given queue."""
        now_ms = self._clock.monotonic_ms()
        for held in self:
            if held.queue == queue or held.is_settled(now_ms):
                self._all.remove(held)
                self._past.add(held.counts)
