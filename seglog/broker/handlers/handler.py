"""The form of a handler: a request code, its header, the function that answers, and what it touches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from seglog.broker.access import Touch
from seglog.broker.handlers.touching import Rule
from seglog.broker.pulls.pull import HeldPull
from seglog.broker.state.state import AnyAppends, BrokerState
from seglog.errors import ProtocolError
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Header, Request, Response, expect_header
from seglog.remoting.later import Deferred
from seglog.remoting.peer import Peer
from seglog.storage.threads import check_may_wait

H = TypeVar("H", bound=Header)
Answer: TypeAlias = Response | HeldPull | Deferred[Response]
"""What a handler has: the answer, a pull that is to be held, or what the answer of clients comes by."""
MOST_LISTED: Final = 20_000
"""Topics or groups that one request creates at most: each is checked, which takes some 0.1 ms."""
_MANY_LISTED: Final = 1_000
"""From which on that takes long."""


class Call(NamedTuple, Generic[H]):
    """One request on its way through a handler; ``header`` is ``request.header`` with its own type."""

    header: H
    request: Request
    peer: Peer
    appends: AnyAppends


def check_listed(count: int, what: str, most: int = MOST_LISTED) -> None:
    """Checks how much a request lists, before a step is done for each.

    Args:
        count: How many there are.
        what: What they are, in the plural.
        most: How many there may be.

    Raises:
        ProtocolError: They are too many for one request.
        WouldWaitError: They are so many that they take long, and the calling thread may not wait.
    """
    if count > most:
        raise ProtocolError(f"a body lists {count} {what}, at most {most}: send several requests")
    if count > _MANY_LISTED:
        check_may_wait()


@dataclass(frozen=True, slots=True)
class Handler(Generic[H]):
    """Answers the requests of one code.

    Attributes:
        header_type: What the request's header is, as the table of exchanges says.
        function: Answers; what it raises becomes a refusal.
        rules: Find what its requests touch.
    """

    code: RequestCode
    header_type: type[H]
    function: Callable[[BrokerState, Call[H]], Answer]
    rules: tuple[Rule[H], *tuple[Rule[H], ...]]

    def touches(self, state: BrokerState, request: Request) -> tuple[Touch, ...]:
        """Returns what a request touches, each once.

        Raises:
            ProtocolError: The request's header or body is of another class.
            SeglogError: What the request refers to cannot be read.
        """
        header = expect_header(request, self.header_type)
        return tuple(
            dict.fromkeys(touch for rule in self.rules for touch in rule.find(header, request, state))
        )

    def answer(self, state: BrokerState, request: Request, peer: Peer, appends: AnyAppends) -> Answer:
        """Returns the function's answer.

        Raises:
            ProtocolError: The request's header is of another class.
            SeglogError: The request is refused.
            WouldWaitError: It has to wait for the disk, and the calling thread may not; nothing has changed.
        """
        return self.function(state, Call(expect_header(request, self.header_type), request, peer, appends))
