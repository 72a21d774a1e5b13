"""Which name server is asked: always the same as long as it answers, then the next one of the list.

Source: ``NettyRemotingClient.java getAndCreateNameserverChannel``; it begins with one at random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from typing_extensions import override

from seglog.client.links.line import Line
from seglog.clock import Clock
from seglog.errors import AskTimeoutError, CannotConnectError, ConnectionEndedError
from seglog.remoting.command import Request, Response
from seglog.remoting.later import Deferred


class NameServers:
    """The name servers of a client. Any thread may call it.

    Args:
        addresses: At least one.
        line: Returns the way to an address.
        clock: What the time of an ask goes by.
    """

    def __init__(self, addresses: Sequence[str], line: Callable[[str], Line], clock: Clock) -> None:
        self.addresses = addresses
        self.line = line
        self.clock = clock
        self._chosen = 0

    @property
    def chosen(self) -> Line:
        """The way to the one that is asked."""
        return self.line(self.addresses[self._chosen])

    def ask(self, request: Request, timeout_ms: float) -> Deferred[Response]:
        """Returns what the answer comes by; those that cannot be connected to are passed over.

        One that is silent, or hangs up, is not asked the next time.
        """
        if len(self.addresses) == 1:
            return self.chosen.ask(request, timeout_ms)
        return _Tried(self, self._chosen, request, timeout_ms)

    def leave(self, index: int) -> None:
        """Does not choose one any more; another thread may have left it before."""
        if self._chosen == index:
            self._chosen = (index + 1) % len(self.addresses)


class _Tried(Deferred[Response]):
    """An answer of the first name server that can be connected to."""

    __slots__ = ("_asked", "_end_ms", "_first", "_request", "_servers", "_whys")

    def __init__(self, servers: NameServers, first: int, request: Request, timeout_ms: float) -> None:
        super().__init__()
        self._servers = servers
        self._first = first
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
        address = servers.addresses[self._index]
        left_ms = self._end_ms - servers.clock.monotonic_ms()
        self._asked = servers.line(address).ask(self._request, left_ms)
        self._asked.then(self._follow)

    @property
    def _index(self) -> int:
        return (self._first + len(self._whys)) % len(self._servers.addresses)

    def _follow(self, asked: Deferred[Response]) -> None:
        error = asked.error
        if error is None:
            self.resolve_by(asked.result)
            return
        if isinstance(error, CannotConnectError | ConnectionEndedError | AskTimeoutError):
            self._servers.leave(self._index)
        if not isinstance(error, CannotConnectError) or self.is_done:
            self.fail(error)
            return
        self._whys.append(str(error))
        if len(self._whys) < len(self._servers.addresses):
            self._ask()
        else:
            known = ";".join(self._servers.addresses)
            self.fail(CannotConnectError(f"no name server answers: {'; '.join(self._whys)}", address=known))
