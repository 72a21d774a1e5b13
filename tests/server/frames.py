"""Frames for sockets of tests, and what comes back."""

from __future__ import annotations

import socket

from seglog.remoting.codec import Answered, Asked, Codec
from seglog.remoting.command import Request, Response


def bytes_of(codec: Codec, *requests: Request) -> bytes:
    """Returns requests as bytes."""
    return b"".join(b"".join(codec.ask(each)[1]) for each in requests)


def answers(codec: Codec, end: socket.socket, count: int, piece_bytes: int = 1 << 16) -> dict[int, Response]:
    """Reads answers, and returns them by the numbers of their requests.

    Args:
        codec: What has asked.
        end: Where they come.
        count: How many.
        piece_bytes: Of one read.
    """
    found: dict[int, Response] = {}
    while len(found) < count:
        data = end.recv(piece_bytes)
        assert data, f"the connection has ended after {len(found)} of {count} answers"
        for event in codec.receive(data):
            if isinstance(event, Asked):
                continue  # a notice
            assert isinstance(event, Answered)
            assert isinstance(event.answer, Response), event.answer
            found[event.opaque] = event.answer
    return found


def ends(end: socket.socket) -> bool:
    """Returns whether the other end closes the connection; what comes before that is dropped."""
    try:
        while end.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    return True
