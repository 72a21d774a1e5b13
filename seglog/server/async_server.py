"""AsyncServer: a broker behind one port or several, served by a running event loop."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any, Final, Self

from typing_extensions import override

from seglog.arguments import as_kind, as_number
from seglog.broker.broker import Broker
from seglog.broker.settings import DEFAULT_ADDRESS
from seglog.closing import AsyncClosing
from seglog.errors import InvalidArgumentError
from seglog.forked import abandon_in_children, forked_error
from seglog.server.limits import DEFAULT_LIMITS, ServerLimits
from seglog.server.listening import Listener
from seglog.server.served_connection import ServedConnection
from seglog.server.shared import Shared
from seglog.storage.format.record import Host

_MOST_ACCEPTED: Final = 64
"""Most connections accepted in one turn, so that open connections have their turns too."""
_REST_S: Final = 1.0
"""Pause of accepting when the machine has no more descriptors or memory."""
_EXHAUSTED: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
_LOOK_S: Final = 0.005
"""How often a stop checks whether clients have their answers."""
_LAST_S: Final = 1.0
"""How long clients with all their answers may take to close their connections."""


class AsyncServer(AsyncClosing):
    """Serves a broker; start it in the serving loop, or use it in ``async with``.

    The broker is not closed with it, and may be used in process meanwhile.

    Args:
        broker: The broker; its routes and the ids of its messages name ``config.address``, which is that of a
            listener, or one by which clients reach it from elsewhere.
        listener: Accepts clients; closed with the server.
        more: Further listeners of the same broker, such as those of :meth:`Listener.usual_three`.
        limits: The limits of clients, for all listeners together.
    """

    def __init__(
        self, broker: Broker, listener: Listener, *more: Listener, limits: ServerLimits = DEFAULT_LIMITS
    ) -> None:
        self._broker = as_kind("broker", Broker, broker)
        self._listeners = tuple(as_kind("listener", Listener, each) for each in (listener, *more))
        self._limits = as_kind("limits", ServerLimits, limits)
        self._connections: set[ServedConnection] = set()
        self._connecting: set[asyncio.Task[Any]] = set()
        self._shared: Shared | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._takes_back: list[Callable[[], None]] = []
        self._is_over = self._is_forked = False
        self._ended: asyncio.Task[None] | None = None
        abandon_in_children(self, AsyncServer._abandon)

    @override
    def __repr__(self) -> str:
        return f"<AsyncServer at {', '.join(self.addresses)}{' closed' if self._is_over else ''}>"

    @property
    def address(self) -> str:
        """The address at which it listens, "host:port"; the first of several."""
        return self._listeners[0].address

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses at which it listens, in the order of its listeners."""
        return tuple(each.address for each in self._listeners)

    @property
    def accepted_count(self) -> int:
        """The number of connections that were ever accepted."""
        return sum(each.accepted_count for each in self._listeners)

    @property
    def connection_count(self) -> int:
        """The number of open connections."""
        return len(self._connections)

    async def start(self) -> None:
        """Serves clients from now on, in the running loop.

        Raises:
            InvalidArgumentError: It was started before; a listener was closed or belongs to another server;
                or the broker has the default address, and no listener has its port.
            ClosedError: This is a forked child.
        """
        self._check_process()
        if self._shared is not None or self._is_over:
            raise InvalidArgumentError("the server was started before", help="make a new one")
        self._take_listeners()
        shared = self._shared = Shared(self._broker, asyncio.get_running_loop(), self._limits)
        gauges = {"connections": lambda: self.connection_count, "slowRequests": lambda: shared.slow_count}
        for name, gauge in gauges.items():
            self._takes_back.append(self._broker.figures.add_gauge(name, gauge))
        self._takes_back.append(self._broker.figures.add_facts(shared.figures))
        for name, wait in shared.processors.waits().items():
            self._takes_back.append(self._broker.settings.lend(name, wait))
        self._accept_from_now(shared)
        self._sweep(shared)

    @override
    async def __aenter__(self) -> Self:
        """Starts it."""
        await self.start()
        return self

    @override
    async def close(self, linger_ms: float = 0) -> None:
        """Stops: accepts no more connections, ends held pulls, and answers waiting sends.

        New requests are answered GO_AWAY; clients that do not know it get refusals of their sends. Then
        connections are closed. Owners of queue locks stay recorded. A second call waits for the first. At the
        end of ``async with`` a forked child does nothing.

        Args:
            linger_ms: The shortest time of answering GO_AWAY before connections are closed.

        Raises:
            ClosedError: This is a forked child: loop and connections belong to its parent.
            InvalidArgumentError: The caller's loop is not the serving one.
        """
        self._check_process()
        linger_ms = as_number("linger_ms", linger_ms)
        if self._shared is not None and self._shared.loop is not asyncio.get_running_loop():
            raise InvalidArgumentError(
                f"the server at {self.address} is served by another event loop than this one",
                help="await close() in the loop that awaited start()",
            )
        if self._ended is None:
            self._ended = asyncio.ensure_future(self._stop(linger_ms / 1_000))
        await asyncio.shield(self._ended)

    def hang_up(self) -> None:
        """Closes all connections at once; called in the loop.

        Raises:
            ClosedError: This is a forked child.
        """
        self._check_process()
        for each in tuple(self._connections):
            each.end(None)

    @override
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it; in a forked child it does nothing."""
        if not self._is_forked:
            await self.close()

    def _abandon(self) -> None:
        """Stops all work in a forked child: the selector of the loop is shared with the parent."""
        self._is_forked = True

    def _check_process(self) -> None:
        if self._is_forked:
            raise forked_error(f"the server at {self.address}")

    async def _stop(self, linger_s: float) -> None:
        self._is_over = True
        for take_back in self._takes_back:
            take_back()
        shared = self._shared
        for timer in self._timers.values():
            timer.cancel()
        if shared is not None:
            self._accept_none(shared)
        for listener in self._listeners:
            listener.close()
        if shared is None:
            return
        loop = shared.loop
        shared.is_stopping = True
        for each in tuple(self._connections):
            each.end_held()
        began_s, most_s = loop.time(), max(linger_s, self._limits.stop_ms / 1_000)
        while self._connections and (passed_s := loop.time() - began_s) < most_s:
            if passed_s >= linger_s and not any(each.is_busy for each in self._connections):
                break
            await asyncio.sleep(_LOOK_S)
        for each in tuple(self._connections):
            each.finish()
        await self._ends(_LAST_S)
        self.hang_up()
        shared.processors.drop()
        shared.bodies.drop()
        while shared.bodies.is_busy:
            await asyncio.sleep(_LOOK_S)
        shared.bodies.close()
        await self._ends(None)
        if self._connecting:
            await asyncio.wait(self._connecting)

    async def _ends(self, most_s: float | None) -> None:
        """Waits until no connection is open, or a time has passed."""
        ends = [each.gone for each in self._connections]
        if ends:
            await asyncio.wait(ends, timeout=most_s)

    def _check_address(self) -> None:
        """Refuses a broker with the default address, where no listener has its port.

        Another broker may have that port, and would take what is sent to this one.
        """
        address = self._broker.config.address
        ports = {each.port for each in self._listeners}
        if address == DEFAULT_ADDRESS and int(address.rpartition(":")[2]) not in ports:
            raise InvalidArgumentError(
                f"the broker's routes name {address}, the address of a BrokerConfig without one, and this"
                f" server listens at {', '.join(self.addresses)}: clients would send elsewhere",
                help="make the Listener first, and open the broker with"
                " config=BrokerConfig(address=listener.address), or an address by which clients reach it",
            )

    def _take_listeners(self) -> None:
        """Takes all listeners, or none if one is not available."""
        with ExitStack() as until_all_are:
            for listener in self._listeners:
                listener.take()
                until_all_are.callback(listener.give_back)
            self._check_address()
            until_all_are.pop_all()

    def _accept_from_now(self, shared: Shared) -> None:
        if not self._is_over:
            for listener in self._listeners:
                shared.loop.add_reader(listener.socket, self._accept, shared, listener)

    def _accept_none(self, shared: Shared) -> None:
        for listener in self._listeners:
            shared.loop.remove_reader(listener.socket)

    def _accept(self, shared: Shared, listener: Listener) -> None:
        for _ in range(_MOST_ACCEPTED):
            try:
                end, where = listener.socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    shared.complaints.tell("accept", f"no connection can be accepted: {error.strerror}")
                    self._accept_none(shared)
                    self._timers["rest"] = shared.loop.call_later(_REST_S, self._accept_from_now, shared)
                    return
                continue  # the client has disconnected already
            listener.accepted_count += self._take(shared, end, where)

    def _take(self, shared: Shared, end: socket.socket, where: tuple[Any, ...]) -> bool:
        """Serves a connection, unless there are too many; returns whether it is served."""
        if self.connection_count >= self._limits.connections:
            shared.complaints.tell(
                "most", f"connection of {where[0]} closed: there are {self._limits.connections} already"
            )
            end.close()
            return False
        end.setblocking(False)
        with suppress(OSError):  # it has ended already
            end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        address = ipaddress.ip_address(str(where[0]).partition("%")[0])
        connection = ServedConnection(shared, end, Host(address.packed, int(where[1])))
        self._connections.add(connection)
        connection.gone.add_done_callback(lambda _: self._connections.discard(connection))
        connecting = shared.loop.create_task(self._connect(shared, end, connection))
        self._connecting.add(connecting)
        connecting.add_done_callback(self._connecting.discard)
        return True

    async def _connect(self, shared: Shared, end: socket.socket, connection: ServedConnection) -> None:
        try:
            await shared.loop.connect_accepted_socket(lambda: connection, end)
        except OSError as error:
            end.close()
            connection.connection_lost(error)

    def _sweep(self, shared: Shared) -> None:
        """Ends connections that have exceeded a time limit."""
        now_s = shared.loop.time()
        for each in tuple(self._connections):
            ending = each.overdue(now_s)
            if ending is not None:
                each.end(ending)
        self._timers["sweep"] = shared.loop.call_later(self._limits.sweep_ms / 1_000, self._sweep, shared)
