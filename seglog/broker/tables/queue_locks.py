"""Which client of a group may consume which queue in order.

A lock lives 60 s after its last renewal, by the clock that is given, and then anyone may take it. It is
an agreement between clients: pulls do not look at it, as in RocketMQ, unless the broker is set to
(``BrokerConfig.strict_queue_lock``).

Truth: memory only. After a restart of the broker all queues are free, and the owners take them again
with their next renewal.

Source: ``RebalanceLockManager.java REBALANCE_LOCK_MAX_LIVE_TIME``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from seglog.clock import Clock
from seglog.remoting.message_queue import MessageQueue


@dataclass(frozen=True, slots=True)
class QueueLock:
    """A lock as it is now.

    Attributes:
        age_ms: Since the last renewal.
        left_ms: Until it expires; below 0 once it has.
        is_expired: Whether another client may take it.
    """

    group: str
    queue: MessageQueue
    client_id: str
    age_ms: float
    left_ms: float
    is_expired: bool


class QueueLocks:
    """The lock table of a broker. Any thread may call it.

    Args:
        clock: Its monotonic time ages the locks.
        live_ms: Age up to which a lock holds.
    """

    def __init__(self, clock: Clock, live_ms: int) -> None:
        self._clock = clock
        self._live_ms = live_ms
        self._mutex = threading.Lock()
        self._groups: dict[str, dict[MessageQueue, tuple[str, float]]] = {}
        self.changes = 0
        """How often locks were taken, renewed or given back."""

    @property
    def live_ms(self) -> int:
        """Age up to which a lock holds."""
        return self._live_ms

    def lock(self, group: str, queues: Iterable[MessageQueue], client_id: str) -> frozenset[MessageQueue]:
        """Takes or renews locks for a client; returns the queues that are now its own."""
        now_ms = self._clock.monotonic_ms()
        taken: set[MessageQueue] = set()
        with self._mutex:
            self.changes += 1
            held = self._groups.setdefault(group, {})
            for queue in queues:
                owner, renewed_ms = held.get(queue, (client_id, now_ms))
                if owner == client_id or now_ms - renewed_ms > self._live_ms:
                    held[queue] = (client_id, now_ms)
                    taken.add(queue)
        return frozenset(taken)

    def unlock(self, group: str, queues: Iterable[MessageQueue], client_id: str) -> None:
        """Gives back the client's own locks; those of others stay."""
        with self._mutex:
            self.changes += 1
            held = self._groups.get(group, {})
            for queue in queues:
                if held.get(queue, (None, 0.0))[0] == client_id:
                    del held[queue]
            if not held:
                self._groups.pop(group, None)

    def owner(self, group: str, queue: MessageQueue) -> str | None:
        """Returns the client whose lock on a queue has not expired, None if the queue is free."""
        now_ms = self._clock.monotonic_ms()
        with self._mutex:
            client_id, renewed_ms = self._groups.get(group, {}).get(queue, (None, now_ms))
            return client_id if now_ms - renewed_ms <= self._live_ms else None

    def is_any_live(self, group: str) -> bool:
        """Returns whether the group consumes in order: some lock of it has not expired."""
        now_ms = self._clock.monotonic_ms()
        with self._mutex:
            held = self._groups.get(group, {})
            return any(now_ms - renewed_ms <= self._live_ms for _owner, renewed_ms in held.values())

    def all(self) -> list[QueueLock]:
        """Returns every lock, expired ones included, by group and queue."""
        now_ms = self._clock.monotonic_ms()
        with self._mutex:
            locks = [
                QueueLock(group, queue, owner, age_ms, self._live_ms - age_ms, age_ms > self._live_ms)
                for group, held in self._groups.items()
                for queue, (owner, renewed_ms) in held.items()
                for age_ms in [now_ms - renewed_ms]
            ]
        return sorted(locks, key=lambda lock: (lock.group, lock.queue))
