"""What stands at the other end of a client's connection, byte by byte or answer by answer."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from seglog.client.home.thread_home import thread_home
from seglog.errors import CannotConnectError, ConnectionEndedError
from seglog.remoting.codec import Answered, Asked, Codec
from seglog.remoting.codes import ResponseCode
from seglog.remoting.command import Request, Response
from tests.support.connections import WireEnd

ASK: Final = Request(9_999)
ENDED: Final = (ConnectionEndedError, CannotConnectError)


def echo(request: Request) -> Response:
    """Answers with the body that has come."""
    return Response(ResponseCode.SUCCESS, body=request.body)


def answering(answer: Callable[[Request], Response | None]) -> Callable[[socket.socket, int], None]:
    """Serves a connection by answering each request, for ``Server``."""
    return lambda one, _: WireEnd(one, thread_home().timers, answer).join()


def asked_with(codec: Codec, data: bytes) -> list[Asked]:
    """Returns the requests that end with these bytes."""
    found: list[Asked] = []
    for event in codec.receive(data):
        assert isinstance(event, Asked)
        found.append(event)
    return found


def answered_with(codec: Codec, data: bytes) -> list[tuple[int, Response]]:
    """Returns the answers that end with these bytes, and their numbers."""
    found: list[tuple[int, Response]] = []
    for event in codec.receive(data):
        assert isinstance(event, Answered)
        assert isinstance(event.answer, Response)
        found.append((event.opaque, event.answer))
    return found


def read_for_ever(one: socket.socket, _number: int = 0) -> None:
    """Reads, and says nothing."""
    while one.recv(1 << 16):
        pass


@contextmanager
def kept_port() -> Iterator[int]:
    """Lends a port that no other program gets; a server with SO_REUSEADDR may listen on it meanwhile."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        yield port


def closed_port() -> int:
    """Returns a port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        port: int = one.getsockname()[1]
        return port
