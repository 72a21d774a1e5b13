"""The answer to a held pull."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from typing_extensions import override

from seglog.broker.pulls.held_pulls import HeldPulls
from seglog.broker.pulls.pull import HeldPull
from seglog.remoting.command import Response
from seglog.remoting.later import Deferred


class HeldAnswer(Deferred[Response]):
    """Parks a pull; the thread that takes the answer reads its messages, not the thread that put them.

    Args:
        table: The table of held pulls.
        held: The pull.
        finish: Answers the pull from the state at that time.

    Attributes:
        hold_ms: The longest wait.
    """

    __slots__ = ("_make_answer", "_parked", "_table", "hold_ms")

    def __init__(self, table: HeldPulls, held: HeldPull, finish: Callable[[HeldPull], Response]) -> None:
        super().__init__()
        self.hold_ms = held.hold_ms
        self._table = table
        self._make_answer = partial(finish, held)
        self._parked = table.park(held, self._wake)

    def end(self) -> None:
        """Ends the hold now: the pull is answered from the present state."""
        self._table.leave(self._parked)
        self._wake()

    @override
    def _forget(self) -> None:
        self._table.leave(self._parked)

    def _wake(self) -> None:
        self.resolve_by(self._make_answer)
