"""One connection to a broker or name server, from its creation until its end; it is not reused.

Any thread encodes its requests, which wait until the connection is made. The home does everything else: it
connects, writes, reads, and ends waiting requests. The other end is not trusted: its frames have limits, and
so have the bytes that it does not read; if it sends nothing at all while a request times out, the connection
is closed, as it may have been cut without notice.

Source: ``NettyRemotingAbstract.java``, ``NettyRemotingClient.java``.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from typing_extensions import override

from seglog.client.home.loop_home import LoopHome
from seglog.client.links.dialing import dial
from seglog.client.links.outbox import MOST_BYTES, Outbox
from seglog.client.links.served import OnNotice, OnRequest
from seglog.client.links.serving import Serving
from seglog.errors import (
    AskLimitError,
    AskTimeoutError,
    CannotConnectError,
    ConnectionEndedError,
    FrameError,
    ProtocolError,
    SeglogError,
)
from seglog.logs import logger
from seglog.remoting.codec import Answered, Asked, Codec, Event, WronglyAsked
from seglog.remoting.codes import ResponseCode
from seglog.remoting.command import Request, Response
from seglog.remoting.later import MOST_ASKED_BY_CLIENT, AskTable, Deferred

CONNECT_MS: Final = 3_000
"""``connectTimeoutMillis``."""
SILENT_MS: Final = 3_000
"""If a request times out and nothing was received for this long, the connection is closed."""
STALL_MS: Final = 10_000
"""How long the other end may read none of the bytes that wait for it."""
FEW_ASKED: Final = 8
"""Up to this many waiting requests, the calling thread writes to the socket itself."""
FLUSH_MS: Final = 1_000
"""How long a connection that is closed may take to write the waiting bytes."""
_HIGH_WATER_BYTES: Final = 1 << 20
_log = logger(__name__)


class Owner(NamedTuple):
    """The callbacks of a connection's owner; the home calls them.

    Attributes:
        is_made: The connection is made.
        serves: The other end has sent its first answer.
        is_over: The connection has ended, with the reason; waiting requests fail afterwards.
        turned_away: The other end sent GO_AWAY; called with the request, its deferred answer, and the
            deadline.
        on_notice: As for ``RemoteLink``.
        on_request: Likewise.
    """

    is_made: Callable[[Connection], None]
    serves: Callable[[Connection], None]
    is_over: Callable[[Connection, str], None]
    turned_away: Callable[[Connection, Request, Deferred[Response], float], None]
    on_notice: OnNotice | None
    on_request: OnRequest | None


class Connection(asyncio.Protocol):
    """A connection. Any thread may call ``ask`` and ``tell``; only the home calls the rest.

    Args:
        address: The address of the other end, "host:port".
        home: Runs it.
        owner: Gets its events.

    Attributes:
        address: Where it leads.
        is_made: Whether the connection was ever made.
        has_served: Whether the other end has sent any answer other than GO_AWAY.
        gone: Resolved when the socket is closed.
    """

    def __init__(self, address: str, home: LoopHome, owner: Owner) -> None:
        self.address = address
        self.is_made = False
        self.has_served = False
        self.gone: Deferred[None] = Deferred()
        self._home = home
        self._owner = owner
        self._codec = Codec(of_client=True)
        self._asks: AskTable[Response] = AskTable(home.timers, MOST_ASKED_BY_CLIENT)
        self._first_asked: dict[int, tuple[Request, float]] = {}
        self._outbox = Outbox(home.post)
        self._serving = Serving(home.clock, self._codec, self._outbox.put, owner.on_notice, owner.on_request)
        self._dialing: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._socket: socket.socket | None = None
        self._why_over: str | None = None
        self._is_retired = False
        self._pauses = 0
        self._heard_ms = home.clock.monotonic_ms()

    @property
    def is_needed(self) -> bool:
        """Whether a request waits for its answer."""
        return len(self._asks) > 0

    def ask(self, request: Request, timeout_ms: float, *, is_again: bool = False) -> Deferred[Response]:
        """Returns the deferred answer.

        Args:
            request: The request.
            timeout_ms: The timeout of the answer.
            is_again: Whether another connection answered it GO_AWAY before.
        """
        one = self._asks.open(timeout_ms, f"request {int(request.code)} to {self.address}")
        if one.is_done:
            return one
        if self._outbox.is_full:
            self._asks.fail(one.opaque, AskLimitError(f"{one.what} was not sent: {_FULL}"))
            return one
        try:
            _, pieces = self._codec.ask(request, one.opaque)
        except ProtocolError as error:
            self._asks.fail(one.opaque, error)
            return one
        if not is_again:
            self._first_asked[one.opaque] = request, self._home.clock.monotonic_ms() + timeout_ms
        self._outbox.put(pieces, is_alone=len(self._asks) <= FEW_ASKED and not self._home.is_here())
        one.then(partial(self._ask_is_over, one.opaque))
        return one

    def tell(self, request: Request) -> None:
        """Sends a oneway request; it is dropped if it cannot be sent.

        Raises:
            ProtocolError: It cannot be encoded.
        """
        if self._outbox.is_full:
            _log.warning("request %d to %s was dropped: %s", request.code, self.address, _FULL)
        elif self._why_over is None:
            self._outbox.put(self._codec.ask(request, 0)[1])

    def start(self) -> None:
        """Begins to connect."""
        if self._why_over is None:
            self._dialing = self._home.loop.create_task(self._dial())
            self._dialing.add_done_callback(self._dialed)

    def retire(self) -> None:
        """Ends it once no request waits for an answer; the caller sends no further requests."""
        self._is_retired = True
        self._end_if_idle()

    def end(
        self,
        why: str,
        error: Callable[[str], SeglogError] = ConnectionEndedError,
        *,
        is_in_peace: bool = False,
    ) -> None:
        """Ends it; waiting requests fail.

        Args:
            why: The reason, for logs.
            error: The error that they fail with.
            is_in_peace: Whether waiting bytes may still be written, for a moment.
        """
        if self._why_over is not None:
            return
        self._why_over = why
        self._owner.is_over(self, why)
        self._asks.end(why, error)
        self._serving.end()
        with suppress(RuntimeError):  # a closed loop closes no transports
            if self._transport is not None:
                self._hang_up(self._transport, is_in_peace=is_in_peace)
            elif self._dialing is None:
                self.gone.resolve(None)
            elif self._dialing is not asyncio.current_task(self._home.loop):
                self._dialing.cancel()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Sends what waits."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._why_over is not None:
            transport.abort()
            return
        transport.set_write_buffer_limits(high=_HIGH_WATER_BYTES)
        self.is_made = True
        self._heard_ms = self._home.clock.monotonic_ms()
        self._owner.is_made(self)
        self._open(transport)

    @override
    def data_received(self, data: bytes) -> None:
        """Decodes received bytes."""
        self._heard_ms = self._home.clock.monotonic_ms()
        try:
            for event in self._codec.receive(data):
                self._hear(event)
        except FrameError as error:
            self.end(f"{self.address} has sent what is no frame: {error}")

    @override
    def pause_writing(self) -> None:
        """Keeps outgoing bytes: the other end reads slowly."""
        self._outbox.pause()
        self._pauses += 1
        self._watch_reader(self._pauses, 0)

    @override
    def resume_writing(self) -> None:
        """Sends what waits."""
        self._pauses += 1
        if self._transport is not None and self._why_over is None:
            self._open(self._transport)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        """Ends it: the socket is closed."""
        self._transport = None  # it must not be used any more
        self.end(
            f"{self.address} hung up" if exc is None else f"the connection to {self.address} broke: {exc}"
        )
        self._outbox.drop()
        self.gone.resolve(None)

    def _open(self, transport: asyncio.Transport) -> None:
        self._outbox.open(transport.write, self._write_now, transport.get_write_buffer_size)

    def _write_now(self, data: bytes) -> int:
        """Writes as much as the socket takes; the loop itself notices a broken connection."""
        if self._socket is None:
            return 0
        try:
            return self._socket.send(data)
        except OSError:
            return 0

    async def _dial(self) -> None:
        loop, limit_s = self._home.loop, CONNECT_MS / 1000
        try:
            one = await dial(loop, self.address, limit_s, self._home.sockets.add)
            self._socket = one
            await loop.create_connection(lambda: self, sock=one)
        except (OSError, SeglogError, UnicodeError) as error:
            why = f"{self.address} cannot be connected to: {_reason(error)}"
            self.end(why, partial(CannotConnectError, address=self.address))

    def _dialed(self, dialing: asyncio.Task[None]) -> None:
        if dialing.cancelled():
            self.end("the event loop has ended")
        elif dialing.exception() is not None:
            self.end(f"{self.address} cannot be connected to: {dialing.exception()!r}")
        if self._transport is None:
            self.gone.resolve(None)

    def _hang_up(self, transport: asyncio.Transport, *, is_in_peace: bool) -> None:
        if not is_in_peace:
            transport.abort()
            return
        self._outbox.flush()
        transport.close()
        timers = self._home.timers
        timer = timers.after(FLUSH_MS, transport.abort)
        self.gone.then(lambda _: timers.cancel(timer))

    def _hear(self, event: Event) -> None:
        if isinstance(event, Answered):
            if isinstance(event.answer, ProtocolError):
                self._asks.fail(event.opaque, event.answer)
            elif event.answer.code is not ResponseCode.GO_AWAY:
                if not self.has_served:
                    self.has_served = True
                    self._owner.serves(self)
                self._asks.answer(event.opaque, event.answer)
            else:
                self._go_away(event.opaque, event.answer)
        elif isinstance(event, Asked | WronglyAsked):
            self._serving.serve(event)

    def _go_away(self, opaque: int, answer: Response) -> None:
        first = self._first_asked.pop(opaque, None)
        one = None if first is None else self._asks.take(opaque)
        if first is None or one is None:
            self._asks.answer(opaque, answer)
        else:
            self._owner.turned_away(self, first[0], one, first[1])

    def _ask_is_over(self, opaque: int, of: Deferred[Response]) -> None:
        """Removes a request that has ended; any thread may end it."""
        self._codec.forget(opaque)
        self._first_asked.pop(opaque, None)
        if isinstance(of.error, AskTimeoutError):
            silent_ms = self._home.clock.monotonic_ms() - self._heard_ms
            if silent_ms >= SILENT_MS:
                why = f"{self.address} has been silent for {silent_ms:.0f} ms"
                self._home.post(partial(self.end, why))
        if self._is_retired:
            self._home.post(self._end_if_idle)

    def _end_if_idle(self) -> None:
        if self._is_retired and not len(self._asks):
            self.end(f"{self.address} has sent its clients away", is_in_peace=True)

    def _watch_reader(self, pause: int, before_bytes: int) -> None:
        """Ends the connection if the other end read nothing since the last check, in the same pause."""
        transport = self._transport
        if pause != self._pauses or transport is None or self._why_over is not None:
            return
        left_bytes = transport.get_write_buffer_size()
        if left_bytes == before_bytes:
            self.end(f"{self.address} has read nothing for {STALL_MS // 1000} s")
        else:
            self._home.timers.after(STALL_MS, partial(self._watch_reader, pause, left_bytes))


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)  # asyncio's text has the address instead
    return str(error) or f"there is no answer within {CONNECT_MS // 1000} s"


_FULL: Final = f"{MOST_BYTES >> 20} MiB wait to be written"
