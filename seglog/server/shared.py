"""What the connections of one server have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from seglog.broker.broker import Broker
from seglog.complaints import Complaints
from seglog.logs import logger
from seglog.remoting.later import inbox_of
from seglog.server.call_times import CallTimes
from seglog.server.limits import ServerLimits
from seglog.server.long_bodies import LongBodies
from seglog.server.processors import Processors

SLOW_S: Final = 0.1
_log = logger("seglog.server")


class Flushed(Protocol):
    """A connection that has something to write."""

    def flush(self) -> None:
        """Writes it."""


class Shared:
    """The broker of a server, its loop, and what is done once for all connections. The loop calls it.

    Args:
        broker: Who answers.
        loop: The loop.
        limits: What clients may take.

    Attributes:
        broker: As given.
        loop: As given.
        limits: As given.
        inbox: What other threads have for the loop: one wake-up for all that they resolve until it looks.
        complaints: What is logged of clients.
        processors: Where requests wait that are not served as they are read.
        bodies: Where bodies wait that take long to read.
        begun_bytes: How much there is of frames whose end has not come.
        answer_bytes: How much waits to be read by all clients.
        is_stopping: Whether clients are sent away.
        times: What sends and pulls took.
        slow_count: How many requests kept the loop from others for :data:`SLOW_S` or longer.
    """

    def __init__(self, broker: Broker, loop: asyncio.AbstractEventLoop, limits: ServerLimits) -> None:
        self.broker = broker
        self.loop = loop
        self.limits = limits
        self.inbox = inbox_of(loop)
        self.complaints = Complaints(_log, loop.time)
        self.processors = Processors(loop, limits, self.complaints)
        self.bodies = LongBodies(self.inbox, limits, loop.time)
        self.begun_bytes = self.answer_bytes = 0
        self.is_stopping = False
        self.times = CallTimes(loop.time)
        self.slow_count = 0
        self._begins: dict[Callable[[], None], None] = {}
        self._flushed: dict[Flushed, None] = {}

    def figures(self) -> dict[str, str]:
        """Returns what a tool is told of the server, by RocketMQ's names."""
        return self.processors.figures() | self.times.figures()

    def soon(self, begin: Callable[[], None]) -> None:
        """Begins a sync once all sends of this turn are made; one is for all of them."""
        if not self._begins:
            self.loop.call_soon(self._begin)
        self._begins[begin] = None

    def flush_soon(self, connection: Flushed) -> None:
        """Has a connection write once all answers of this turn are there."""
        if not self._flushed:
            self.loop.call_soon(self._flush)
        self._flushed[connection] = None

    def _begin(self) -> None:
        begins, self._begins = self._begins, {}
        for begin in begins:
            begin()

    def _flush(self) -> None:
        flushed, self._flushed = self._flushed, {}
        for connection in flushed:
            connection.flush()
