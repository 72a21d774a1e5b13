"""What clients of a server may take of it, and how long they may let it wait."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from seglog.arguments import as_int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits of one server.

    Where a connection has reached one of its own, nothing more is read from it until it is below again.

    Attributes:
        connections: How many there may be; those beyond are closed at once.
        requests: How many of one connection may wait or be in work, parked pulls not counted.
        queued_bytes: How much of one connection may wait for its turn.
        parked_pulls: How many of one connection may be held; one beyond is answered as things are.
        answer_bytes: How much may wait to be read by one client.
        all_answer_bytes: How much may wait to be read by all clients; beyond it nothing more is read from
            those for whom something waits.
        begun_bytes: How much of frames whose end has not come there may be, of all connections together; the
            connection that brings more is closed.
        queued_sends: How many sends of all connections may wait for their turn, as RocketMQ's
            ``sendThreadPoolQueueCapacity``; one beyond is answered SYSTEM_BUSY.
        queued_pulls: How many pulls, as ``pullThreadPoolQueueCapacity``.
        queued_others: How many requests of other kinds, as ``adminBrokerThreadPoolQueueCapacity``.
        all_queued_bytes: How much of all connections may wait for its turn; and as much for being read, of
            bodies that take long.
        send_wait_ms: How long a send may have waited when its turn comes; it is answered SYSTEM_BUSY then.
            RocketMQ's ``waitTimeMillsInSendQueue`` is 200.
        pull_wait_ms: How long a pull may, as ``waitTimeMillsInPullQueue``.
        other_wait_ms: How long others may, as ``waitTimeMillsInAdminBrokerQueue``.
        frame_ms: How long a frame may take, and a second for each 64 KiB of it.
        stall_ms: How long a client may read nothing of what waits for it.
        idle_ms: How long a connection may be silent both ways, as RocketMQ's
            ``serverChannelMaxIdleTimeSeconds``.
        sweep_ms: How often those times are looked at.
        turn_ms: How long the requests of one connection are served before others have their turn.
        stop_ms: How long a stop waits for sends and for clients that read.
    """

    connections: int = 8_192
    requests: int = 1_024
    queued_bytes: int = 16 << 20
    parked_pulls: int = 8_192
    answer_bytes: int = 4 << 20
    all_answer_bytes: int = 1 << 30
    begun_bytes: int = 256 << 20
    queued_sends: int = 10_000
    queued_pulls: int = 100_000
    queued_others: int = 10_000
    all_queued_bytes: int = 256 << 20
    send_wait_ms: int = 1_000
    pull_wait_ms: int = 5_000
    other_wait_ms: int = 5_000
    frame_ms: int = 30_000
    stall_ms: int = 10_000
    idle_ms: int = 120_000
    sweep_ms: int = 1_000
    turn_ms: int = 2
    stop_ms: int = 6_000

    def __post_init__(self) -> None:
        """Checks them.

        Raises:
            InvalidArgumentError: One is no whole number from 1 on; it is named.
        """
        for field in fields(self):
            as_int(field.name, getattr(self, field.name), 1)


DEFAULT_LIMITS: Final = ServerLimits()
FRAME_BYTES_PER_MS: Final = 65.536
"""So fast a long frame has to come, once ``frame_ms`` are over."""
