"""Bodies that take long to read: a thread reads them one after another, while the loop serves others.

Other threads have their turns while it reads: what takes a value for itself is a function of Python, or one
pass of C over a text that the limits of frames bound. Two bodies of a connection are never here at once, as
nothing more is read from it meanwhile.
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
"""Of JSON that a thread reads: it takes some milliseconds, longer than it takes to ask the thread."""
_log = logger(__name__)


class _Waiting(NamedTuple):
    codec: Codec
    unread: Unread
    then: Callable[[Read | Response], None]
    since_s: float


class LongBodies:
    """A line of bodies, and the thread that reads them; there is none before the first.

    Args:
        inbox: Of the loop, which takes what was read.
        limits: How much may be in the line, and for how long.
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
        """Whether a body is read, or waits for that."""
        return self._waiting_bytes > 0

    def put(self, codec: Codec, unread: Unread, then: Callable[[Read | Response], None]) -> None:
        """Puts a body at the end of the line.

        Args:
            codec: Of its connection.
            unread: The body.
            then: Called by the loop with what was read, or with the answer where it was not.
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
        """Forgets what is in the line but the body that the thread is at: the server has stopped."""
        with self._lock:
            self._waiting_bytes -= sum(len(each.unread.frame.body) for each in self._line)
            self._line.clear()

    def close(self) -> None:
        """Ends the thread, after the body that it is at."""
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
            except Exception as error:  # noqa: BLE001 - the end of the thread would be that of all long bodies
                _log.exception("a long body of code %s cannot be read", waiting.unread.code)
                found = refuse(ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {error}")
        with self._lock:
            self._waiting_bytes -= len(waiting.unread.frame.body)
        self._inbox.post(partial(waiting.then, found))
