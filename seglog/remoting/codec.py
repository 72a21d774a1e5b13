"""The codec of one connection: decodes bytes into events, and encodes requests and answers.

Both ends use it, and both may send requests: a broker also sends requests to its clients, over the
connections that they have opened. The codec has no socket, clock or thread. Bytes that are not a frame end
the connection (``FrameError``); a request with wrong fields is an event of its own, and is answered like any
other.

Source: ``NettyRemotingAbstract.java``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from seglog.errors import FrameError, LocalProtocolError, ProtocolError
from seglog.remoting.command import OUR_SENDER, Request, Response, Sender
from seglog.remoting.frames.frame import Frame, Serialization
from seglog.remoting.frames.limits import DEFAULT_LIMITS, Limits
from seglog.remoting.frames.reader import FrameReader
from seglog.remoting.messages import (
    decode_request,
    decode_response,
    has_json,
    request_pieces,
    response_pieces,
)
from seglog.storage.kernels.made import quickly_made

_END_OPAQUE: Final = 1 << 31


@quickly_made
@dataclass(frozen=True, slots=True)
class Asked:
    """A request of the other side; :meth:`Codec.answer` encodes its answer.

    Attributes:
        opaque: Number of the request.
        request: What it asks.
    """

    opaque: int
    request: Request


@dataclass(frozen=True, slots=True)
class WronglyAsked:
    """A request of the other side with fields or a body that its code does not allow.

    Attributes:
        opaque: Number of the request.
        request: What is known of it: no header, and the body as it came.
        error: What is wrong; the answer to it is of code 1.
    """

    opaque: int
    request: Request
    error: ProtocolError


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a request of this side.

    Attributes:
        opaque: Number of the request.
        answer: The answer; or the error, if it cannot be read.
    """

    opaque: int
    answer: Response | ProtocolError


@dataclass(frozen=True, slots=True)
class Unasked:
    """An answer to no waiting request: usually it has arrived after a timeout."""

    opaque: int


@dataclass(frozen=True, slots=True)
class Unread:
    """A message whose body is long JSON, which :meth:`Codec.read` parses in any thread.

    Attributes:
        frame: As it came.
        code: Of what the other side asks, or was asked.
    """

    frame: Frame
    code: int

    @property
    def asked(self) -> Asked:
        """What asks, without header and body; :meth:`Codec.answer` makes its refusal."""
        frame = self.frame
        sender = Sender(frame.language, frame.version)
        return Asked(frame.opaque, Request(frame.code, is_oneway=frame.is_oneway, sender=sender))


Read: TypeAlias = Asked | WronglyAsked | Answered
Event: TypeAlias = Read | Unasked | Unread
Pieces: TypeAlias = list[bytes | memoryview]


class Codec:
    """The codec of one end of one connection. One thread at a time receives; one at a time asks.

    Where a table gives the numbers any thread asks, at any time: what is shared is one table of numbers, and
    the bytes of a request are out only after it is in there.

    Args:
        sender: What this end says it is.
        serialization: Form of the headers that it writes; it reads both.
        limits: Of what comes in.
        of_client: Whether it is the end that asks for most: headers that come in are those of answers.
        long_bytes: From how many bytes on JSON is left unread for :meth:`read`; None reads all at once.
    """

    def __init__(
        self,
        sender: Sender = OUR_SENDER,
        serialization: Serialization = Serialization.JSON,
        limits: Limits = DEFAULT_LIMITS,
        *,
        of_client: bool = False,
        long_bytes: int | None = None,
    ) -> None:
        self._sender = sender
        self._serialization = serialization
        self._limits = limits
        self._long_bytes = limits.frame_bytes if long_bytes is None else long_bytes
        self._reader = FrameReader(limits, of_answers=of_client)
        self._waiting: dict[int, int] = {}
        self._next_opaque = 0
        self._is_over = False

    @property
    def begun_bytes(self) -> int:
        """The number of bytes of an incomplete frame."""
        return self._reader.begun_bytes

    def receive(self, data: bytes) -> Iterator[Event]:
        """Yields the events that these bytes complete; bodies may be views of them.

        Raises:
            FrameError: They are not frames; the connection must be closed, and nothing more is received.
        """
        if self._is_over:
            raise FrameError("bytes came behind some that were no frame")
        try:
            for frame in self._reader.feed(data):
                yield self._event(frame)
        except FrameError:
            self._is_over = True
            raise

    def ask(self, request: Request, opaque: int | None = None) -> tuple[int, Pieces]:
        """Returns the number of a request, and its bytes in pieces; a oneway one gets no answer.

        Args:
            request: What is asked.
            opaque: Its number, where a table of asks gives it; the next free one by default.

        Raises:
            ProtocolError: The request cannot be written: its header or body is not that of its code, or
                another one waits that has its number.
        """
        number = self._next_opaque if opaque is None else opaque
        while opaque is None and number in self._waiting:
            number = (number + 1) % _END_OPAQUE
        if not request.is_oneway and number in self._waiting:
            raise LocalProtocolError(f"a request of number {number} waits for its answer already")
        pieces = request_pieces(request, number, self._sender, self._serialization, self._limits)
        if opaque is None:
            self._next_opaque = (number + 1) % _END_OPAQUE
        if not request.is_oneway:
            self._waiting[number] = request.code
        return number, pieces

    def forget(self, opaque: int) -> None:
        """Stops waiting for an answer; if it still arrives, it is :class:`Unasked`."""
        self._waiting.pop(opaque, None)

    def answer(self, asked: Asked | WronglyAsked, response: Response) -> Pieces:
        """Returns the bytes of an answer in pieces, those of records not copied; none for a oneway request.

        Raises:
            ProtocolError: The answer cannot be written: its header or body is not that of the request's code.
        """
        if asked.request.is_oneway:
            return []
        return response_pieces(
            response, asked.request, asked.opaque, self._sender, self._serialization, self._limits
        )

    def read(self, unread: Unread) -> Read:
        """Returns the event of a message whose body was left unread; any thread may call it."""
        return self._read(unread.frame, unread.code)

    def _event(self, frame: Frame) -> Event:
        code = self._waiting.pop(frame.opaque, None) if frame.is_response else frame.code
        if code is None:
            return Unasked(frame.opaque)
        if len(frame.body) >= self._long_bytes and has_json(frame, code):
            return Unread(frame, code)
        return self._read(frame, code)

    def _read(self, frame: Frame, code: int) -> Read:
        if not frame.is_response:
            request, error = decode_request(frame, self._limits)
            if error is None:
                return Asked(frame.opaque, request)
            return WronglyAsked(frame.opaque, request, error)
        try:
            return Answered(frame.opaque, decode_response(frame, code, self._limits))
        except ProtocolError as error:
            return Answered(frame.opaque, error)
