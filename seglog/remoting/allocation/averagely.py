"""Shares of equal size, in neighbouring queues or in turn.

Source: ``AllocateMessageQueueAveragely.java``, ``AllocateMessageQueueAveragelyByCircle.java``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from seglog.remoting.allocation.strategy import is_member
from seglog.remoting.message_queue import MessageQueue


@dataclass(frozen=True, slots=True)
class AllocateAveragely:
    """Neighbouring queues; the first members get one more if it does not divide. Java's default."""

    name: ClassVar[str] = "AVG"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], members: Sequence[str]
    ) -> tuple[MessageQueue, ...]:
        """Returns a member's share; see :class:`~seglog.remoting.allocation.strategy.AllocationStrategy`."""
        if not is_member(group, client_id, queues, members):
            return ()
        index = members.index(client_id)
        share, rest = divmod(len(queues), len(members))
        start = index * share + min(index, rest)
        return tuple(queues[start : start + share + (index < rest)])


@dataclass(frozen=True, slots=True)
class AllocateAveragelyByCircle:
    """Queues in turn: the first to the first member, the second to the second, and so on."""

    name: ClassVar[str] = "AVG_BY_CIRCLE"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], members: Sequence[str]
    ) -> tuple[MessageQueue, ...]:
        """Returns a member's share; see :class:`~seglog.remoting.allocation.strategy.AllocationStrategy`."""
        if not is_member(group, client_id, queues, members):
            return ()
        return tuple(queues[members.index(client_id) :: len(members)])
