"""What an allocation strategy is, in which order it gets queues and members, and what it refuses.

Every member must see the same order, or shares overlap: that of Java, which compares text by UTF-16 units.

Source: ``AllocateMessageQueueStrategy.java``, ``AbstractAllocateMessageQueueStrategy.java check``,
``RebalanceImpl.java rebalanceByTopic``, which sorts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from seglog.errors import InvalidArgumentError
from seglog.remoting.message_queue import MessageQueue


class AllocationStrategy(Protocol):
    """How the queues of a topic are shared in a group; all members must have the same one."""

    @property
    def name(self) -> str:
        """What Java's ``getName()`` says."""
        ...

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], members: Sequence[str]
    ) -> tuple[MessageQueue, ...]:
        """Returns a member's share.

        Args:
            group: Whose members they are; for messages only.
            client_id: Whose share; that of a client who is no member is empty.
            queues: All of the topic, in the order of :func:`in_order`.
            members: All of the group, in the order of :func:`members_in_order`.

        Raises:
            InvalidArgumentError: An empty client id, no queues, no members.
        """
        ...


def share_of(
    strategy: AllocationStrategy,
    group: str,
    client_id: str,
    queues: Iterable[MessageQueue],
    members: Iterable[str],
) -> tuple[MessageQueue, ...]:
    """Returns a member's share of queues that come in any order.

    A member that is named twice counts twice, as in Java: a broker names a client once a connection, and
    while it still has two of one client, members that count differently would compute overlapping shares.

    Args:
        strategy: How to share.
        group: Whose members they are.
        client_id: Whose share.
        queues: All of the topic; one that comes twice counts once.
        members: All of the group.

    Returns:
        Nothing where there are no queues or no members; the strategy is not asked then.

    Raises:
        InvalidArgumentError: The strategy refuses what it got.
    """
    all_queues, everyone = in_order(set(queues)), members_in_order(members)
    if not all_queues or not everyone:
        return ()
    return strategy.allocate(group, client_id, all_queues, everyone)


def in_order(queues: Iterable[MessageQueue]) -> list[MessageQueue]:
    """Returns queues in the order of ``MessageQueue.java compareTo``."""
    return sorted(
        queues, key=lambda queue: (java_order(queue.topic), java_order(queue.broker_name), queue.queue_id)
    )


def members_in_order(members: Iterable[str]) -> list[str]:
    """Returns client ids in the order of Java."""
    return sorted(members, key=java_order)


def java_order(text: str) -> bytes:
    """Returns what sorts text as ``String.compareTo`` does: by UTF-16 units, not by code points."""
    return text.encode("utf-16-be", "surrogatepass")


def is_member(group: str, client_id: str, queues: Collection[MessageQueue], members: Collection[str]) -> bool:
    """Returns whether a client is among the members.

    Raises:
        InvalidArgumentError: An empty client id, no queues, no members.
    """
    if not client_id:
        raise InvalidArgumentError(
            f"the client id of a member of {group} is empty",
            help="give the client id that its heartbeats say",
        )
    if not queues or not members:
        missing = "members to share the queues" if queues else "queues to share"
        raise InvalidArgumentError(
            f"{group}: no {missing}",
            help="ask again when the route of the topic and the members of the group are known",
        )
    return client_id in members
