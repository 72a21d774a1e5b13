"""Requests that the broker passes on to clients; it makes the answer from theirs.

Each client is asked by ``Channel.ask``, which has a timeout; so a relay ends by itself, and has no deadline
of its own. If the broker closes first, the request is refused, and the answers of clients are not waited for.

Truth: memory only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from seglog.clock import Clock
from seglog.remoting.codes import ResponseCode
from seglog.remoting.command import Response, refuse
from seglog.remoting.later import Deferred
from seglog.schedule import Timers


class Relayed(Deferred[Response]):
    """The answer to a request that waits for clients.

    Attributes:
        timeout_ms: The timeout of each client.
    """

    __slots__ = ("timeout_ms",)

    def __init__(self, timeout_ms: int) -> None:
        super().__init__()
        self.timeout_ms = timeout_ms


class Relays:
    """All requests that wait for clients. Any thread may call it.

    Args:
        clock: Its monotonic time, that of the clients.
        timers: Ends calls to clients, on that time.
    """

    def __init__(self, clock: Clock, timers: Timers) -> None:
        self._clock = clock
        self.timers = timers
        self._lock = threading.Lock()
        self._waiting: set[Relayed] = set()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    def relay(
        self, asks: Sequence[Deferred[Response]], timeout_ms: int, make: Callable[[], Response]
    ) -> Relayed:
        """Returns the deferred answer, which is given once every call has ended.

        Args:
            asks: The calls, one for each client; they are cancelled if the answer is no longer wanted.
            timeout_ms: The timeout of each call.
            make: Makes the answer from their results; called by the thread that takes the answer.
        """
        relayed = Relayed(timeout_ms)
        with self._lock:
            is_closed = self._is_closed
            if not is_closed:
                self._waiting.add(relayed)
        relayed.then(lambda _: self._end(relayed, asks))
        if is_closed:
            relayed.resolve(_closed())
        left = _Countdown(len(asks), lambda: relayed.resolve_by(make))
        for ask in asks:
            ask.then(left.one_less)
        return relayed

    def wait(self, relayed: Relayed) -> None:
        """Blocks the calling thread until a relay has ended; uses the clock and needs no duty."""
        bell = threading.Condition()

        def ring(_: object) -> None:
            with bell:
                bell.notify_all()

        relayed.then(ring)
        while not relayed.is_done:
            with bell:
                if not relayed.is_done:
                    self._clock.wait(bell, self.timers.left_ms())
            self.timers.run()

    def close(self) -> None:
        """Refuses all waiting requests, and later ones."""
        with self._lock:
            self._is_closed = True
            waiting = list(self._waiting)
        for relayed in waiting:
            relayed.resolve(_closed())

    def _end(self, relayed: Relayed, asks: Sequence[Deferred[Response]]) -> None:
        with self._lock:
            self._waiting.discard(relayed)
        for ask in asks:
            ask.cancel()


class _Countdown:
    """Calls a function when the count reaches 0; at once if it is 0 from the start."""

    def __init__(self, count: int, done: Callable[[], object]) -> None:
        self._lock = threading.Lock()
        self._left = count
        self._done = done
        if not count:
            done()

    def one_less(self, _: object) -> None:
        """Counts down by one."""
        with self._lock:
            self._left -= 1
            is_over = not self._left
        if is_over:
            self._done()


def _closed() -> Response:
    return refuse(ResponseCode.SERVICE_NOT_AVAILABLE, "the broker was closed")
