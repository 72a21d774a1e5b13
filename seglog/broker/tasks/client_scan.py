"""The duty that removes clients without a recent heartbeat."""

from __future__ import annotations

from typing import ClassVar, Final

from typing_extensions import override

from seglog.broker.tables.clients import ClientTable
from seglog.clock import Clock
from seglog.schedule import Periodic

SCAN_MS: Final = 10_000


class ClientScan(Periodic):
    """Removes clients that sent no heartbeat for two minutes; runs every ten seconds."""

    name: ClassVar[str] = "client-scan"

    def __init__(self, clock: Clock, clients: ClientTable) -> None:
        super().__init__(clock, SCAN_MS)
        self._clients = clients

    @override
    def is_needed(self) -> bool:
        return not self._clients.is_empty

    @override
    def act(self) -> None:
        self._clients.expire()
