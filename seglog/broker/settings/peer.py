"""Who is asking, and the way back to it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Protocol

from seglog.remoting.command import Request
from seglog.storage.format.record import Host

OUR_VERSION: Final = 477
"""``MQVersion`` V5_3_2, what this client and broker are like; brokers take clients below 401 to be old."""


class Channel(Hashable, Protocol):
    """The connection to a client, equal only to itself."""

    def notify(self, request: Request) -> None:
        """Sends the client something that it does not answer.

        Called from any thread, that of another client's request too: it hands the request on and returns,
        neither waiting nor raising.
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
    """

    client_id: str
    host: Host
    channel: Channel | None = None
    language: str = "PYTHON"
    version: int = OUR_VERSION

    def key(self, client_id: str | None = None) -> Hashable:
        """Returns what distinguishes clients: their connection, or else how they call themselves.

        Args:
            client_id: The name in a request's body, where it has one.
        """
        return (client_id or self.client_id) if self.channel is None else self.channel
