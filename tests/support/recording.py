"""A real link that notes what went through it, and that can be cut or made to be refused for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from typing_extensions import override

from seglog.broker.broker import Broker
from seglog.client.links.local_link import LocalLink
from seglog.client.links.lookup import Lookup
from seglog.errors import AskTimeoutError, CannotConnectError
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, refuse
from seglog.remoting.later import Deferred

LOOKUP: Final = 0
"""Among requests: a question for the addresses of name servers, which is none."""


class RecordingLink(LocalLink):
    """A link in process.

    Attributes:
        asked: What was asked, with the virtual moment in seconds since the link was made.
        refused: Codes that are refused.
        cut: Codes that get no answer.
        refusal: The code that refuses.
        looked: When the addresses of name servers were asked for, in such seconds.
        list_of_servers: What is answered then; None where there is no answer.
        events: What was asked, in order, the former among it as 0.
    """

    def __init__(self, broker: Broker, client_id: str | None = None) -> None:
        super().__init__(broker, client_id)
        self.asked: list[tuple[float, Request]] = []
        self.refused: set[int] = set()
        self.cut: set[int] = set()
        self.refusal = ResponseCode.SYSTEM_ERROR
        self._made_ms = self.clock.monotonic_ms()
        self.looked: list[float] = []
        self.list_of_servers: str | None = None
        self.events: list[int] = []
        self._lookup: Lookup | None = None

    @property
    @override
    def lookup(self) -> Lookup | None:
        return self._lookup

    def look_at(self, url: str) -> None:
        """Has its client ask an address for name servers, as one does that was given none."""
        self._lookup = Lookup(url, fetch=self._fetch)

    def _fetch(self, _url: str) -> Deferred[str]:
        self.looked.append(self._now_s())
        self.events.append(LOOKUP)
        fetched: Deferred[str] = Deferred()
        if self.list_of_servers is None:
            fetched.fail(CannotConnectError("no answer"))
        else:
            fetched.resolve(self.list_of_servers)
        return fetched

    def _now_s(self) -> float:
        return (self.clock.monotonic_ms() - self._made_ms) / 1000

    @property
    def pulls(self) -> list[Request]:
        """The pulls among them."""
        return [request for _moment, request in self.asked if request.code == RequestCode.PULL_MESSAGE]

    def moments(self, code: int) -> list[float]:
        """Returns when requests of a code were asked, in seconds."""
        return [moment for moment, request in self.asked if request.code == code]

    @override
    def ask(
        self, request: Request, timeout_ms: float | None = None, to: str | None = None
    ) -> Deferred[Response]:
        return self._spoilt(request) or super().ask(request, timeout_ms, to)

    @override
    def invoke(self, request: Request, timeout_ms: float | None = None, to: str | None = None) -> Response:
        spoilt = self._spoilt(request)
        return super().invoke(request, timeout_ms, to) if spoilt is None else spoilt.result()

    def _spoilt(self, request: Request) -> Deferred[Response] | None:
        """Notes what is asked; returns what it comes to that does not reach the broker."""
        self.asked.append((self._now_s(), request))
        self.events.append(int(request.code))
        answer: Deferred[Response] = Deferred()
        if request.code in self.refused:
            answer.resolve(refuse(self.refusal, "not now"))
        elif request.code in self.cut:
            answer.fail(AskTimeoutError(f"request {int(request.code)} got no answer"))
        return answer if answer.is_done else None


@contextmanager
def recording(broker: Broker, client_id: str | None = None) -> Iterator[RecordingLink]:
    """Lends a link of that kind."""
    link = RecordingLink(broker, client_id)
    try:
        yield link
    finally:
        link.close()
