"""A link to a broker in the same process."""

from __future__ import annotations

from seglog.broker.broker import LOCAL_PEER, Broker
from seglog.broker.state import Peer
from seglog.client.link import new_client_id
from seglog.remoting.command import Request, Response


class LocalLink:
    """Hands requests to a broker as they are: nothing is encoded, copied or queued.

    Args:
        broker: Once it is closed, every request is refused.
        client_id: Made up if it is not given.
    """

    def __init__(self, broker: Broker, client_id: str | None = None) -> None:
        self._broker = broker
        self._peer = Peer(client_id or new_client_id(), LOCAL_PEER.host)

    @property
    def client_id(self) -> str:
        """What this end is called."""
        return self._peer.client_id

    def invoke(self, request: Request, timeout_ms: int | None = None) -> Response:
        """Returns the broker's answer; no way can be slow or broken, so there is nothing to time out."""
        return self._broker.dispatch(request, self._peer)
