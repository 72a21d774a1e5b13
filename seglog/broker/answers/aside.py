"""Requests that must wait for the disk before they can be answered, in the order in which they arrived."""

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
    """A queued request, and the answer that its client waits for."""

    request: Request
    peer: Peer
    answer: Deferred[Response]


class Aside:
    """A queue of requests, and a thread that carries out all waiting requests together.

    Args:
        do: Answers some requests. If it raises, the requests that it has not answered are refused: otherwise
            their clients would wait for ever.
    """

    def __init__(self, do: Callable[[Sequence[AsideRequest]], None]) -> None:
        self._do = do
        self._lock = threading.Lock()
        self._line: deque[AsideRequest] = deque()
        self._waiting: Counter[Hashable] = Counter()
        self._is_closed = False
        self._worker = OnDemand("seglog-requests", self._work)

    def has(self, peer: Peer) -> bool:
        """Returns whether earlier requests of a client still wait; its later ones must not overtake them."""
        return bool(self._line) and peer.key() in self._waiting

    def put(self, request: Request, peer: Peer) -> Deferred[Response]:
        """Appends a request to the queue; after :meth:`close` it is refused."""
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
        """Ends the thread, and carries out the requests that still wait."""
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
            except Exception as error:  # noqa: BLE001 - if the thread ended, no request would be answered
                _log.exception("requests that wait for the disk failed")
                refused = refuse(ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {error}")
                for each in some:
                    each.answer.resolve(refused)
            with self._lock:  # they stay queued until they are done
                for each in some:
                    self._line.popleft()
                    self._waiting[each.peer.key()] -= 1
                self._waiting = +self._waiting
