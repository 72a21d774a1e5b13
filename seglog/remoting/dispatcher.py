"""The interface of a broker in this process for clients, which need not import the broker."""

from __future__ import annotations

from typing import Protocol

from seglog.clock import Clock
from seglog.remoting.command import Request, Response
from seglog.remoting.later import Deferred
from seglog.remoting.peer import Peer
from seglog.schedule import Timers


class Dispatcher(Protocol):
    """Answers requests. Any thread may call it."""

    @property
    def liveness_clock(self) -> Clock:
        """The clock of its clients."""

    @property
    def is_closed(self) -> bool:
        """Whether the broker was closed."""

    @property
    def timers(self) -> Timers:
        """The timers of its connections, on that clock."""

    def dispatch(self, request: Request, peer: Peer) -> Response:
        """Returns the answer, which may be a refusal; a held pull blocks the calling thread."""

    def answer(self, request: Request, peer: Peer) -> Response | Deferred[Response]:
        """Returns the answer or a deferred one; it never waits, and keeps the order of sends."""

    def settle(self) -> Deferred[None]:
        """Returns what is resolved once committed offsets are as durable as acknowledged sends are."""

    def disconnect(self, peer: Peer) -> None:
        """Removes a client from its groups: its connection has ended."""
