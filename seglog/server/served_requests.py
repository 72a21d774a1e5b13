"""The requests of one client: carried out when read or in their turn, and answered at once or later.

Source: ``NettyRemotingAbstract.java``, ``processRequestCommand``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final, Protocol

from typing_extensions import override

from seglog.broker.answers import HeldAnswer
from seglog.errors import ProtocolError
from seglog.logs import logger
from seglog.remoting.codec import Asked, Codec, Pieces, WronglyAsked
from seglog.remoting.codes import SENDS, ResponseCode
from seglog.remoting.command import OUR_SENDER, Request, Response, refuse
from seglog.remoting.later import Deferred
from seglog.remoting.peer import Peer
from seglog.remoting.versions import V5_3_1
from seglog.server.processors import LIVENESS, PULLS, Queued, Waits
from seglog.server.shared import SLOW_S, Shared

_log = logger(__name__)
_MADE_BY_LOOP: Final = SENDS | PULLS


class Asking(Protocol):
    """The client's end."""

    is_over: bool

    @property
    def takes_answers(self) -> bool:
        """Whether it reads its answers."""

    def put(self, pieces: Pieces) -> None:
        """Takes bytes for it; :meth:`flush` writes them."""

    def flush(self) -> None:
        """Writes them."""


class ServedRequests(Waits):
    """The requests of one connection. The server's loop calls it.

    Args:
        shared: The server's.
        codec: The connection's.
        client: Who asks.
        peer: The same, for the broker.

    Attributes:
        peer: The client as of its last request.
    """

    def __init__(self, shared: Shared, codec: Codec, client: Asking, peer: Peer) -> None:
        self._shared = shared
        self._limits = shared.limits
        self._codec = codec
        self._client = client
        self._queued = Queued(self)
        self._held: set[HeldAnswer] = set()
        self._making: set[Deferred[Response]] = set()
        self.peer = peer

    @property
    def is_busy(self) -> bool:
        """Whether a request is not answered yet."""
        return bool(self._queued.count or self._held or self._making)

    @property
    def is_full(self) -> bool:
        """Whether the limits forbid to read more requests."""
        queued, limits = self._queued, self._limits
        return (
            len(self._making) + queued.count >= limits.requests
            or queued.waiting_bytes >= limits.queued_bytes
            or (queued.count > 0 and self._shared.processors.is_behind)
        )

    @property
    @override
    def takes_answers(self) -> bool:
        """Whether the client reads its answers; True after a disconnect, so that nothing waits for it."""
        return self._client.takes_answers

    def take(self, asked: Asked, *, is_inline: bool) -> None:
        """Carries a request out now, or queues it.

        Args:
            asked: The request.
            is_inline: Whether it may be carried out now.
        """
        request = asked.request
        refused = self._sent_away(request) if self._shared.is_stopping else None
        if refused is not None:
            self.respond(asked, refused)
        elif is_inline or request.code in LIVENESS:
            self._serve(asked)
        else:
            self._shared.processors.take(self._queued, asked)

    @override
    def serve(self, asked: Asked) -> None:
        """Carries a queued request out; after a disconnect only sends are carried out."""
        if not self._client.is_over:
            self._serve(asked)
            self._shared.flush_soon(self._client)
        elif asked.request.code in SENDS:
            self._answer_of(asked.request)

    @override
    def turn_away(self, asked: Asked, answer: Response) -> None:
        """Answers a request that is not carried out."""
        if not self._client.is_over:
            self.respond(asked, answer)
            self._shared.flush_soon(self._client)

    def end_held(self) -> None:
        """Answers pulls that are held as things are."""
        for each in tuple(self._held):
            each.end()

    def go_on(self) -> None:
        """Gives queued requests their turns again: the client has read."""
        if self._queued.count:
            self._shared.processors.go_on(self._queued)

    def end(self) -> None:
        """Ends unanswered requests after a disconnect. Queued sends are still carried out."""
        for each in (*self._held, *self._making):
            each.cancel()
        self.go_on()

    def respond(self, asked: Asked | WronglyAsked, response: Response) -> None:
        """Answers a request; :meth:`Asking.flush` writes it."""
        self._client.put(self._pieces(asked, response))

    def _serve(self, asked: Asked) -> None:
        """Answers a request, now or later."""
        request = asked.request
        began_s = self._shared.loop.time()
        answer = self._answer_of(request)
        if isinstance(answer, Response):
            self._note(request, began_s)
            self.respond(asked, answer)
            return
        if isinstance(answer, HeldAnswer):
            self._held.add(answer)
            if len(self._held) > self._limits.parked_pulls or request.is_oneway or self._shared.is_stopping:
                answer.end()
        else:
            self._making.add(answer)
        answer.then(lambda _: self._came(asked, answer, began_s))

    def _answer_of(self, request: Request) -> Response | Deferred[Response]:
        sender = request.sender or OUR_SENDER
        if (self.peer.language, self.peer.version) != sender:
            self.peer = replace(self.peer, language=sender.language, version=sender.version)
        shared = self._shared
        began_s = shared.loop.time()
        try:
            return shared.broker.answer(request, self.peer, shared.soon)
        except Exception as error:  # noqa: BLE001 - the loop serves the other connections too
            _log.error("a request of code %s failed: %r", request.code, error)
            _log.debug("the same", exc_info=error)
            return refuse(ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {error}")
        finally:
            shared.slow_count += shared.loop.time() - began_s >= SLOW_S

    def _sent_away(self, request: Request) -> Response | None:
        """Returns the answer of a stopping server; None if the request is still served."""
        if (request.sender or OUR_SENDER).version > V5_3_1:
            return refuse(ResponseCode.GO_AWAY, "please go away")
        if request.code in SENDS:
            return refuse(ResponseCode.SERVICE_NOT_AVAILABLE, "the broker stops")
        return None

    def _note(self, request: Request, began_s: float) -> None:
        """Notes the duration of a send or a pull."""
        if request.code in SENDS:
            self._shared.times.note_put(began_s, self._shared.loop.time())
        elif request.code in PULLS:
            self._shared.times.note_get(self._shared.loop.time() - began_s)

    def _came(self, asked: Asked, answer: Deferred[Response], began_s: float) -> None:
        """Makes the loop send a deferred answer; called by the thread that resolves it.

        That thread encodes the answers to tools: a list of thousands of queues takes longer to encode than to
        find. The loop encodes answers with messages, since that thread is in a put.
        """
        pieces: Pieces | None = None
        if asked.request.code not in _MADE_BY_LOOP and not self._client.is_over:
            pieces = self._pieces(asked, _result(answer))
        self._shared.inbox.post(partial(self._made, asked, answer, pieces, began_s))

    def _made(self, asked: Asked, answer: Deferred[Response], pieces: Pieces | None, began_s: float) -> None:
        """Sends a deferred answer."""
        if isinstance(answer, HeldAnswer):
            self._held.discard(answer)  # the hold of a pull does not count as its duration
        else:
            self._making.discard(answer)
            self._note(asked.request, began_s)
        if self._client.is_over:
            return
        self._client.put(self._pieces(asked, _result(answer)) if pieces is None else pieces)
        self._shared.flush_soon(self._client)

    def _pieces(self, asked: Asked | WronglyAsked, response: Response) -> Pieces:
        """Returns the bytes of an answer; any thread may call it."""
        try:
            return self._codec.answer(asked, response)
        except ProtocolError as error:
            _log.warning("the answer to a request of code %s cannot be sent: %s", asked.request.code, error)
            return self._codec.answer(asked, refuse(ResponseCode.SYSTEM_ERROR, str(error)))


def _result(answer: Deferred[Response]) -> Response:
    try:
        return answer.result()
    except Exception as error:  # noqa: BLE001 - it is the client's
        return refuse(ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {error}")
