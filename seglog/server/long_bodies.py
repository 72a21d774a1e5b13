"""Long bodies: a thread parses them one after another, while the loop serves other clients.

Other threads run meanwhile: no step holds the GIL for long, since each is a Python function, or one pass of C
over a text whose length the frame limits bound. A connection never has two bodies here, since nothing more is
read from it meanwhile.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from seglog.logs import logger
from seglog.remoting.codec import Codec, Read, Unread
from seglog.remoting.codes import ResponseCode
from seglog.remoting.command import Response, refuse
from seglog.remoting.later import Inbox
from seglog.server.limits import ServerLimits
from seglog.server.processors import late, overload
from seglog.storage.threads import OnDemand

LONG_BYTES: Final = 1 << 16
"""JSON from this size on is parsed by the thread: it takes some milliseconds, more than the hand-over."""
_log = logger(__name__)


class _Waiting(NamedTuple):
    codec: Codec
    unread: Unread
    then: Callable[[Read | Response], None]
    since_s: float


class LongBodies:
    """A queue of bodies, and the thread that parses them, which the first body starts.

    Args:
        inbox: The inbox of the loop, which takes the results.
        limits: Bound the bytes in the queue, and the waits.
        time: Seconds that never go back; the thread calls it as well.
    """

    def __init__(self, inbox: Inbox, limits: ServerLimits, time: Callable[[], float]) -> None:
        self._inbox = inbox
        self._limits = limits
        self._time = time
        self._lock = threading.Lock()
        self._line: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._worker = OnDemand("seglog-bodies", self._work)

    @property
    def is_busy(self) -> bool:
        """Whether a body is being parsed, or waits."""
        return self._waiting_bytes > 0

    def put(self, codec: Codec, unread: Unread, then: Callable[[Read | Response], None]) -> None:
        """Appends a body to the queue.

        Args:
            codec: The codec of its connection.
            unread: The body.
            then: Called by the loop with the parsed message, or with the answer after a refusal.
        """
        size_bytes = len(unread.frame.body)
        with self._lock:
            is_room = self._waiting_bytes + size_bytes <= self._limits.all_queued_bytes
            if is_room:
                self._waiting_bytes += size_bytes
                self._line.append(_Waiting(codec, unread, then, self._time()))
        if is_room:
            self._worker.ask()
        else:
            self._inbox.post(partial(then, overload()))

    def drop(self) -> None:
        """Drops the waiting bodies: the server has stopped."""
        with self._lock:
            self._waiting_bytes -= sum(len(each.unread.frame.body) for each in self._line)
            self._line.clear()

    def close(self) -> None:
        """Ends the thread, after its current body."""
        self._worker.stop()

    def _work(self) -> None:
        while (waiting := self._next()) is not None:
            self._read(waiting)

    def _next(self) -> _Waiting | None:
        with self._lock:
            return self._line.popleft() if self._line else None

    def _read(self, waiting: _Waiting) -> None:
        found: Read | Response
        waited_ms = round((self._time() - waiting.since_s) * 1_000)
        if waited_ms >= self._limits.other_wait_ms:
            found = late(waited_ms, len(self._line))
        else:
            try:
                found = waiting.codec.read(waiting.unread)
            except Exception as error:  # noqa: BLE001 - if the thread ended, no long body would be parsed
                _log.exception("a long body of code %s cannot be read", waiting.unread.code)
                found = refuse(ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {error}")
        with self._lock:
            self._waiting_bytes -= len(waiting.unread.frame.body)
        self._inbox.post(partial(waiting.then, found))
