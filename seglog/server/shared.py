"""The parts that the connections of one server share."""

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
    """A connection with bytes to write."""

    def flush(self) -> None:
        """Writes it."""


class Shared:
    """The broker of a server, its loop, and the work done for all connections together. The loop calls it.

    Args:
        broker: Who answers.
        loop: The loop.
        limits: The limits of clients.

    Attributes:
        broker: As given.
        loop: As given.
        limits: As given.
        inbox: Results of other threads for the loop: one wake-up for all results until it looks.
        complaints: Logs errors of clients.
        processors: The queues of requests that are not served as they are read.
        bodies: The queue of long bodies.
        begun_bytes: The bytes of all incomplete frames.
        answer_bytes: The bytes of answers that wait for all clients.
        is_stopping: Whether requests are answered GO_AWAY.
        times: The durations of sends and pulls.
        slow_count: The number of requests that blocked the loop for :data:`SLOW_S` or longer.
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
        """Returns the server's figures for tools, by RocketMQ's names."""
        return self.processors.figures() | self.times.figures()

    def soon(self, begin: Callable[[], None]) -> None:
        """Begins one sync for all sends of this turn, after them."""
        if not self._begins:
            self.loop.call_soon(self._begin)
        self._begins[begin] = None

    def flush_soon(self, connection: Flushed) -> None:
        """Schedules a write of a connection after all answers of this turn."""
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
