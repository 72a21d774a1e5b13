"""A link to a broker in the same process."""

from __future__ import annotations

from collections.abc import Callable

from seglog.arguments import as_text
from seglog.client.link import new_client_id
from seglog.clock import Clock
from seglog.remoting.command import Request, Response
from seglog.remoting.dispatcher import Dispatcher
from seglog.remoting.peer import LOCAL_PEER, Peer


class LocalLink:
    """Hands requests to a broker as they are: nothing is encoded, copied or queued.

    Args:
        broker: Once it is closed, every request is refused.
        client_id: Made up if it is not given.
        on_notice: Called with what the broker sends the client unasked, such as
            NOTIFY_CONSUMER_IDS_CHANGED, in the thread that was the cause; it returns at once.
        principal: Who asks, for what a broker calls before each request.
    """

    def __init__(
        self,
        broker: Dispatcher,
        client_id: str | None = None,
        on_notice: Callable[[Request], None] | None = None,
        *,
        principal: str | None = None,
    ) -> None:
        self._broker = broker
        self._on_notice = on_notice
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

    def close(self) -> None:
        """Notifies the broker that the client is gone; its groups share its queues without it."""
        self._broker.disconnect(self._peer)
