"""Shares by machine room: a member consumes near itself.

Source: ``AllocateMessageQueueByMachineRoom.java``, ``AllocateMachineRoomNearby.java``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Final

from seglog.errors import InvalidArgumentError
from seglog.remoting.allocation.strategy import AllocationStrategy, is_member, java_order
from seglog.remoting.message_queue import MessageQueue

_ROOM_AND_BROKER: Final = 2


class AllocateByMachineRoom:
    """Equal shares of the queues whose brokers stand in some rooms: they are called ``room@broker``.

    Neighbouring queues, and what does not divide in turn to the first members. Queues of other brokers are
    no member's.

    Args:
        rooms: The rooms (``consumeridcs``).
    """

    name: ClassVar[str] = "MACHINE_ROOM"

    def __init__(self, rooms: Iterable[str]) -> None:
        self._rooms = frozenset(rooms)

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], members: Sequence[str]
    ) -> tuple[MessageQueue, ...]:
        """Returns a member's share; see :class:`~seglog.remoting.allocation.strategy.AllocationStrategy`."""
        if not is_member(group, client_id, queues, members):
            return ()
        index = members.index(client_id)
        near = [queue for queue in queues if _room_of(queue.broker_name) in self._rooms]
        share, rest = divmod(len(near), len(members))
        start = share * index
        last = near[share * len(members) + index :][:1] if index < rest else []
        return (*near[start : start + share], *last)


class AllocateMachineRoomNearby:
    """Queues of a room go to the members in that room; those of a room without members to all.

    Args:
        strategy: How the queues are shared among those that they go to.
        room_of_queue: In which room a queue's broker stands (``brokerDeployIn``); an empty room is refused.
        room_of_client: In which room the client with an id stands (``consumerDeployIn``).
    """

    def __init__(
        self,
        strategy: AllocationStrategy,
        room_of_queue: Callable[[MessageQueue], str],
        room_of_client: Callable[[str], str],
    ) -> None:
        self._strategy = strategy
        self._room_of_queue = room_of_queue
        self._room_of_client = room_of_client

    @property
    def name(self) -> str:
        """What Java's ``getName()`` says: that of the strategy within is its end."""
        return f"MACHINE_ROOM_NEARBY-{self._strategy.name}"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], members: Sequence[str]
    ) -> tuple[MessageQueue, ...]:
        """Returns a member's share: first that of its own room, then those of rooms without members.

        Raises:
            InvalidArgumentError: As every strategy, and where a queue or a member stands in no room.
        """
        if not is_member(group, client_id, queues, members):
            return ()
        near: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            near.setdefault(_known(self._room_of_queue(queue), f"the broker of {queue}"), []).append(queue)
        present: dict[str, list[str]] = {}
        for member in members:
            present.setdefault(_known(self._room_of_client(member), f"the client {member}"), []).append(
                member
            )
        own = self._room_of_client(client_id)
        share: list[MessageQueue] = []
        if own in near:
            share += self._strategy.allocate(group, client_id, near.pop(own), present[own])
        for room in sorted(near.keys() - present.keys(), key=java_order):
            share += self._strategy.allocate(group, client_id, near[room], members)
        return tuple(share)


def _known(room: str, what: str) -> str:
    if not room:
        raise InvalidArgumentError(
            f"{what} stands in no machine room",
            help="let the function name a room for each broker and client",
        )
    return room


def _room_of(broker_name: str) -> str | None:
    """Returns what stands before the @ of ``room@broker``; Java's ``split`` drops empty parts at the end."""
    parts = broker_name.split("@")
    while parts and not parts[-1]:
        parts.pop()
    return parts[0] if len(parts) == _ROOM_AND_BROKER else None
