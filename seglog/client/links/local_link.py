"""A link to a broker in the same process."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from typing_extensions import override

from seglog.arguments import as_doing, as_text
from seglog.client.links.client_ids import as_name, new_client_id
from seglog.client.links.local_channel import LocalChannel
from seglog.client.links.served import OnNotice, OnRequest
from seglog.clock import Clock
from seglog.errors import AskTimeoutError, ClientClosedError, ClosedError
from seglog.remoting.command import Request, Response
from seglog.remoting.dispatcher import Dispatcher
from seglog.remoting.later import Deferred
from seglog.remoting.peer import LOCAL_PEER, Peer
from seglog.schedule import Timers

if TYPE_CHECKING:
    from seglog.client.links.lookup import Lookup

_CLOSED: Final = "the link was closed"


class LocalLink:
    """Hands requests to a broker as they are: nothing is encoded, copied or queued.

    Args:
        broker: Once it is closed, every request is refused.
        client_id: Made up if it is not given.
        on_notice: Called with what the broker sends the client unasked, such as
            NOTIFY_CONSUMER_IDS_CHANGED, in the thread that was the cause; it returns at once.
        on_request: Called with what the broker asks the client, in the same way; it returns the answer, or
            what that will come by. What it raises becomes a refusal. By default the client knows no requests.
        principal: Who asks, for what a broker calls before each request.
    """

    def __init__(
        self,
        broker: Dispatcher,
        client_id: str | None = None,
        on_notice: OnNotice | None = None,
        on_request: OnRequest | None = None,
        *,
        principal: str | None = None,
    ) -> None:
        self._broker: Dispatcher = as_doing(
            "broker", broker, ("answer", "dispatch"), "a broker in this process"
        )
        proven = None if principal is None else as_text("principal", principal)
        client_id = new_client_id() if client_id is None else as_name("client_id", client_id)
        self._channel = LocalChannel(client_id, broker.timers, on_notice, on_request)
        self._peer = Peer(client_id, LOCAL_PEER.host, self._channel, principal=proven)
        self._waiting: set[_Waiting] = set()
        self._closed: Deferred[None] = Deferred()

    @override
    def __repr__(self) -> str:
        return f"<LocalLink of client {self.client_id} to {self._broker!r}>"

    @property
    def closed(self) -> Deferred[None]:
        """Comes once it was closed."""
        return self._closed

    @property
    def client_id(self) -> str:
        """What this end is called."""
        return self._peer.client_id

    @property
    def clock(self) -> Clock:
        """The time by which the clients of the broker live."""
        return self._broker.liveness_clock

    @property
    def name_servers(self) -> tuple[str, ...]:
        """There are none."""
        return ()

    @property
    def lookup(self) -> Lookup | None:
        """There is none."""
        return None

    @property
    def is_over(self) -> bool:
        """Whether it, or the broker, was closed."""
        return self._broker.is_closed

    @property
    def timers(self) -> Timers:
        """What ends the waits of the broker's clients, on that time."""
        return self._broker.timers

    def serve(self, on_notice: OnNotice, on_request: OnRequest) -> None:
        """Has what the broker says and asks go to a client."""
        self._channel.serve(on_notice, on_request)

    def ask(
        self, request: Request, timeout_ms: float | None = None, to: str | None = None
    ) -> Deferred[Response]:
        """Returns what the answer comes by; by itself the link never ends the wait for a broker here.

        A send is made before this returns, so that sends of one thread never change places.

        Args:
            request: As for ``Link.ask``, as the others.
            timeout_ms: By the clock of the broker's clients; None for as long as it takes.
            to: Ignored: there is one broker.
        """
        asked = _Waiting(self._waiting)
        made = self._broker.answer(request, self._peer)
        if isinstance(made, Response):
            asked.resolve(made)
            return asked
        timers = self._broker.timers
        asked.wait_for(made)
        if timeout_ms is not None:
            timer = timers.after(timeout_ms, partial(asked.expire, request, timeout_ms))
            asked.then(lambda _: timers.cancel(timer))
        if isinstance(self._broker, _Gone):  # since then, by another thread
            self._end(asked)
        return asked

    def tell(self, request: Request, to: str | None = None) -> None:
        """Has a request carried out without waiting; its answer is dropped."""
        self._broker.answer(request, self._peer)

    def invoke(self, request: Request, timeout_ms: float | None = None, to: str | None = None) -> Response:
        """Returns the broker's answer; no way can be slow or broken, so there is nothing to time out."""
        return self._broker.dispatch(request, self._peer)

    def close(self) -> None:
        """Notifies the broker that the client is gone; its groups share its queues without it."""
        broker = self._broker
        try:
            self._broker = _Gone(broker.liveness_clock, broker.timers)
        except ClosedError:  # this is a forked child, and the broker is its parent's
            self._closed.resolve(None)
            return
        self._channel.end()
        for asked in tuple(self._waiting):
            self._end(asked)
        broker.disconnect(self._peer)
        self._closed.resolve(None)

    def _end(self, asked: _Waiting) -> None:
        asked.fail(ClientClosedError(f"there is no answer any more: {_CLOSED}"))


class _Gone(NamedTuple):
    """What a link that was closed has instead of a broker.

    Attributes:
        liveness_clock: That of the broker.
        timers: Likewise.
        is_closed: That it answers nothing.
    """

    liveness_clock: Clock
    timers: Timers
    is_closed: bool = True

    def dispatch(self, request: Request, peer: Peer) -> Response:
        """Raises that the link was closed."""
        raise _closed_before(request)

    def answer(self, request: Request, peer: Peer) -> Deferred[Response]:
        """Returns what has failed."""
        answer: Deferred[Response] = Deferred()
        answer.fail(_closed_before(request))
        return answer

    def disconnect(self, peer: Peer) -> None:
        """Does nothing: the link is known to be gone."""


def _closed_before(request: Request) -> ClientClosedError:
    return ClientClosedError(f"request {int(request.code)} was not asked: {_CLOSED}")


class _Waiting(Deferred[Response]):
    """An answer that the broker will give later; where it is not wanted any more the broker hears of it."""

    __slots__ = ("_all", "_made")

    def __init__(self, all_waiting: set[_Waiting]) -> None:
        super().__init__()
        self._all = all_waiting
        self._made: Deferred[Response] | None = None

    def wait_for(self, made: Deferred[Response]) -> None:
        """Takes the answer of the broker."""
        self._made = made
        self._all.add(self)
        # What is costly, as the reading of records, is done by the thread that takes the answer.
        made.then(lambda of: self.resolve_by(of.result))
        self.then(self._over)

    def expire(self, request: Request, timeout_ms: float) -> None:
        """Ends it because its time is over."""
        self.fail(AskTimeoutError(f"request {int(request.code)} got no answer within {timeout_ms:.0f} ms"))

    def _over(self, _: object) -> None:
        self._all.discard(self)
        if self._made is not None:
            self._made.cancel()
