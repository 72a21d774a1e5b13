"""The member of a group that has each queue, as far as its broker knows: the last that began in it.

Members compute their shares themselves, and not at the same moment: one begins in a queue while another has
it for up to a second more. A commit of the other would move the group back behind what the new member has
done, or count messages as done that the new member gets too. So commits of our clients name their member, and
one that had the queue before is refused. Commits of other clients name none; they are taken, as in RocketMQ.

Called by the table of offsets, under its lock.
Truth: memory only. After a restart any member may commit until one begins in the queue.
"""

from __future__ import annotations

from seglog.broker.offsets.offset_history_query import QueueKey


class QueueOwners:
    """The owners of the queues of one broker."""

    def __init__(self) -> None:
        self._all: dict[QueueKey, str] = {}

    def take(self, queue: QueueKey, owner: str) -> str | None:
        """Notes the client id of the member that begins in a queue; returns the owner before, if another."""
        before, self._all[queue] = self._all.get(queue), owner
        return before if before != owner else None

    def has_other(self, queue: QueueKey, owner: str | None) -> bool:
        """Returns whether another member has begun in a queue since this one; never for None."""
        return owner is not None and self._all.get(queue, owner) != owner

    def forget(self, group: str | None, topic: str | None) -> None:
        """Forgets the owners in the queues of a group or a topic that is deleted; None means all."""
        for queue in [one for one in self._all if group in (None, one[0]) and topic in (None, one[1])]:
            del self._all[queue]
