"""ServedBroker: a broker behind a port of its own, on real time or on virtual time."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Literal, Self

from typing_extensions import override

from seglog.arguments import as_choice
from seglog.broker.broker import Broker
from seglog.broker.settings import BrokerConfig
from seglog.client.client import Client
from seglog.client.connect import make_client
from seglog.clock import SystemClock, VirtualClock
from seglog.closing import Closing
from seglog.errors import InvalidArgumentError
from seglog.server.listening import Listener as Port
from seglog.server.server import Server
from seglog.testing.for_tests import C, ForTests
from seglog.testing.virtual_broker import (
    QUEUE_FILE_SIZE_BYTES,
    SEGMENT_SIZE_BYTES,
    USUAL_CONFIG,
    RoomyFiles,
    VirtualBroker,
)


class ServedBroker(Closing, ForTests):
    """A broker behind a port of its own, for clients in other processes and languages, made by :meth:`at`.

    On virtual time its timestamps, delays, retries and retention follow a clock that only :meth:`advance`
    moves. Connections, held pulls, queue locks and the expiry of clients stay on real time, as client
    programs do.

    Attributes:
        broker: The broker; usable in process too.
        address: Its address for clients, as broker and as name server.
    """

    def __init__(self, broker: Broker, port: Port) -> None:
        self.broker = broker
        self.address = port.address
        self._server = Server(broker, port)
        self._clients = ExitStack()
        self._broadcasting = count(1)

    @classmethod
    def at(
        cls,
        path: str | os.PathLike[str],
        *,
        clock: Literal["real", "virtual"] = "real",
        config: BrokerConfig | None = None,
        port: int = 0,
    ) -> Self:
        """Opens the store at ``path``, creating it if needed, and serves it on loopback.

        The real usage of the disk is ignored.

        Args:
            path: The store directory.
            clock: The clock of the broker; virtual time begins now.
            config: Names and settings; the address is replaced by that of the port. By default SQL92 filters
                are on.
            port: The port; 0 for a free one.

        Raises:
            CannotListenError: The port is in use.
            StoreError: As ``MessageStore.open`` raises it.
        """
        as_choice("clock", ("real", "virtual"), clock)
        end = Port(port=port)
        named = replace(config or USUAL_CONFIG, address=end.address)
        with ExitStack() as made:
            made.callback(end.close)
            if clock == "virtual":
                real = SystemClock()
                now = VirtualClock(real.now_ms())
                broker: Broker = VirtualBroker.at(path, clock=now, liveness_clock=real, config=named)
            else:
                broker = Broker.open(
                    path,
                    config=named,
                    segment_size_bytes=SEGMENT_SIZE_BYTES,
                    queue_file_size_bytes=QUEUE_FILE_SIZE_BYTES,
                    files=RoomyFiles(path),
                )
            made.callback(broker.close)
            served = cls(broker, end)
            made.pop_all()
        return served

    def advance(self, by: int | str | timedelta) -> None:
        """Lets virtual time pass, as :meth:`~seglog.broker.broker.Broker.advance` does.

        Raises:
            InvalidArgumentError: ``by`` is no duration, or the broker is on real time.
        """
        if not isinstance(self.broker, VirtualBroker):
            raise InvalidArgumentError(
                "the broker is on real time, which nothing moves",
                help='start it on virtual time: seglog_server(clock="virtual")',
            )
        self.broker.advance(by)

    @override
    def _served(self) -> Broker:
        return self.broker

    @override
    def _address(self) -> str:
        return self.address

    @override
    def _target(self, *, is_broadcasting: bool) -> Client | str:
        if not is_broadcasting:
            return self.address
        client = make_client(self.address, instance_name=f"test-{next(self._broadcasting)}")
        return self._clients.enter_context(client)

    @override
    def _usual_of_producers(self) -> tuple[None, None]:
        return None, None

    @override
    def _own(self, client: C) -> C:
        self._clients.callback(client.close)
        return client

    @override
    def close(self) -> None:
        """Closes the clients that it made, the connections, then the broker; a second call does nothing."""
        self._clients.close()
        self._server.close()
        self.broker.close()
