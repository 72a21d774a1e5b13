"""What one end of a connection has asked the other and has no answer to yet: a table by opaque.

Each ask ends once: with its answer, because its time is over, because who asked has cancelled it, or with
the connection. What comes after that is dropped. Its deadline is a timer of the schedule, so nothing here has
a thread. The table gives the numbers, so none is given twice while it waits; how many wait is limited,
because the other end decides whether it answers.

Truth: memory only; a connection that ends takes its table along.

Source: ``NettyRemotingAbstract.java responseTable``; it has one limit for all connections.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Final, Generic, TypeVar

from typing_extensions import override

from seglog.errors import AskLimitError, AskTimeoutError, ConnectionEndedError, SeglogError
from seglog.remoting.later.deferred import Deferred
from seglog.schedule import AnyTimers, Timer

R = TypeVar("R")
MOST_ASKED: Final = 1_024
"""How many of a broker may wait for their answer on one connection: the other end is not trusted."""
MOST_ASKED_BY_CLIENT: Final = 65_535
"""How many of a client may wait on one connection: a pull of each queue is held at the broker, and must not
take the place of a heartbeat (``NettySystemConfig.java CLIENT_ASYNC_SEMAPHORE_VALUE``)."""
END_OPAQUE: Final = 1 << 31
"""Numbers of requests are below this: those of Java's ``int`` that are not below 0."""
NO_OPAQUE: Final = -1


class Asked(Deferred[R], Generic[R]):
    """The answer to a request, which comes later or not at all; cancelling it takes it out of its table.

    Attributes:
        what: What was asked of whom, for errors.
        opaque: Number of the request; ``NO_OPAQUE`` for one that is not to be sent.
        timer: What ends it; None before it was set.
    """

    __slots__ = ("_leave", "opaque", "timer", "what")

    def __init__(self, what: str, leave: Callable[[Asked[R]], None]) -> None:
        super().__init__()
        self.what = what
        self.opaque = NO_OPAQUE
        self.timer: Timer | None = None
        self._leave = leave

    @override
    def _forget(self) -> None:
        self._leave(self)


class AskTable(Generic[R]):
    """The asks of one connection. Any thread may call it; it holds no lock while followers of an ask run.

    Args:
        timers: What ends those that are not answered in time.
        most: How many may wait.
    """

    def __init__(self, timers: AnyTimers, most: int = MOST_ASKED) -> None:
        self._timers = timers
        self._most = most
        self._lock = threading.Lock()
        self._waiting: dict[int, Asked[R]] = {}
        self._next_opaque = 0
        self._over: tuple[str, Callable[[str], SeglogError]] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def open(self, timeout_ms: float, what: str) -> Asked[R]:
        """Returns what the answer to a request comes by, under whose number the request is to be sent.

        Where no more are taken it has failed already, and nothing is to be sent.

        Args:
            timeout_ms: How long the answer may take.
            what: What is asked of whom, for errors.
        """
        one = Asked(what, self._leave)
        with self._lock:
            refused = self._refusal(what)
            if refused is None:
                one.opaque = self._free_opaque()
                self._waiting[one.opaque] = one
        if refused is not None:
            one.fail(refused)
            return one
        one.timer = self._timers.after(timeout_ms, partial(self._expire, one, timeout_ms))
        with self._lock:
            is_over = self._waiting.get(one.opaque) is not one
        if is_over:  # the connection has ended, before there was a timer that could be cancelled
            self._stop(one)
        return one

    def answer(self, opaque: int, value: R) -> bool:
        """Gives the answer to a request; returns whether it was still waited for."""
        one = self.take(opaque)
        return one is not None and one.resolve(value)

    def fail(self, opaque: int, error: BaseException) -> bool:
        """Ends a request that cannot be sent, or whose answer cannot be read, as :meth:`answer` does."""
        one = self.take(opaque)
        return one is not None and one.fail(error)

    def end(self, why: str, error: Callable[[str], SeglogError] = ConnectionEndedError) -> None:
        """Fails all that wait, and what is asked from now on: the connection has ended.

        Args:
            why: For errors; that of the first call stays.
            error: Makes an error of its text; that of the first call stays.
        """
        with self._lock:
            if self._over is None:
                self._over = why, error
            waiting, self._waiting = self._waiting, {}
        for one in waiting.values():
            self._stop(one)
            one.fail(error(f"{one.what} got no answer: {why}"))

    def _refusal(self, what: str) -> SeglogError | None:
        """Returns why nothing more is asked, under the lock."""
        if self._over is not None:
            why, error = self._over
            return error(f"{what} was not asked: {why}")
        count = len(self._waiting)
        if count < self._most:
            return None
        return AskLimitError(f"{what} was not asked: {count} requests wait for answers, at most {self._most}")

    def _free_opaque(self) -> int:
        """Returns a number that nothing has which waits, under the lock."""
        opaque = self._next_opaque
        while opaque in self._waiting:
            opaque = (opaque + 1) % END_OPAQUE
        self._next_opaque = (opaque + 1) % END_OPAQUE
        return opaque

    def take(self, opaque: int) -> Asked[R] | None:
        """Takes out a request that goes another way from now on; who takes it has to end it.

        Returns:
            None if nothing waits under that number.
        """
        with self._lock:
            one = self._waiting.pop(opaque, None)
        if one is not None:
            self._stop(one)
        return one

    def _leave(self, one: Asked[R]) -> None:
        """Takes out an ask, and no other that may have its number by now."""
        with self._lock:
            if self._waiting.get(one.opaque) is one:
                del self._waiting[one.opaque]
        self._stop(one)

    def _stop(self, one: Asked[R]) -> None:
        if one.timer is not None:
            self._timers.cancel(one.timer)

    def _expire(self, one: Asked[R], timeout_ms: float) -> None:
        self._leave(one)
        one.fail(AskTimeoutError(f"{one.what} got no answer within {timeout_ms:.0f} ms"))
