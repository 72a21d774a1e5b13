"""A share that an operator has chosen: that shares are disjoint is the operator's part.

Source: ``AllocateMessageQueueByConfig.java``, which looks neither at members nor at what queues there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from seglog.remoting.message_queue import MessageQueue


class AllocateByConfig:
    """The queues that it is made with; those of the topic are not looked at.

    Args:
        queues: The share, in any order.
    """

    name: ClassVar[str] = "CONFIG"

    def __init__(self, queues: Iterable[MessageQueue]) -> None:
        self._queues = tuple(queues)

    def allocate(
        self,
        group: str,
        client_id: str,
        queues: Sequence[MessageQueue],
        members: Sequence[str],
    ) -> tuple[MessageQueue, ...]:
        """Returns the share; it refuses nothing."""
        return self._queues
