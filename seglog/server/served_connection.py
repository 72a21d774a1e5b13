"""One connection of a client to a server, from accept to close; it is not reused.

Under low load requests are answered as they are read; otherwise they wait for their turn, except those that
keep a client in its groups. While a thread parses a long body, later requests of the connection wait. Answers
may follow later, if the broker returns a deferred. A client is not trusted: its frames have limits, reading
stops if it sends too many requests or reads too few answers, and a connection that is silent or sends half a
frame is closed after a time.

The broker may send notices and requests from any thread; the loop writes them.

Source: ``NettyRemotingAbstract.java``, ``NettyRemotingServer.java``.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from typing_extensions import override

from seglog.errors import FrameError, ProtocolError
from seglog.logs import logger
from seglog.remoting.codec import Answered, Asked, Codec, Event, Pieces, Read, Unread, WronglyAsked
from seglog.remoting.codes import ResponseCode
from seglog.remoting.command import OUR_SENDER, Request, Response, refuse
from seglog.remoting.exchanges import is_for_clients
from seglog.remoting.later import AskTable, Deferred
from seglog.remoting.peer import Peer
from seglog.server.limits import FRAME_BYTES_PER_MS
from seglog.server.long_bodies import LONG_BYTES
from seglog.server.outgoing import Outgoing
from seglog.server.served_requests import Asking, ServedRequests
from seglog.server.shared import Shared
from seglog.server.strangers import HEAD_BYTES, stranger_of
from seglog.storage.format.record import Host

_STRANGER_S: Final = 1.0
"""How long a peer with another protocol may take to read its answer and to disconnect."""
_log = logger(__name__)


class Ending(NamedTuple):
    """The logged reason of a close.

    Attributes:
        kind: One of a few words.
        why: The error of its client.
    """

    kind: str
    why: str


class ServedConnection(asyncio.Protocol, Asking):
    """The broker's end of a connection. The loop calls it; :meth:`notify` and :meth:`ask` any thread.

    Args:
        shared: The shared parts of the server.
        end: The socket.
        host: The client's address.

    Attributes:
        is_over: Whether it has ended.
        gone: Resolved when its socket is closed.
    """

    def __init__(self, shared: Shared, end: socket.socket, host: Host) -> None:
        self._shared = shared
        self._limits = shared.limits
        self._host = host
        self._codec = Codec(long_bytes=LONG_BYTES)
        self._asks: AskTable[Response] = AskTable(shared.broker.timers)
        self._out = Outgoing(end)
        self._transport: asyncio.Transport | None = None
        self._events: Iterator[Event] | None = None
        peer = Peer(str(host), host, self, *OUR_SENDER, is_remote=True)
        self._requests = ServedRequests(shared, self._codec, self, peer)
        self._is_going_on = self._is_finished = self._is_reading_body = False
        self._head = b""
        self._begun_bytes = self._kernel_bytes = self._counted_bytes = 0
        self._begun_s = self._heard_s = self._written_s = shared.loop.time()
        self.is_over = False
        self.gone: asyncio.Future[None] = shared.loop.create_future()

    @property
    def is_busy(self) -> bool:
        """Whether it has answers that its client has not received yet."""
        return not self.is_over and bool(
            self._requests.is_busy or self._is_reading_body or self._out.waiting_bytes
        )

    @property
    @override
    def takes_answers(self) -> bool:
        """Whether its client reads its answers; True after a disconnect, so that nothing waits for it."""
        return self.is_over or not self._is_stuffed()

    def notify(self, request: Request) -> None:
        """Sends a notice; it is dropped if the client reads too little."""
        if self.is_over or self._out.waiting_bytes >= self._limits.answer_bytes:
            return
        try:
            _, pieces = self._codec.ask(replace(request, is_oneway=True), 0)
        except ProtocolError:
            _log.exception("a notice of code %s cannot be sent", request.code)
        else:
            self._shared.inbox.post(partial(self._send, pieces))

    def ask(self, request: Request, timeout_ms: int) -> Deferred[Response]:
        """Sends a request, and returns the deferred answer."""
        one = self._asks.open(timeout_ms, f"request {int(request.code)} to {self._host}")
        if one.is_done:
            return one
        try:
            _, pieces = self._codec.ask(request, one.opaque)
        except ProtocolError as error:
            self._asks.fail(one.opaque, error)
            return one
        one.then(lambda _: self._codec.forget(one.opaque))
        self._shared.inbox.post(partial(self._send, pieces))
        return one

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins to serve."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self.is_over:
            transport.abort()
            return
        self._out.open(transport)

    @override
    def data_received(self, data: bytes) -> None:
        """Serves received bytes."""
        if self.is_over or self._is_finished:
            return
        self._heard_s = self._shared.loop.time()
        if len(self._head) < HEAD_BYTES:
            self._head += data[: HEAD_BYTES - len(self._head)]
        self._events = self._codec.receive(data)
        self._go_on()

    @override
    def resume_writing(self) -> None:
        """Continues to write: the client has read."""
        self._write(self._out.written)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        """Ends it: the socket is closed."""
        self._transport = None
        self.end(None)
        if not self.gone.done():
            self.gone.set_result(None)

    def end_held(self) -> None:
        """Answers held pulls from the present state."""
        self._requests.end_held()

    @override
    def flush(self) -> None:
        """Writes waiting bytes, and resumes reading if they prevented it."""
        self._write(self._out.flush)

    def finish(self) -> None:
        """Shuts down the sending side, and drops received bytes until the client disconnects.

        Closing a socket with unread bytes would discard answers that are still in flight.
        """
        self._is_finished = True
        self._events = None
        if self._transport is not None and not self.is_over:
            with suppress(OSError):  # the client disconnected first
                self._transport.write_eof()
            self._transport.resume_reading()

    @override
    def put(self, pieces: Pieces) -> None:
        """Takes bytes for the client; :meth:`flush` writes them."""
        if not self._out.waiting_bytes:
            self._written_s = self._shared.loop.time()  # the client has bytes to read from now on
        self._out.put(pieces)
        self._count_waiting()

    def overdue(self, now_s: float) -> Ending | None:
        """Returns the exceeded time limit, None if there is none.

        Args:
            now_s: The time of the loop.
        """
        limits, waiting_bytes, begun_bytes = self._limits, self._out.waiting_bytes, self._begun_bytes
        if waiting_bytes and not self.is_over:
            self._note_read(now_s)
        if waiting_bytes and (now_s - self._written_s) * 1_000 >= limits.stall_ms:
            return Ending(
                "stall", f"it has read nothing for {limits.stall_ms} ms, {waiting_bytes} bytes wait for it"
            )
        frame_ms = limits.frame_ms + begun_bytes / FRAME_BYTES_PER_MS
        if begun_bytes and self._is_read() and (now_s - self._begun_s) * 1_000 >= frame_ms:
            return Ending(
                "slow", f"{begun_bytes} bytes of a frame came, its end did not for {frame_ms:.0f} ms"
            )
        if (now_s - max(self._heard_s, self._written_s)) * 1_000 >= limits.idle_ms:
            return Ending("idle", f"it was silent for {limits.idle_ms} ms")
        return None

    def end(self, ending: Ending | None) -> None:
        """Ends it: requests to the client fail, and the broker no longer waits for it.

        Args:
            ending: The logged reason; None for a regular end.
        """
        if self.is_over:
            return
        self.is_over = True
        if ending is not None:
            self._shared.complaints.tell(ending.kind, f"connection of {self._host} closed: {ending.why}")
        self._shared.begun_bytes -= self._begun_bytes
        self._asks.end("the connection has ended" if ending is None else ending.why)
        self._out.drop()
        self._count_waiting()
        self._requests.end()
        self._events = None
        if self._transport is not None:
            self._transport.abort()
        self._shared.broker.disconnect(self._requests.peer)

    def _end_stranger(self, error: FrameError) -> None:
        """Ends it after bytes that are not a frame; a peer with another protocol gets an answer in it."""
        stranger = stranger_of(self._head)
        if stranger is None:
            self.end(Ending("frame", f"it has sent what is no frame: {error}"))
        elif not stranger.answer:
            self.end(Ending(stranger.kind, stranger.why))
        else:
            self._shared.complaints.tell(stranger.kind, f"connection of {self._host} closed: {stranger.why}")
            self.put([stranger.answer])
            self.flush()
            self.finish()
            self._shared.loop.call_later(_STRANGER_S, self.end, None)

    def _note_read(self, now_s: float) -> None:
        """Notes that the client reads, by the send buffer, even if the socket takes no more bytes yet."""
        with suppress(OSError):  # the connection is broken, which the loop notices itself
            kernel_bytes = self._out.kernel_bytes()
            if kernel_bytes != self._kernel_bytes:
                self._kernel_bytes, self._written_s = kernel_bytes, now_s

    def _is_read(self) -> bool:
        return self._transport is not None and self._transport.is_reading()

    def _go_on(self) -> None:
        """Serves received requests, within the limits and for one turn at most."""
        self._is_going_on = False
        events, time = self._events, self._shared.loop.time
        begin_s, turn_s = time(), self._limits.turn_ms / 1_000
        is_read = False
        while events is not None and not self.is_over and not self._is_full():
            passed_s = time() - begin_s
            if passed_s >= turn_s:
                self._go_on_soon()
                break
            # For half of its turn it serves requests as they are read, then it only reads and queues them.
            is_inline = passed_s * 2 < turn_s and not self._shared.processors.count
            try:
                event = next(events, None)
            except FrameError as error:
                self.flush()
                self._end_stranger(error)
                return
            if event is None:
                events = self._events = None
            else:
                is_read = True
                self._hear(event, is_inline=is_inline)
        self.flush()
        if not self.is_over:
            self._note_begun(is_read=is_read)
            self._read_or_not()

    def _go_on_soon(self) -> None:
        if not self._is_going_on:
            self._is_going_on = True
            self._shared.loop.call_soon(self._go_on)

    def _read_or_not(self) -> None:
        """Resumes reading only when all received requests are served or queued, within the limits."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._events is None and not self._is_full():
            if not self._is_read():
                self._begun_s = self._shared.loop.time()  # the client is not the cause of the pause
                transport.resume_reading()
        elif self._is_read():
            transport.pause_reading()

    def _is_full(self) -> bool:
        return self._is_reading_body or self._requests.is_full or self._is_stuffed()

    def _is_stuffed(self) -> bool:
        limits, waiting_bytes = self._limits, self._out.waiting_bytes
        return waiting_bytes >= limits.answer_bytes or (
            waiting_bytes > 0 and self._shared.answer_bytes >= limits.all_answer_bytes
        )

    def _note_begun(self, *, is_read: bool) -> None:
        """Counts the bytes of an incomplete frame, and notes when it began."""
        begun_bytes = self._codec.begun_bytes
        if begun_bytes and (is_read or not self._begun_bytes):
            self._begun_s = self._shared.loop.time()
        self._shared.begun_bytes += begun_bytes - self._begun_bytes
        self._begun_bytes = begun_bytes
        if begun_bytes and self._shared.begun_bytes > self._limits.begun_bytes:
            why = f"{self._shared.begun_bytes} bytes of frames have come whose end has not"
            self.end(Ending("begun", why))

    def _hear(self, event: Event, *, is_inline: bool) -> None:
        if isinstance(event, Asked):
            self._requests.take(event, is_inline=is_inline)
        elif isinstance(event, WronglyAsked) and is_for_clients(event.request.code):
            # A broker does not serve it, with any fields, and its refusal says so.
            self._requests.take(Asked(event.opaque, event.request), is_inline=is_inline)
        elif isinstance(event, WronglyAsked):
            self._shared.complaints.tell("asked", f"{self._host} asks what cannot be read: {event.error}")
            self._requests.respond(event, refuse(ResponseCode.SYSTEM_ERROR, str(event.error)))
        elif isinstance(event, Answered):
            if isinstance(event.answer, ProtocolError):
                self._asks.fail(event.opaque, event.answer)
            else:
                self._asks.answer(event.opaque, event.answer)
        elif isinstance(event, Unread):
            self._is_reading_body = True
            self._shared.bodies.put(self._codec, event, partial(self._has_read, event))

    def _has_read(self, unread: Unread, found: Read | Response) -> None:
        """Serves or refuses the request of a parsed body, and serves the requests behind it."""
        self._is_reading_body = False
        if self.is_over:
            return
        if not isinstance(found, Response):
            self._hear(found, is_inline=False)
        elif unread.frame.is_response:
            self._asks.fail(unread.frame.opaque, ProtocolError(f"an answer was not read: {found.remark}"))
        else:
            self._shared.complaints.tell("overload", f"a long body is not read: {found.remark}")
            self._requests.respond(unread.asked, found)
        self._go_on()

    def _send(self, pieces: Pieces) -> None:
        if not self.is_over:
            self.put(pieces)
            self._shared.flush_soon(self)

    def _count_waiting(self) -> None:
        """Adds the bytes that wait for its client to the total of all clients."""
        waiting_bytes = self._out.waiting_bytes
        self._shared.answer_bytes += waiting_bytes - self._counted_bytes
        self._counted_bytes = waiting_bytes

    def _write(self, write: Callable[[], int]) -> None:
        """Writes, and notes the number of bytes."""
        if self.is_over:
            return
        try:
            self._wrote(write())
        except OSError as error:
            self.end(Ending("broken", f"it broke: {error}"))

    def _wrote(self, written_bytes: int) -> None:
        self._count_waiting()
        if written_bytes:
            self._written_s = self._shared.loop.time()
        if not self._is_stuffed():
            self._requests.go_on()
        if self._events is not None:
            if not self._is_full():
                self._go_on_soon()
        else:
            self._read_or_not()
