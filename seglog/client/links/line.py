"""The line to one address: its connection, made on first use and again after each end, and its back-off.

After a failed connect, or an end before any answer, the address is not used for a while: requests fail at
once, with the last reason. An address that has served before is tried again at once.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import Final, NamedTuple

from seglog.client.home.loop_home import LoopHome
from seglog.client.links.backoff import Backoff
from seglog.client.links.connection import Connection, Owner
from seglog.client.links.events import Connected, LinkEvent, Lost, OnEvent
from seglog.client.links.served import OnNotice, OnRequest
from seglog.client.links.troubles import Absence
from seglog.errors import CannotConnectError, ClientClosedError, SeglogError
from seglog.logs import logger
from seglog.remoting.command import Request, Response
from seglog.remoting.later import Deferred

CLOSED: Final = "the client was closed"
_log = logger(__name__)


class Ears(NamedTuple):
    """The callbacks of a client for its connections; see ``RemoteLink``."""

    on_notice: OnNotice | None = None
    on_request: OnRequest | None = None
    on_event: OnEvent | None = None


class Line:
    """The line to one address. Any thread may call it.

    Args:
        address: "host:port".
        home: Runs its connections.
        ears: Gets their notices, requests and events.
    """

    def __init__(self, address: str, home: LoopHome, ears: Ears) -> None:
        self._address = address
        self._home = home
        self._on_event = ears.on_event
        self._owner = Owner(
            self._made, self._served, self._ended, self._turned_away, ears.on_notice, ears.on_request
        )
        self._lock = threading.Lock()
        self._backoff = Backoff()
        self._absence = Absence(address)
        self._current: Connection | None = None
        self._open: set[Connection] = set()
        self._is_closed = False

    def ask(self, request: Request, timeout_ms: float, *, is_again: bool = False) -> Deferred[Response]:
        """Returns the deferred answer.

        Args:
            request: What is asked.
            timeout_ms: Its timeout, including the time to connect.
            is_again: Whether a connection answered it GO_AWAY before; then it is not sent a third time.
        """
        there = self._current or self._connect()
        if isinstance(there, Connection):
            return there.ask(request, timeout_ms, is_again=is_again)
        failed: Deferred[Response] = Deferred()
        failed.fail(there)
        return failed

    def tell(self, request: Request) -> None:
        """Sends a oneway request; it is dropped if there is no connection and none can be made.

        Raises:
            ProtocolError: It cannot be encoded.
        """
        there = self._current or self._connect()
        if isinstance(there, Connection):
            there.tell(request)
        else:
            _log.debug("request %d was dropped: %s", request.code, there)

    def close(self) -> list[Deferred[None]]:
        """Ends its connections, on the home; returns deferreds of the closing of their sockets."""
        with self._lock:
            self._is_closed = True
            self._current = None
            connections = list(self._open)
        for connection in connections:
            connection.end(CLOSED, ClientClosedError, is_in_peace=True)
        return [connection.gone for connection in connections]

    def _connect(self) -> Connection | SeglogError:
        """Returns the connection, or the reason why none can be made now."""
        with self._lock:
            if self._current is not None:
                return self._current
            if self._is_closed:
                return ClientClosedError(f"{self._address} is not connected to: {CLOSED}")
            if self._backoff.left_ms(self._home.clock.monotonic_ms()):
                return CannotConnectError(str(self._backoff.why), address=self._address)
            connection = self._current = Connection(self._address, self._home, self._owner)
            self._open.add(connection)
        self._home.post(connection.start)
        return connection

    def _made(self, _: Connection) -> None:
        self._tell_of(Connected(self._address))

    def _served(self, _: Connection) -> None:
        self._absence.served(self._home.clock.monotonic_ms())

    def _ended(self, connection: Connection, why: str) -> None:
        with self._lock:
            self._open.discard(connection)
        self._leave(connection, why)

    def _turned_away(
        self, connection: Connection, request: Request, one: Deferred[Response], end_ms: float
    ) -> None:
        """Sends a request again over a new connection, after GO_AWAY."""
        self._leave(connection, f"{self._address} sends its clients away: it is stopping")
        again = self.ask(request, end_ms - self._home.clock.monotonic_ms(), is_again=True)
        one.then(lambda _: again.cancel())  # the caller may have cancelled it
        again.then(partial(_settle, one))
        connection.retire()

    def _leave(self, connection: Connection, why: str) -> None:
        """Stops using a connection; called by the home, like all events of connections."""
        now_ms = self._home.clock.monotonic_ms()
        with self._lock:
            if self._current is not connection:
                return
            self._current = None
            if connection.has_served:
                self._backoff.succeeded()
            else:
                self._backoff.failed(now_ms, why)
        if connection.is_needed or not connection.has_served:  # an idle one may end
            self._absence.failed(now_ms, why)
        if connection.is_made:
            self._tell_of(Lost(self._address, why))

    def _tell_of(self, event: LinkEvent) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:  # noqa: BLE001 - others use the connection too
            _log.exception("a client failed at %s", event)


def _settle(one: Deferred[Response], again: Deferred[Response]) -> None:
    if again.error is None:
        one.resolve_by(again.result)
    else:
        one.fail(again.error)
