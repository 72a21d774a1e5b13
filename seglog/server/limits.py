"""The limits of a server's clients: resources and times."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from seglog.arguments import as_int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits of one server.

    At a limit of its own a connection is not read from until it is below the limit again.

    Attributes:
        connections: Most connections; further ones are closed at once.
        requests: Most requests of one connection that wait or are being served, without parked pulls.
        queued_bytes: Most bytes of one connection's waiting requests.
        parked_pulls: Most held pulls of one connection; a further pull is answered at once.
        answer_bytes: Most bytes of answers that wait for one client to read them.
        all_answer_bytes: Most bytes of answers that wait for all clients; beyond it nothing more is read from
            clients with waiting answers.
        begun_bytes: Most bytes of incomplete frames, of all connections together; the connection that adds
            more is closed.
        queued_sends: Most sends of all connections that wait for their turn, as RocketMQ's
            ``sendThreadPoolQueueCapacity``; a further send is answered SYSTEM_BUSY.
        queued_pulls: The same for pulls, as ``pullThreadPoolQueueCapacity``.
        queued_others: The same for other requests, as ``adminBrokerThreadPoolQueueCapacity``.
        all_queued_bytes: Most bytes of all waiting requests; and again as many of long bodies that wait to be
            parsed.
        send_wait_ms: Longest wait of a send for its turn; after a longer one it is answered SYSTEM_BUSY.
            RocketMQ's ``waitTimeMillsInSendQueue`` is 200.
        pull_wait_ms: The same for pulls, as ``waitTimeMillsInPullQueue``.
        other_wait_ms: The same for other requests, as ``waitTimeMillsInAdminBrokerQueue``.
        frame_ms: Longest time for a frame to arrive, plus a second for each 64 KiB of it.
        stall_ms: Longest time in which a client reads none of its waiting answers.
        idle_ms: Longest silence of a connection in both directions, as RocketMQ's
            ``serverChannelMaxIdleTimeSeconds``.
        sweep_ms: How often these times are checked.
        turn_ms: How long one connection's requests are served before others have their turn.
        stop_ms: Longest wait of a stop for sends and for clients that read.
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
            InvalidArgumentError: A limit is not an integer from 1 on; the message names it.
        """
        for field in fields(self):
            as_int(field.name, getattr(self, field.name), 1)


DEFAULT_LIMITS: Final = ServerLimits()
FRAME_BYTES_PER_MS: Final = 65.536
"""The rate at which a long frame must arrive after ``frame_ms``."""
