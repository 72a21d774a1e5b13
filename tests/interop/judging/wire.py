"""Requests and answers as they go over a connection: ext fields and bytes, by our own codec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seglog.remoting.body_json.queue_bodies import LOCKED_QUEUES, RESET_OFFSETS
from seglog.remoting.codec import Asked, Codec, Pieces
from seglog.remoting.command import Request, Response
from seglog.remoting.frames.frame import Frame
from seglog.remoting.frames.limits import DEFAULT_LIMITS
from seglog.remoting.frames.reader import FrameReader
from seglog.remoting.message_queue import MessageQueue


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


def encode_request(request: Request) -> WireRequest:
    """Returns a request as it goes out."""
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
