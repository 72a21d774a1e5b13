"""The channel from a broker to a client in the same process: notices and requests."""

from __future__ import annotations

from seglog.client.links.served import OnNotice, OnRequest, answer_of, unsupported
from seglog.remoting.command import Request, Response
from seglog.remoting.later import AskTable, Deferred
from seglog.schedule import AnyTimers


class LocalChannel:
    """The broker's channel to a client in the same process.

    Args:
        client_id: The id of the client, for errors.
        timers: Ends the broker's requests after their timeout.
        on_notice: As for ``LocalLink``; None drops notices.
        on_request: As for ``LocalLink``; None refuses.
    """

    def __init__(
        self, client_id: str, timers: AnyTimers, on_notice: OnNotice | None, on_request: OnRequest | None
    ) -> None:
        self._client_id = client_id
        self._on_notice = on_notice
        self._on_request = on_request
        self._asks: AskTable[Response] = AskTable(timers)

    def serve(self, on_notice: OnNotice, on_request: OnRequest) -> None:
        """Sets the functions that were not given."""
        self._on_notice = self._on_notice or on_notice
        self._on_request = self._on_request or on_request

    def notify(self, request: Request) -> None:
        """Passes a notice on."""
        if self._on_notice is not None:
            self._on_notice(request)

    def ask(self, request: Request, timeout_ms: int) -> Deferred[Response]:
        """Passes a request on."""
        asked = self._asks.open(timeout_ms, f"request {int(request.code)} to client {self._client_id}")
        if asked.is_done:
            return asked
        made = answer_of(request, lambda: (self._on_request or unsupported)(request))
        if isinstance(made, Response):
            self._asks.answer(asked.opaque, made)
            return asked

        def answer(of: Deferred[Response]) -> None:
            if not asked.is_done:
                self._asks.answer(asked.opaque, answer_of(request, of.result))

        made.then(answer)
        # After a timeout or a close of the link the answer is no longer wanted.
        asked.then(lambda _: made.cancel())
        return asked

    def end(self) -> None:
        """Ends all requests of the broker."""
        self._asks.end("the client has closed its link")
