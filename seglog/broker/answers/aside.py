"""Requests that wait for the disk before they can be answered, in the order in which they came."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from seglog.logs import logger
from seglog.remoting.codes import ResponseCode
from seglog.remoting.command import Request, Response, refuse
from seglog.remoting.later import Deferred
from seglog.remoting.peer import Peer
from seglog.storage.threads import OnDemand

_log = logger(__name__)


class AsideRequest(NamedTuple):
    """A request in line, and what its client waits for."""

    request: Request
    peer: Peer
    answer: Deferred[Response]


class Aside:
    """A line of requests, and a thread that has them done, all that wait at once.

    Args:
        do: Answers some. If it raises, those that it has not answered are refused: they would wait for ever.
    """

    def __init__(self, do: Callable[[Sequence[AsideRequest]], None]) -> None:
        self._do = do
        self._lock = threading.Lock()
        self._line: deque[AsideRequest] = deque()
        self._waiting: Counter[Hashable] = Counter()
        self._is_closed = False
        self._worker = OnDemand("seglog-requests", self._work)

    def has(self, peer: Peer) -> bool:
        """Returns whether earlier requests of a client still wait, which its later ones may not pass."""
        return bool(self._line) and peer.key() in self._waiting

    def put(self, request: Request, peer: Peer) -> Deferred[Response]:
        """Puts a request at the end of the line; after :meth:`close` it is refused."""
        answer: Deferred[Response] = Deferred()
        with self._lock:
            if self._is_closed:
                answer.resolve(refuse(ResponseCode.SERVICE_NOT_AVAILABLE, "the broker was closed"))
                return answer
            self._line.append(AsideRequest(request, peer, answer))
            self._waiting[peer.key()] += 1
        self._worker.ask()
        return answer

    def close(self) -> None:
        """Ends the thread, and does what still waits."""
        self._worker.stop()
        with self._lock:
            self._is_closed = True
        self._work()

    def _work(self) -> None:
        while self._line:
            with self._lock:
                some = list(self._line)
            try:
                self._do(some)
            except Exception as error:  # noqa: BLE001 - the end of a thread would be that of all answers
                _log.exception("requests that wait for the disk failed")
                refused = refuse(ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {error}")
                for each in some:
                    each.answer.resolve(refused)
            with self._lock:  # they stay in line until they are done
                for each in some:
                    self._line.popleft()
                    self._waiting[each.peer.key()] -= 1
                self._waiting = +self._waiting
