"""Queue locks: the client of a group that may consume a queue in order.

A lock expires 60 s after its last renewal, by the given clock; then any client may take it. It is an
agreement between clients: pulls do not check it, as in RocketMQ, unless the broker is set to
(``BrokerConfig.strict_queue_lock``).

Truth: memory, and over a restart the record of owners (``lock_snapshot.py``). Connected owners may go on
consuming while the broker restarts, so they keep their locks when it opens, as if just renewed: for 60 s no
other client can take them. A client stops 30 s after its last renewal, so two clients never consume one
queue. Owners in the broker's process died with it, and their queues are free.

Source: ``RebalanceLockManager.java REBALANCE_LOCK_MAX_LIVE_TIME``. Difference: RocketMQ forgets all owners.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from seglog.clock import Clock
from seglog.remoting.message_queue import MessageQueue


@dataclass(frozen=True, slots=True)
class QueueLock:
    """The present state of a lock.

    Attributes:
        age_ms: Time since the last renewal.
        left_ms: Time until it expires; below 0 after that.
        is_expired: Whether another client may take it.
        is_lasting: Whether it holds over a restart of the broker.
    """

    group: str
    queue: MessageQueue
    client_id: str
    age_ms: float
    left_ms: float
    is_expired: bool
    is_lasting: bool = False


class Owner(NamedTuple):
    """The owner of a lock.

    Attributes:
        client_id: The client.
        renewed_ms: Monotonic time of the last renewal.
        is_lasting: Whether it holds over a restart of the broker.
    """

    client_id: str
    renewed_ms: float
    is_lasting: bool


class QueueLocks:
    """The lock table of a broker. Any thread may call it.

    Args:
        clock: Its monotonic time ages the locks.
        live_ms: Age in ms up to which a lock holds.
    """

    def __init__(self, clock: Clock, live_ms: int) -> None:
        self._clock = clock
        self._live_ms = live_ms
        self._mutex = threading.Lock()
        self._groups: dict[str, dict[MessageQueue, Owner]] = {}
        self.changes = 0
        """How often clients asked for locks or gave some back, also where no lock changed."""
        self.lasting_changes = 0
        """How often a lock that holds over a restart got or lost its owner."""

    @property
    def live_ms(self) -> int:
        """Age up to which a lock holds."""
        return self._live_ms

    def lock(
        self, group: str, queues: Iterable[MessageQueue], client_id: str, *, is_lasting: bool = False
    ) -> frozenset[MessageQueue]:
        """Takes or renews locks for a client; returns the queues that are now its own.

        Args:
            group: The group.
            queues: The queues that it asks for.
            client_id: The client.
            is_lasting: Whether the locks hold over a restart of the broker.
        """
        mine = Owner(client_id, self._clock.monotonic_ms(), is_lasting)
        taken: set[MessageQueue] = set()
        with self._mutex:
            self.changes += 1
            held = self._groups.setdefault(group, {})
            for queue in queues:
                before = held.get(queue)
                is_mine = before is not None and before.client_id == client_id
                if before is None or is_mine or mine.renewed_ms - before.renewed_ms > self._live_ms:
                    held[queue] = mine
                    taken.add(queue)
                    if _lasting(before) != _lasting(mine):
                        self.lasting_changes += 1
        return frozenset(taken)

    def restore(self, owners: Iterable[tuple[str, MessageQueue, str]]) -> None:
        """Restores lasting locks after a restart: group, queue and client, as if renewed now."""
        now_ms = self._clock.monotonic_ms()
        with self._mutex:
            for group, queue, client_id in owners:
                self._groups.setdefault(group, {})[queue] = Owner(client_id, now_ms, is_lasting=True)

    def unlock(self, group: str, queues: Iterable[MessageQueue], client_id: str) -> None:
        """Releases the client's own locks; those of others stay."""
        with self._mutex:
            self.changes += 1
            held = self._groups.get(group, {})
            for queue in queues:
                before = held.get(queue)
                if before is not None and before.client_id == client_id:
                    del held[queue]
                    self.lasting_changes += before.is_lasting
            if not held:
                self._groups.pop(group, None)

    def owner(self, group: str, queue: MessageQueue) -> str | None:
        """Returns the client whose lock on a queue has not expired, None if the queue is free."""
        now_ms = self._clock.monotonic_ms()
        with self._mutex:
            found = self._groups.get(group, {}).get(queue)
        return None if found is None or now_ms - found.renewed_ms > self._live_ms else found.client_id

    def is_any_live(self, group: str) -> bool:
        """Returns whether the group consumes in order: one of its locks has not expired."""
        now_ms = self._clock.monotonic_ms()
        with self._mutex:
            held = self._groups.get(group, {})
            return any(now_ms - owner.renewed_ms <= self._live_ms for owner in held.values())

    def owners(self) -> list[tuple[str, MessageQueue, Owner, float]]:
        """Returns the owner of each lock with its age in ms, expired ones included, in no order."""
        now_ms = self._clock.monotonic_ms()
        with self._mutex:
            return [
                (group, queue, owner, now_ms - owner.renewed_ms)
                for group, held in self._groups.items()
                for queue, owner in held.items()
            ]

    def all(self) -> list[QueueLock]:
        """Returns every lock, expired ones included, by group and queue."""
        live_ms = self._live_ms
        locks = [
            QueueLock(
                group, queue, owner.client_id, age_ms, live_ms - age_ms, age_ms > live_ms, owner.is_lasting
            )
            for group, queue, owner, age_ms in self.owners()
        ]
        return sorted(locks, key=lambda lock: (lock.group, lock.queue))


def _lasting(owner: Owner | None) -> str | None:
    """Returns the client whose lock holds over a restart, None if there is none."""
    return owner.client_id if owner is not None and owner.is_lasting else None
