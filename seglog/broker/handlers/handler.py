"""The form of a handler: its request code and header, the function that answers, the rules of touches."""

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
"""The result of a handler: the answer, a pull to be held, or the deferred answer of clients."""
MOST_LISTED: Final = 20_000
"""Topics or groups that one request creates at most: each is checked, which takes some 0.1 ms."""
_MANY_LISTED: Final = 1_000
"""From this number on the checks take long."""


class Call(NamedTuple, Generic[H]):
    """One request on its way through a handler; ``header`` is ``request.header`` with its own type."""

    header: H
    request: Request
    peer: Peer
    appends: AnyAppends


def check_listed(count: int, what: str, most: int = MOST_LISTED) -> None:
    """Checks how many entries a request lists, before each of them is worked on.

    Args:
        count: The number of entries.
        what: Their name, in the plural.
        most: The most that are permitted.

    Raises:
        ProtocolError: There are too many for one request.
        WouldWaitError: There are so many that the work takes long, and the calling thread may not wait.
    """
    if count > most:
        raise ProtocolError(f"a body lists {count} {what}, at most {most}: send several requests")
    if count > _MANY_LISTED:
        check_may_wait()


@dataclass(frozen=True, slots=True)
class Handler(Generic[H]):
    """Answers the requests of one code.

    Attributes:
        header_type: The class of the request's header, from the table of exchanges.
        function: Returns the answer; an error that it raises becomes a refusal.
        rules: Find the resources that its requests touch.
    """

    code: RequestCode
    header_type: type[H]
    function: Callable[[BrokerState, Call[H]], Answer]
    rules: tuple[Rule[H], *tuple[Rule[H], ...]]

    def touches(self, state: BrokerState, request: Request) -> tuple[Touch, ...]:
        """Returns the resources that a request touches, each once.

        Raises:
            ProtocolError: The request's header or body is of another class.
            SeglogError: A record that the request refers to cannot be read.
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
            WouldWaitError: The handler must wait for the disk, and the calling thread may not; nothing has
                changed.
        """
        return self.function(state, Call(expect_header(request, self.header_type), request, peer, appends))
