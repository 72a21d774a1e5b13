"""The way from a client to brokers and name servers.

Producers and consumers know only :class:`Link`. In process it is a ``LocalLink``, which hands requests over
as they are; a ``RemoteLink`` has connections. What works through one works through the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from seglog.client.links.served import OnNotice, OnRequest
from seglog.clock import Clock
from seglog.remoting.command import Request, Response
from seglog.remoting.later import Deferred

if TYPE_CHECKING:
    from seglog.client.links.lookup import Lookup


class Link(Protocol):
    """Carries requests of one client. Any thread may call it.

    A broker is named by its address, "host:port"; without one a name server is asked. A link to a broker in
    this process, which is both, ignores that. Requests of one thread to one address arrive in the order of
    the calls, unless a connection ends between them. An answer that refuses is an answer; what has none ends
    with an error whose ``is_retryable`` says whether it is worth while to ask again.
    """

    @property
    def client_id(self) -> str:
        """What this end is called, unique among the clients of the broker."""

    @property
    def clock(self) -> Clock:
        """The clock of its clients: heartbeats, locks, held pulls."""

    @property
    def name_servers(self) -> Sequence[str]:
        """Addresses of its name servers; none in process."""

    @property
    def lookup(self) -> Lookup | None:
        """Who is asked for these addresses; None where they were given, and in process."""

    @property
    def is_over(self) -> bool:
        """Whether it was closed, or there is nothing at its other end that could come back."""

    @property
    def closed(self) -> Deferred[None]:
        """Comes once it was closed, and its connections have ended."""

    def ask(
        self, request: Request, timeout_ms: float | None = None, to: str | None = None
    ) -> Deferred[Response]:
        """Returns what the answer comes by; it never waits, and raises only for arguments of a wrong type.

        Cancelling it drops the answer. It fails with

        - ``CannotConnectError``: nothing was sent;
        - ``ConnectionEndedError``, ``AskTimeoutError``: it may have been carried out;
        - ``AskLimitError``: too much waits already, nothing was sent;
        - ``ClientClosedError``;
        - ``InvalidArgumentError``: ``to`` is no address;
        - ``ProtocolError``: the request cannot be written, or its answer not be read.

        Args:
            request: What is asked; not a oneway one.
            timeout_ms: How long the answer may take, connecting included. None for the link's own, which
                says nothing of pulls that a broker is to hold: their caller adds how long that is.
            to: Address of a broker; None for a name server.
        """

    def tell(self, request: Request, to: str | None = None) -> None:
        """Sends what is not answered, behind all that the calling thread has asked; it never waits.

        Where there is no connection, and none can be made, it is dropped.

        Args:
            request: What is said; it goes out as oneway, also where it does not say so.
            to: As for :meth:`ask`.

        Raises:
            ProtocolError: The request cannot be written.
            InvalidArgumentError: ``to`` is no address.
        """

    def invoke(self, request: Request, timeout_ms: float | None = None, to: str | None = None) -> Response:
        """Returns the answer, refusals included; the calling thread waits for it.

        Args:
            request: As for :meth:`ask`, as the others.
            timeout_ms: How long to wait.
            to: Whom to ask.

        Raises:
            InvalidArgumentError: The caller is run by the home that would bring the answer.
            SeglogError: As :meth:`ask`.
        """

    def serve(self, on_notice: OnNotice, on_request: OnRequest) -> None:
        """Has what brokers say and ask go to a client, unless the link was made with functions for that."""

    def close(self) -> None:
        """Ends everything that waits, and the connections; a second call does nothing."""
