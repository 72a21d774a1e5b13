"""Connections to clients: one that is quiet, and those of bytes over a pair of sockets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

from typing_extensions import override

from seglog.broker.broker import Broker
from seglog.errors import ConnectionEndedError, ProtocolError
from seglog.remoting.codec import Answered, Asked, Codec, Event, Unasked
from seglog.remoting.command import OUR_SENDER, Request, Response, Sender
from seglog.remoting.frames.frame import Serialization
from seglog.remoting.later import AskTable, Deferred
from seglog.remoting.peer import Peer
from seglog.schedule import AnyTimers
from seglog.storage.format.record import Host
from tests.support.machine.patience import join_thread


class QuietConnection:
    """A connection to a client that drops notices and cannot be asked; each is equal only to itself."""

    def notify(self, request: Request) -> None:
        """Drops it."""

    def ask(self, request: Request, timeout_ms: int) -> Deferred[Response]:
        """Returns what has failed, as over a connection that has ended."""
        answer: Deferred[Response] = Deferred()
        answer.fail(ConnectionEndedError(f"request {int(request.code)} was not asked"))
        return answer


class WireEnd:
    """One end of a connection of bytes, with a thread that reads; both ends may ask.

    Args:
        end: Its socket; closed with it.
        timers: What ends its asks.
        answer: Answers the other end, in the thread that reads, or says what the answer comes by; None
            leaves it without an answer.
        serialization: Form of the headers that it writes.
        sender: What it says it is.
    """

    def __init__(
        self,
        end: socket.socket,
        timers: AnyTimers,
        answer: Callable[[Request], Response | Deferred[Response] | None] = lambda _: None,
        serialization: Serialization = Serialization.JSON,
        sender: Sender = OUR_SENDER,
    ) -> None:
        self.asks: AskTable[Response] = AskTable(timers)
        self.told: list[Request] = []
        self.unasked: list[int] = []
        self._end = end
        self._answer = answer
        self._codec = Codec(sender, serialization)
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def notify(self, request: Request) -> None:
        """Sends what is not answered."""
        with self._writing, suppress(OSError):  # the other end is gone
            self._end.sendall(b"".join(self._codec.ask(request)[1]))

    def ask(self, request: Request, timeout_ms: int) -> Deferred[Response]:
        """Sends a request."""
        one = self.asks.open(timeout_ms, f"request {int(request.code)}")
        if one.is_done:
            return one
        one.then(lambda _: self._codec.forget(one.opaque))
        try:
            with self._writing:
                self._end.sendall(b"".join(self._codec.ask(request, one.opaque)[1]))
        except ProtocolError as error:
            self.asks.fail(one.opaque, error)
        except OSError as error:
            self.asks.end(f"the other end is gone: {error}")
        return one

    def hang_up(self) -> None:
        """Ends the connection; any thread may, the one that reads too."""
        with suppress(OSError):  # the other end was first
            self._end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Hangs up, and ends the thread."""
        self.hang_up()
        join_thread(self._thread, idle_s=30)
        self._end.close()

    def join(self) -> None:
        """Returns when the other end has hung up."""
        self._thread.join()

    def told_one(self, request: Request) -> None:
        """Hears what is not answered."""
        self.told.append(request)

    def hung_up(self) -> None:
        """Ends all that waits for the other end, which is gone."""
        self.asks.end("the other end hung up")

    def _read(self) -> None:
        with suppress(OSError):  # it was reset
            while data := self._end.recv(1 << 16):
                with self._writing:
                    events = list(self._codec.receive(data))
                for event in events:
                    self._hear(event)
        self.hung_up()

    def _hear(self, event: Event) -> None:
        if isinstance(event, Answered):
            if isinstance(event.answer, Response):
                self.asks.answer(event.opaque, event.answer)
            else:
                self.asks.fail(event.opaque, event.answer)
        elif isinstance(event, Asked) and event.request.is_oneway:
            self.told_one(event.request)
        elif isinstance(event, Asked):
            answer = self._answer(event.request)
            if isinstance(answer, Deferred):
                answer.then(lambda of: self._send(event, of.result()))
            elif answer is not None:
                self._send(event, answer)
        elif isinstance(event, Unasked):
            self.unasked.append(event.opaque)

    def _send(self, asked: Asked, answer: Response) -> None:
        with self._writing, suppress(OSError):  # the other end is gone
            self._end.sendall(b"".join(self._codec.answer(asked, answer)))


class ServedEnd(WireEnd):
    """The broker's end of a connection of bytes; a thread answers what the client asks, one after the other.

    Args:
        end: Its socket.
        broker: Who answers.
        client_id: Whose connection it is.
        sender: What that client says it is.
    """

    def __init__(
        self,
        end: socket.socket,
        broker: Broker,
        client_id: str,
        sender: Sender = OUR_SENDER,
    ) -> None:
        host = Host(b"\x7f\x00\x00\x01", 1)
        self._peer = Peer(client_id, host, self, *sender, is_remote=True)
        self._broker = broker
        super().__init__(end, broker.timers, lambda request: broker.dispatch(request, self._peer))

    @override
    def told_one(self, request: Request) -> None:
        """Has it carried out as well."""
        super().told_one(request)
        self._broker.answer(request, self._peer)

    @override
    def hung_up(self) -> None:
        """Takes the client out of its groups as well."""
        super().hung_up()
        self._broker.disconnect(self._peer)
