"""Who is asking, and the way back to it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Protocol

from seglog.remoting.command import OUR_SENDER, Request, Response
from seglog.remoting.later import Deferred
from seglog.storage.format.record import Host


class Channel(Hashable, Protocol):
    """The connection to a client, equal only to itself."""

    def notify(self, request: Request) -> None:
        """Sends the client something that it does not answer.

        Called from any thread, that of another client's request too: it hands the request on and returns,
        neither waiting nor raising.
        """

    def ask(self, request: Request, timeout_ms: int) -> Deferred[Response]:
        """Sends the client a request, and returns what its answer comes by; called as :meth:`notify` is.

        A refusal is an answer too. It fails with ``AskTimeoutError`` if none comes in time, with
        ``ConnectionEndedError`` if the connection ends first, and with ``AskLimitError`` if too many asks
        wait already. Cancelling it drops the answer.

        Args:
            request: What is asked.
            timeout_ms: How long the answer may take, by the clock that the clients of the broker live by.
        """


@dataclass(frozen=True, slots=True)
class Peer:
    """The client that sent a request.

    Attributes:
        client_id: As the client calls itself.
        host: Stored as the born host of its messages.
        channel: The way to notify it; None for one that is never notified.
        language: Name of RocketMQ's ``LanguageCode``.
        version: Ordinal of RocketMQ's ``MQVersion``.
        is_remote: Whether it is another process, at the end of a connection, which may outlive this one.
        principal: Who the connection has been proven to be; None where nothing was proven.
    """

    client_id: str
    host: Host
    channel: Channel | None = None
    language: str = OUR_SENDER.language
    version: int = OUR_SENDER.version
    is_remote: bool = False
    principal: str | None = None

    def key(self, client_id: str | None = None) -> Hashable:
        """Returns what distinguishes clients: their connection, or else how they call themselves.

        Args:
            client_id: The name in a request's body, where it has one.
        """
        return (client_id or self.client_id) if self.channel is None else self.channel


LOCAL_PEER: Final = Peer("local", Host(b"\x7f\x00\x00\x01", 0))
"""What asks in process without a link."""
