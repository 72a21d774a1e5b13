"""Requests and answers as they go over a connection: ext fields and bytes, by our own codec."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from seglog.errors import ProtocolError
from seglog.remoting.body_json.queue_bodies import LOCKED_QUEUES, RESET_OFFSETS
from seglog.remoting.codec import Asked, Codec, Pieces, WronglyAsked
from seglog.remoting.command import NO_HEADER, Request, Response
from seglog.remoting.frames.frame import Frame
from seglog.remoting.frames.limits import DEFAULT_LIMITS
from seglog.remoting.frames.reader import FrameReader
from seglog.remoting.frames.writer import encode_frame
from seglog.remoting.message_queue import MessageQueue
from tests.support.machine.patience import patience_s

VERSION: Final = 493
"""Of the client that is said to ask."""


@dataclass(frozen=True, slots=True)
class WireRequest:
    """What a client sends."""

    code: int
    ext: Mapping[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """What a broker answers.

    Attributes:
        body: Bytes; decoded where it is JSON, see :func:`queues_of` and the like.
    """

    code: int
    remark: str | None
    ext: Mapping[str, str]
    body: bytes


class RawClient:
    """Asks over one connection what we have no type for; use it in a ``with`` statement.

    Args:
        address: Of a broker or a name server.
    """

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=patience_s(30))
        self._reader = FrameReader()
        self._opaques = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: WireRequest) -> WireAnswer:
        """Returns the answer to a request; what the other side asks meanwhile is dropped."""
        opaque = next(self._opaques)
        body = request.body or b""
        frame = Frame(request.code, "JAVA", VERSION, opaque, ext=request.ext, body=body)
        self._socket.sendall(encode_frame(frame) + body)
        while True:
            data = self._socket.recv(1 << 16)
            assert data, f"the connection has ended before request {request.code} was answered"
            for found in list(self._reader.feed(data)):
                if found.is_response and found.opaque == opaque:
                    return WireAnswer(found.code, found.remark, found.ext or {}, bytes(found.body))


def is_untyped(request: Request) -> bool:
    """Returns whether a request has fields and no header that its class of headers could hold."""
    return request.header is NO_HEADER and request.ext is not None


def decode_untyped(request: Request) -> tuple[Request, ProtocolError | None]:
    """Returns such a request as a broker reads it; with the error if it cannot be read."""
    wire = encode_request(request)
    body = wire.body or b""
    frame = Frame(wire.code, "JAVA", VERSION, 1, ext=wire.ext, body=body)
    (event,) = Codec().receive(encode_frame(frame) + body)
    assert isinstance(event, Asked | WronglyAsked)
    return event.request, event.error if isinstance(event, WronglyAsked) else None


def encode_request(request: Request) -> WireRequest:
    """Returns a request as it goes out."""
    if is_untyped(request):
        assert request.body is None or isinstance(request.body, bytes)
        return WireRequest(request.code, request.ext or {}, request.body)
    frame = _frame(Codec().ask(request)[1])
    return WireRequest(frame.code, frame.ext or {}, bytes(frame.body) or None)


def encode_answer(request: Request, answer: Response) -> WireAnswer:
    """Returns the answer to a request as it would go out."""
    frame = _frame(Codec().answer(Asked(0, request), answer))
    return WireAnswer(frame.code, frame.remark, frame.ext or {}, bytes(frame.body))


def queues_of(body: bytes) -> frozenset[MessageQueue]:
    """Returns the queues that a lock request was given."""
    return LOCKED_QUEUES.decode(body, DEFAULT_LIMITS).queues


def resets_of(body: bytes) -> Mapping[MessageQueue, int]:
    """Returns where a reset leads, queue by queue."""
    return RESET_OFFSETS.decode(body, DEFAULT_LIMITS).offsets


def _frame(pieces: Pieces) -> Frame:
    (frame,) = FrameReader().feed(b"".join(bytes(piece) for piece in pieces))
    return frame
