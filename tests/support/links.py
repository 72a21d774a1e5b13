"""Links that pass on what they are given, for tests that have some of it fail."""

from __future__ import annotations

from collections.abc import Sequence

from seglog.client.links.link import Link
from seglog.client.links.lookup import Lookup
from seglog.client.links.served import OnNotice, OnRequest
from seglog.clock import Clock
from seglog.remoting.command import Request, Response
from seglog.remoting.later import Deferred


class LinkOver:
    """A link over another one; a test overrides what it changes.

    Args:
        link: The other one.
    """

    def __init__(self, link: Link) -> None:
        self._link = link

    @property
    def client_id(self) -> str:
        """That of the other one."""
        return self._link.client_id

    @property
    def clock(self) -> Clock:
        """That of the other one."""
        return self._link.clock

    @property
    def name_servers(self) -> Sequence[str]:
        """Those of the other one."""
        return self._link.name_servers

    @property
    def lookup(self) -> Lookup | None:
        """That of the other one."""
        return self._link.lookup

    @property
    def is_over(self) -> bool:
        """That of the other one."""
        return self._link.is_over

    @property
    def is_in_process(self) -> bool:
        """As the other one."""
        return self._link.is_in_process

    @property
    def closed(self) -> Deferred[None]:
        """That of the other one."""
        return self._link.closed

    def serve(self, on_notice: OnNotice, on_request: OnRequest) -> None:
        """Has what brokers say go to a client."""
        self._link.serve(on_notice, on_request)

    def ask(
        self, request: Request, timeout_ms: float | None = None, to: str | None = None
    ) -> Deferred[Response]:
        """Asks."""
        return self._link.ask(request, timeout_ms, to)

    def settle(self) -> Deferred[None]:
        """Waits for the offsets."""
        return self._link.settle()

    def tell(self, request: Request, to: str | None = None) -> None:
        """Notifies the listener."""
        self._link.tell(request, to)

    def invoke(self, request: Request, timeout_ms: float | None = None, to: str | None = None) -> Response:
        """Asks and waits."""
        return self._link.invoke(request, timeout_ms, to)

    def close(self) -> None:
        """Closes."""
        self._link.close()
