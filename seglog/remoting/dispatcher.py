"""What answers requests in this process, as a client sees it: it need not know any broker."""

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
        """The time that its clients go by."""

    @property
    def is_closed(self) -> bool:
        """Whether the broker was closed."""

    @property
    def timers(self) -> Timers:
        """What ends the waits of its connections, on that time."""

    def dispatch(self, request: Request, peer: Peer) -> Response:
        """Returns the answer, refusals included; the calling thread waits as long as it is held."""

    def answer(self, request: Request, peer: Peer) -> Response | Deferred[Response]:
        """Returns the answer, or what it will come by; it never waits, and keeps the order of sends."""

    def disconnect(self, peer: Peer) -> None:
        """Takes a client out of its groups: its connection has ended."""
