"""A link to a broker in the same process."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from seglog.arguments import as_text
from seglog.client.link import new_client_id
from seglog.clock import Clock
from seglog.errors import SeglogError
from seglog.remoting.codes import ResponseCode
from seglog.remoting.command import Request, Response, refuse
from seglog.remoting.dispatcher import Dispatcher
from seglog.remoting.later import AskTable, Deferred
from seglog.remoting.peer import LOCAL_PEER, Peer

T = TypeVar("T")
_log = logging.getLogger(__name__)


def _unsupported(request: Request) -> Response:
    """Answers as a client of RocketMQ does that is asked for what it does not know."""
    code = int(request.code)
    return refuse(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {code} not supported")


class LocalLink:
    """Hands requests to a broker as they are: nothing is encoded, copied or queued.

    Args:
        broker: Once it is closed, every request is refused.
        client_id: Made up if it is not given.
        on_notice: Called with what the broker sends the client unasked, such as
            NOTIFY_CONSUMER_IDS_CHANGED, in the thread that was the cause; it returns at once.
        on_request: Called with what the broker asks the client, in the same way; it returns the answer, or
            what that will come by. What it raises becomes a refusal. By default the client knows no requests.
        principal: Who asks, for what a broker calls before each request.
    """

    def __init__(
        self,
        broker: Dispatcher,
        client_id: str | None = None,
        on_notice: Callable[[Request], None] | None = None,
        on_request: Callable[[Request], Response | Deferred[Response]] | None = None,
        *,
        principal: str | None = None,
    ) -> None:
        self._broker = broker
        self._on_notice = on_notice
        self._on_request = on_request or _unsupported
        self._asks: AskTable[Response] = AskTable(broker.timers)
        proven = None if principal is None else as_text("principal", principal)
        self._peer = Peer(client_id or new_client_id(), LOCAL_PEER.host, self, principal=proven)

    @property
    def client_id(self) -> str:
        """What this end is called."""
        return self._peer.client_id

    @property
    def clock(self) -> Clock:
        """The time by which the clients of the broker live."""
        return self._broker.liveness_clock

    def invoke(self, request: Request, timeout_ms: int | None = None) -> Response:
        """Returns the broker's answer; no way can be slow or broken, so there is nothing to time out."""
        return self._broker.dispatch(request, self._peer)

    def notify(self, request: Request) -> None:
        """Passes on what the broker has to say; it calls this."""
        if self._on_notice is not None:
            self._on_notice(request)

    def ask(self, request: Request, timeout_ms: int) -> Deferred[Response]:
        """Passes on what the broker asks; it calls this."""
        asked = self._asks.open(timeout_ms, f"request {int(request.code)} to client {self.client_id}")
        if asked.is_done:
            return asked
        made = _made(request, lambda: self._on_request(request))
        if isinstance(made, Response):
            self._asks.answer(asked.opaque, made)
            return asked
        made.then(lambda of: self._asks.answer(asked.opaque, _made(request, of.result)))
        asked.then(
            lambda _: made.cancel()
        )  # where time was up, or the link closed, it is not wanted any more
        return asked

    def close(self) -> None:
        """Notifies the broker that the client is gone; its groups share its queues without it."""
        self._asks.end("the client has closed its link")
        self._broker.disconnect(self._peer)


def _made(request: Request, make: Callable[[], T]) -> T | Response:
    """Returns what a client answers; what it raises is logged, unless it says a code, and is a refusal."""
    try:
        return make()
    except SeglogError as error:
        return refuse(ResponseCode(error.response_code), str(error))
    except Exception as error:  # noqa: BLE001 - the broker is answered, and its thread goes on
        _log.exception("a client failed at a request of code %s", request.code)
        return refuse(ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {error}")
