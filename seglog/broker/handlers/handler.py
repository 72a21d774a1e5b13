"""The form of a handler: a request code, the class of its header, and the function that answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from seglog.broker.pulls.pull import HeldPull
from seglog.broker.state.state import AnyAppends, BrokerState
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Header, Request, Response, expect_header
from seglog.remoting.peer import Peer

H = TypeVar("H", bound=Header)


class Call(NamedTuple, Generic[H]):
    """One request on its way through a handler; ``header`` is ``request.header`` with its own type."""

    header: H
    request: Request
    peer: Peer
    appends: AnyAppends


@dataclass(frozen=True, slots=True)
class Handler(Generic[H]):
    """Answers the requests of one code.

    Attributes:
        header_type: What the request's header is, as the table of exchanges says.
        function: Answers; what it raises becomes a refusal.
    """

    code: RequestCode
    header_type: type[H]
    function: Callable[[BrokerState, Call[H]], Response | HeldPull]

    def answer(
        self, state: BrokerState, request: Request, peer: Peer, appends: AnyAppends
    ) -> Response | HeldPull:
        """Returns the function's answer.

        Raises:
            ProtocolError: The request's header is of another class.
            SeglogError: The request is refused.
            WouldWaitError: It has to wait for the disk, and the calling thread may not; nothing has changed.
        """
        return self.function(state, Call(expect_header(request, self.header_type), request, peer, appends))
