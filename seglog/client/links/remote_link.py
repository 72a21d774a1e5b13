"""A link to brokers and name servers at the ends of connections.

One connection for each address, made on first use. Requests are encoded by the threads that make them; all
else is done by the link's home. Defaults are those of RocketMQ's client.

Source: ``NettyRemotingClient.java``, ``MQClientAPIImpl.java``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from seglog.arguments import as_int
from seglog.client.home.loop_home import LoopHome
from seglog.client.links.addresses import name_server_list, own_address, parse_address
from seglog.client.links.client_ids import as_name, new_client_id
from seglog.client.links.connection import FLUSH_MS
from seglog.client.links.events import OnEvent
from seglog.client.links.line import CLOSED, Ears, Line
from seglog.client.links.lookup import Lookup
from seglog.client.links.name_servers import NameServers
from seglog.client.links.served import OnNotice, OnRequest
from seglog.clock import Clock
from seglog.errors import AskTimeoutError, ClientClosedError, InvalidArgumentError, SeglogError
from seglog.remoting.command import Request, Response
from seglog.remoting.later import Deferred, running_loop

TIMEOUT_MS: Final = 3_000
"""``mqClientApiTimeout``, ``sendMsgTimeout``."""
_GRACE_S: Final = 2.0
"""How much longer than its time-out a thread waits for an answer: then the home does not run."""


class RemoteLink:
    """Carries the requests of one client over connections. Any thread may call it.

    What waits to be written to an address is limited to 32 MiB, and what waits for its answers to 1,024
    requests; beyond both ``ask`` fails with ``AskLimitError`` and ``tell`` drops.

    Args:
        name_servers: Addresses, or a text with ";" between them; the first that answers is asked. Or who is
            asked for these.
        home: Runs its connections, timers and calls; the link is closed before its loop is.
        client_id: Made up if it is not given.
        on_notice: Called by the home with what brokers send unasked: requests that are oneway, or that
            no client ever answers. It returns at once.
        on_request: Called by the home with what brokers ask; it returns the answer, or what that will come
            by. What it raises becomes a refusal. By default the client knows no requests.
        on_event: Called by the home when there is a connection, and when one is lost.
        timeout_ms: How long an answer may take where nothing else is said.

    Attributes:
        lookup: Who is asked for the addresses of name servers; None where they were given.
        closed: Comes when its connections are closed.

    Raises:
        InvalidArgumentError: No name server is given, or one is no address.
    """

    def __init__(
        self,
        name_servers: str | Iterable[str] | Lookup,
        home: LoopHome,
        client_id: str | None = None,
        *,
        on_notice: OnNotice | None = None,
        on_request: OnRequest | None = None,
        on_event: OnEvent | None = None,
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        self._home = home
        self._client_id = (
            new_client_id(own_address()) if client_id is None else as_name("client_id", client_id)
        )
        self._ears = Ears(on_notice, on_request, on_event)
        self._timeout_ms = as_int("timeout_ms", timeout_ms, 1)
        self._lock = threading.Lock()
        self._lines: dict[str, Line] = {}
        self.lookup = name_servers if isinstance(name_servers, Lookup) else None
        known = name_servers if isinstance(name_servers, Lookup) else name_server_list(name_servers)
        self._name_servers = NameServers(known, self._line, home.clock)
        self._is_closed = False
        self._closed: Deferred[None] = Deferred()

    @property
    def client_id(self) -> str:
        """What this end is called."""
        return self._client_id

    @property
    def clock(self) -> Clock:
        """The time of its home."""
        return self._home.clock

    @property
    def name_servers(self) -> tuple[str, ...]:
        """Addresses of its name servers, each once; none before who is asked for them has answered."""
        return self._name_servers.addresses

    @property
    def closed(self) -> Deferred[None]:
        """Comes once it was closed, and its connections have ended."""
        return self._closed

    @property
    def is_over(self) -> bool:
        """Whether it was closed, or its home is over."""
        return self._why_closed() is not None

    def serve(self, on_notice: OnNotice, on_request: OnRequest, on_event: OnEvent | None = None) -> None:
        """Has what brokers say and ask, and what becomes of connections, go to a client.

        It is called before anything is asked; functions that the link was made with stay.
        """
        ears = self._ears
        self._ears = Ears(
            ears.on_notice or on_notice, ears.on_request or on_request, ears.on_event or on_event
        )

    def ask(
        self, request: Request, timeout_ms: float | None = None, to: str | None = None
    ) -> Deferred[Response]:
        """Returns what the answer comes by; answers and time-outs are given by the home.

        A broker that sends its clients away (GO_AWAY) is asked once more, over a new connection.

        Args:
            request: As for ``Link.ask``, as the others.
            timeout_ms: How long the answer may take, connecting included.
            to: Address of a broker; None for a name server.
        """
        if timeout_ms is None:
            timeout_ms = self._timeout_ms
        try:
            why = self._why_closed()
            if why is not None:
                raise ClientClosedError(f"request {int(request.code)} was not asked: {why}")
            if to is None:
                return self._name_servers.ask(request, timeout_ms)
            line = self._line(to)
        except SeglogError as error:
            failed: Deferred[Response] = Deferred()
            failed.fail(error)
            return failed
        return line.ask(request, timeout_ms)

    def tell(self, request: Request, to: str | None = None) -> None:
        """Sends what is not answered; without a connection, where none can be made, it is dropped.

        Raises:
            ProtocolError: The request cannot be written.
            InvalidArgumentError: ``to`` is no address.
        """
        if self._why_closed() is not None:
            return
        line = self._name_servers.chosen if to is None else self._line(to)
        if line is not None:
            line.tell(request if request.is_oneway else replace(request, is_oneway=True))

    def invoke(self, request: Request, timeout_ms: float | None = None, to: str | None = None) -> Response:
        """Returns the answer; the calling thread waits for it, and no loop may run there.

        Raises:
            InvalidArgumentError: The caller is run by an event loop.
            SeglogError: As :meth:`ask` fails.
        """
        if running_loop() is not None:
            raise InvalidArgumentError(
                "a call that waits, as those of a Producer, runs in an event loop: it would wait for itself",
                help="use AsyncProducer, whose calls are awaited; of a link, await ask(…)",
            )
        asked = self.ask(request, timeout_ms, to)
        limit_ms = self._timeout_ms if timeout_ms is None else timeout_ms
        try:
            return asked.wait(limit_ms / 1000 + _GRACE_S)
        except TimeoutError as error:
            what = f"request {int(request.code)} got no answer within {limit_ms:.0f} ms"
            raise AskTimeoutError(f"{what}: the event loop of the client does not run") from error
        finally:
            asked.cancel()

    def close(self) -> None:
        """Ends everything that waits, and the connections.

        What was told before is still sent, for at most a second. A thread that runs no loop waits for that;
        in a task ``closed`` can be awaited. In a forked child nothing is to be closed.
        """
        if self._home.is_forked:  # locks may be taken for good, and the copies of the sockets are closed
            return
        with self._lock:
            is_first, self._is_closed = not self._is_closed, True
        if is_first:
            if self._home.is_here() or self._home.why_over is not None:
                self._end()
            else:
                self._home.post(self._end)
        if running_loop() is None:
            with suppress(TimeoutError):
                self._closed.wait(2 * FLUSH_MS / 1000)

    def _end(self) -> None:
        gone = [each for line in self._lines.values() for each in line.close()]
        left = len(gone)

        def one_less(_: object) -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                self._closed.resolve(None)

        for each in gone:
            each.then(one_less)
        if self._home.why_over is not None:
            self._home.close_sockets()
            self._closed.resolve(None)
        elif not gone:
            self._closed.resolve(None)

    def _why_closed(self) -> str | None:
        """Returns why nothing can be asked; it comes first: in a forked child no lock may be touched."""
        return self._home.why_over or (CLOSED if self._is_closed else None)

    def _line(self, address: str) -> Line:
        line = self._lines.get(address)
        if line is None:
            parse_address(address)
            with self._lock:
                if self._is_closed:
                    raise ClientClosedError(f"{address} is not connected to: {CLOSED}")
                line = self._lines.setdefault(address, Line(address, self._home, self._ears))
        return line
