"""The interface of links, from a client to brokers and name servers.

Producers and consumers know only :class:`Link`. In process it is a ``LocalLink``, which passes requests on
unchanged; a ``RemoteLink`` has connections. Both have the same behaviour.
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

    A broker is named by its address, "host:port"; without an address a name server is asked. A link to a
    broker in this process, which is both, ignores the address. Requests of one thread to one address arrive
    in the order of the calls, unless a connection ends between them. A refusal is an answer; a request
    without an answer ends with an error, whose ``is_retryable`` says whether to send it again.
    """

    @property
    def client_id(self) -> str:
        """The client id, unique among the clients of the broker."""

    @property
    def clock(self) -> Clock:
        """The clock of its clients: heartbeats, locks, held pulls."""

    @property
    def name_servers(self) -> Sequence[str]:
        """Addresses of its name servers; none in process."""

    @property
    def lookup(self) -> Lookup | None:
        """The look-up of these addresses; None if they were given, and in process."""

    @property
    def is_over(self) -> bool:
        """Whether it was closed, or its other end can never come back."""

    @property
    def is_in_process(self) -> bool:
        """Whether it needs no connection: the calling thread brings requests to the broker."""

    @property
    def closed(self) -> Deferred[None]:
        """Resolved when it was closed and its connections have ended."""

    def ask(
        self, request: Request, timeout_ms: float | None = None, to: str | None = None
    ) -> Deferred[Response]:
        """Returns the deferred answer; it never waits, and raises only for arguments of a wrong type.

        Cancelling it drops the answer. It fails with

        - ``CannotConnectError``: nothing was sent;
        - ``ConnectionEndedError``, ``AskTimeoutError``: the request may have been carried out;
        - ``AskLimitError``: too many requests wait already, nothing was sent;
        - ``ClientClosedError``;
        - ``InvalidArgumentError``: ``to`` is not an address;
        - ``ProtocolError``: the request cannot be encoded, or its answer cannot be decoded.

        Args:
            request: The request, which must not be oneway.
            timeout_ms: The timeout of the answer, including the time to connect. None for the link's own
                timeout, which does not include the hold of a pull: the caller must add it.
            to: Address of a broker; None for a name server.
        """

    def settle(self) -> Deferred[None]:
        """Returns what is resolved once committed offsets are as durable as acknowledged sends are.

        Only a broker in this process says so; elsewhere it is resolved at once.
        """

    def tell(self, request: Request, to: str | None = None) -> None:
        """Sends a oneway request, behind all earlier requests of the calling thread; it never waits.

        If there is no connection and none can be made, the request is dropped.

        Args:
            request: The request; it is sent as oneway in any case.
            to: As for :meth:`ask`.

        Raises:
            ProtocolError: The request cannot be encoded.
            InvalidArgumentError: ``to`` is not an address.
        """

    def invoke(self, request: Request, timeout_ms: float | None = None, to: str | None = None) -> Response:
        """Returns the answer, which may be a refusal; blocks the calling thread.

        Args:
            request: As for :meth:`ask`, as the others.
            timeout_ms: The longest wait.
            to: Its receiver.

        Raises:
            InvalidArgumentError: The home that would deliver the answer runs the caller.
            SeglogError: As :meth:`ask`.
        """

    def serve(self, on_notice: OnNotice, on_request: OnRequest) -> None:
        """Passes notices and requests of brokers to a client, unless the link has functions for them."""

    def close(self) -> None:
        """Ends all waiting requests and the connections; a second call does nothing."""
