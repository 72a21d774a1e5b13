from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seglog.remoting.command import OUR_SENDER, Request, Response, Sender
from seglog.remoting.later import Deferred
from tests.support.connections import WireEnd
from tests.support.listening import LOOPBACK, PATIENT, BrokerServer
from tests.support.machine.patience import patience_s, wait_for_result


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., BrokerServer]]:
    """Serves brokers behind ports of their own until the end; the limits that are not named are patient."""
    with ExitStack() as servers:
        yield lambda **limits: servers.enter_context(
            BrokerServer(tmp_path / "served", limits=replace(PATIENT, **limits))
        )


@pytest.fixture
def dial() -> Iterator[Callable[[BrokerServer], socket.socket]]:
    """Connects sockets to servers; they are closed in the end."""
    with ExitStack() as ends:

        def connect(server: BrokerServer) -> socket.socket:
            return ends.enter_context(socket.create_connection((LOOPBACK, server.port), patience_s(30)))

        yield connect


@pytest.fixture
def join(dial: Callable[[BrokerServer], socket.socket]) -> Iterator[Callable[..., WireEnd]]:
    """Joins servers as clients do that may be asked; they are closed in the end."""
    with ExitStack() as clients:

        def connect(
            server: BrokerServer,
            answer: Callable[[Request], Response | Deferred[Response] | None] = lambda _: None,
            sender: Sender = OUR_SENDER,
        ) -> WireEnd:
            end = dial(server)
            end.settimeout(None)
            client = WireEnd(end, server.broker.timers, answer, sender=sender)
            clients.callback(client.close)
            return client

        yield connect


@contextmanager
def held_back(server: BrokerServer) -> Iterator[None]:
    """Has a server look at nothing that comes until the end of the ``with`` statement."""
    end = threading.Event()
    server.server._loop.call_soon_threadsafe(end.wait)
    try:
        yield
    finally:
        end.set()


def ask(client: WireEnd, request: Request, **options: Any) -> Response:
    """Returns the answer to a request."""
    return wait_for_result(client.ask(request, 60_000), idle_s=30)
