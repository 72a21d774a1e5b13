"""Chooses the name server to ask: the same one as long as it answers, then the next one of the list.

Source: ``NettyRemotingClient.java getAndCreateNameserverChannel``; it begins with one at random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from typing_extensions import override

from seglog.client.links.line import Line
from seglog.client.links.lookup import Lookup
from seglog.clock import Clock
from seglog.errors import AskTimeoutError, CannotConnectError, ConnectionEndedError
from seglog.remoting.command import Request, Response
from seglog.remoting.later import Deferred


class NameServers:
    """The name servers of a client. Any thread may call it.

    Args:
        addresses: Their addresses, or the look-up of these.
        line: Returns the line to an address.
        clock: The clock of timeouts.
    """

    def __init__(self, addresses: Sequence[str] | Lookup, line: Callable[[str], Line], clock: Clock) -> None:
        self._given = addresses
        self.line = line
        self.clock = clock
        self._chosen = ""

    @property
    def addresses(self) -> tuple[str, ...]:
        """The present addresses: none before the first answer of the look-up."""
        given = self._given
        return given.addresses if isinstance(given, Lookup) else tuple(given)

    @property
    def chosen(self) -> Line | None:
        """The line to the chosen name server; None if none is known yet."""
        addresses = self.addresses
        return self.line(addresses[self.index_in(addresses)]) if addresses else None

    def index_in(self, addresses: tuple[str, ...]) -> int:
        """Returns the index of the address to ask first."""
        return addresses.index(self._chosen) if self._chosen in addresses else 0

    def ask(self, request: Request, timeout_ms: float) -> Deferred[Response]:
        """Returns the deferred answer; name servers that cannot be connected to are skipped.

        A name server that does not answer, or disconnects, is not asked the next time.
        """
        addresses = self.addresses
        if not addresses and isinstance(self._given, Lookup):
            return _Looked(self, self._given, request, timeout_ms)
        if len(addresses) == 1:
            return self.line(addresses[0]).ask(request, timeout_ms)
        return _Tried(self, addresses, request, timeout_ms)

    def leave(self, address: str, addresses: tuple[str, ...]) -> None:
        """Chooses the next name server; another thread may have done so before."""
        index = self.index_in(addresses)
        if addresses[index] == address:
            self._chosen = addresses[(index + 1) % len(addresses)]


class _Looked(Deferred[Response]):
    """An answer of a name server whose address is looked up first."""

    __slots__ = ("_asked", "_end_ms", "_request", "_servers")

    def __init__(self, servers: NameServers, lookup: Lookup, request: Request, timeout_ms: float) -> None:
        super().__init__()
        self._servers = servers
        self._request = request
        self._end_ms = servers.clock.monotonic_ms() + timeout_ms
        self._asked: Deferred[Response] | None = None
        lookup.look().then(self._go_on)

    @override
    def _forget(self) -> None:
        if self._asked is not None:
            self._asked.cancel()

    def _go_on(self, looked: Deferred[None]) -> None:
        if looked.error is not None or not self._servers.addresses:
            self.fail(looked.error or CannotConnectError("no name server is known"))
        elif not self.is_done:
            left_ms = self._end_ms - self._servers.clock.monotonic_ms()
            self._asked = self._servers.ask(self._request, max(1.0, left_ms))
            self._asked.then(lambda asked: self.resolve_by(asked.result))


class _Tried(Deferred[Response]):
    """An answer of the first name server that can be connected to."""

    __slots__ = ("_addresses", "_asked", "_end_ms", "_first", "_request", "_servers", "_whys")

    def __init__(
        self, servers: NameServers, addresses: tuple[str, ...], request: Request, timeout_ms: float
    ) -> None:
        super().__init__()
        self._servers = servers
        self._addresses = addresses
        self._first = servers.index_in(addresses)
        self._request = request
        self._end_ms = servers.clock.monotonic_ms() + timeout_ms
        self._whys: list[str] = []
        self._asked: Deferred[Response] | None = None
        self._ask()

    @override
    def _forget(self) -> None:
        if self._asked is not None:
            self._asked.cancel()

    def _ask(self) -> None:
        servers = self._servers
        left_ms = self._end_ms - servers.clock.monotonic_ms()
        self._asked = servers.line(self._address).ask(self._request, left_ms)
        self._asked.then(self._follow)

    @property
    def _address(self) -> str:
        return self._addresses[(self._first + len(self._whys)) % len(self._addresses)]

    def _follow(self, asked: Deferred[Response]) -> None:
        error = asked.error
        if error is None:
            self.resolve_by(asked.result)
            return
        if isinstance(error, CannotConnectError | ConnectionEndedError | AskTimeoutError):
            self._servers.leave(self._address, self._addresses)
        if not isinstance(error, CannotConnectError) or self.is_done:
            self.fail(error)
            return
        self._whys.append(str(error))
        if len(self._whys) < len(self._addresses):
            self._ask()
        else:
            known = ";".join(self._addresses)
            self.fail(CannotConnectError(f"no name server answers: {'; '.join(self._whys)}", address=known))
