"""Requests and notices of a broker to a client over a connection, and the client's answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from seglog.client.links.served import OnNotice, OnRequest, answer_of, unsupported
from seglog.clock import Clock
from seglog.complaints import Complaints
from seglog.errors import ProtocolError
from seglog.logs import logger
from seglog.remoting.codec import Asked, Codec, Pieces, WronglyAsked
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, refuse
from seglog.remoting.later import Deferred

MOST_SERVED: Final = 1_024
"""Most unanswered requests of one broker, which could send any number."""
_NOTICES: Final = frozenset(
    (RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, RequestCode.RESET_CONSUMER_CLIENT_OFFSET)
)
"""RocketMQ clients never answer these requests, whether they are oneway or not."""
_log = logger(__name__)


class Serving:
    """The answering side of one connection; its home calls it; any thread may resolve answers.

    Args:
        clock: The time.
        codec: Encodes answers.
        send: Sends their bytes; any thread may call it.
        on_notice: Called with notices; None drops them.
        on_request: Returns the answers; None refuses all requests.
    """

    def __init__(
        self,
        clock: Clock,
        codec: Codec,
        send: Callable[[Pieces], None],
        on_notice: OnNotice | None,
        on_request: OnRequest | None,
    ) -> None:
        self._codec = codec
        self._send = send
        self._on_notice = on_notice
        self._on_request = on_request or unsupported
        self._making: set[Deferred[Response]] = set()
        self._is_over = False
        self._complaints = Complaints(_log, lambda: clock.monotonic_ms() / 1000)

    def serve(self, asked: Asked | WronglyAsked) -> None:
        """Answers a request, now or later; a oneway request is a notice."""
        request = asked.request
        if isinstance(asked, WronglyAsked):
            self._complaints.tell(
                "unreadable", f"a broker has sent a request that cannot be read: {asked.error}"
            )
            self._respond(asked, refuse(ResponseCode.SYSTEM_ERROR, str(asked.error)))
        elif request.is_oneway or request.code in _NOTICES:
            self._note(request)
        elif len(self._making) >= MOST_SERVED:
            self._respond(
                asked, refuse(ResponseCode.SYSTEM_BUSY, f"{MOST_SERVED} requests are being answered")
            )
        else:
            made = answer_of(request, lambda: self._on_request(request))
            if isinstance(made, Response):
                self._respond(asked, made)
            else:
                self._making.add(made)
                made.then(lambda of: self._made(asked, of))

    def end(self) -> None:
        """Cancels all pending answers: the connection has ended."""
        self._is_over = True
        for made in tuple(self._making):
            made.cancel()

    def _made(self, asked: Asked, made: Deferred[Response]) -> None:
        self._making.discard(made)
        if not self._is_over:
            self._respond(asked, answer_of(asked.request, made.result))

    def _note(self, request: Request) -> None:
        if self._on_notice is None:
            return
        try:
            self._on_notice(request)
        except Exception:  # noqa: BLE001 - others use the connection too
            _log.exception("a client failed at a notice of code %s", request.code)

    def _respond(self, asked: Asked | WronglyAsked, response: Response) -> None:
        try:
            pieces = self._codec.answer(asked, response)
        except ProtocolError as error:
            _log.warning("the answer to a request of code %s cannot be sent: %s", asked.request.code, error)
            pieces = self._codec.answer(asked, refuse(ResponseCode.SYSTEM_ERROR, str(error)))
        if pieces:
            self._send(pieces)
