"""Shares by consistent hashing: when a member joins or leaves, few queues move.

Each member has several places on a ring; a queue belongs to the member at the next place from its own hash
on, and after the last place the ring continues with the first.

Source: ``AllocateMessageQueueConsistentHash.java``, ``ConsistentHashRouter.java``, ``VirtualNode.java``.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from seglog.arguments import MAX_I32, as_int
from seglog.remoting.allocation.strategy import is_member
from seglog.remoting.message_queue import MessageQueue

VIRTUAL_NODES: Final = 10
"""Places of a member in the ring unless another number is given."""
_HASH_DIGITS: Final = 8


def md5_hash(key: str) -> int:
    """Returns the first 32 bits of a key's MD5, as Java's default hash function does."""
    # What Java cannot encode it writes as "?", and so does "replace".
    digest = hashlib.md5(key.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
    return int(digest[:_HASH_DIGITS], 16)


class AllocateConsistentHash:
    """Shares by a ring of hashes; sizes of shares differ.

    Args:
        virtual_nodes: Places of each member in the ring; with 0 no member gets a queue.
        hash_of: What puts a key in its place, a signed 64-bit number (``HashFunction.java``).

    Raises:
        InvalidArgumentError: A negative number of places.
    """

    name: ClassVar[str] = "CONSISTENT_HASH"

    def __init__(self, virtual_nodes: int = VIRTUAL_NODES, hash_of: Callable[[str], int] = md5_hash) -> None:
        self._virtual_nodes = as_int("virtual_nodes", virtual_nodes, 0, MAX_I32)
        self._hash_of = hash_of

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], members: Sequence[str]
    ) -> tuple[MessageQueue, ...]:
        """Returns a member's share; see :class:`~seglog.remoting.allocation.strategy.AllocationStrategy`."""
        if not is_member(group, client_id, queues, members):
            return ()
        ring = self._ring(members)
        places = sorted(ring)
        if not places:
            return ()
        share = []
        for queue in queues:
            at = bisect_left(places, self._hash_of(_java_text(queue)))
            if ring[places[at % len(places)]] == client_id:
                share.append(queue)
        return tuple(share)

    def _ring(self, members: Sequence[str]) -> dict[int, str]:
        """Returns the member at each place; of two members at one place the later one has it."""
        ring: dict[int, str] = {}
        seen: set[str] = set()
        for member in members:
            # A member that is listed again gets further places, numbered behind its first ones.
            first = sum(1 for other in ring.values() if other == member) if member in seen else 0
            seen.add(member)
            for number in range(first, first + self._virtual_nodes):
                ring[self._hash_of(f"{member}-{number}")] = member
        return ring


def _java_text(queue: MessageQueue) -> str:
    """Returns ``MessageQueue.java toString()``, which is a queue's key in the ring."""
    return f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, queueId={queue.queue_id}]"
