"""Deadlines of sends that wait for the disk: then the client gets FLUSH_DISK_TIMEOUT and the offset.

The message stays stored and is consumed; the client decides whether to send it again. The clock is real time,
since the disk is real too.

Source: ``MessageStoreConfig.java syncFlushTimeout``, ``GroupCommitService``.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import replace
from typing import ClassVar, Final

from typing_extensions import override

from seglog.clock import Clock
from seglog.remoting.codes import ResponseCode
from seglog.remoting.command import Response
from seglog.remoting.later import Deferred
from seglog.schedule import Duty

FLUSH_TIMEOUT_MS: Final = 5_000


class SendDeadlines(Duty):
    """The sends that wait for the disk, in the order in which they arrived.

    Args:
        clock: Its monotonic time, which must be real time.
    """

    name: ClassVar[str] = "send-deadlines"

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: deque[tuple[float, Deferred[Response], Response]] = deque()

    def add(self, answer: Deferred[Response], response: Response) -> None:
        """Makes sure that an answer is given in time, even if the sync has not ended.

        Args:
            answer: The deferred answer of the client.
            response: The answer once the message is on the disk.
        """
        with self._lock:
            self._drop_answered()
            self._waiting.append((self._clock.monotonic_ms() + FLUSH_TIMEOUT_MS, answer, response))
            is_first = len(self._waiting) == 1
        if is_first:
            self.wake()

    @override
    def left_ms(self) -> float | None:
        with self._lock:
            self._drop_answered()
            return self._waiting[0][0] - self._clock.monotonic_ms() if self._waiting else None

    @override
    def run(self) -> None:
        now_ms = self._clock.monotonic_ms()
        over: list[tuple[float, Deferred[Response], Response]] = []
        with self._lock:
            while self._waiting and self._waiting[0][0] <= now_ms:
                over.append(self._waiting.popleft())
        for _deadline_ms, answer, response in over:
            answer.resolve(replace(response, code=ResponseCode.FLUSH_DISK_TIMEOUT))

    def _drop_answered(self) -> None:
        while self._waiting and self._waiting[0][1].is_done:
            self._waiting.popleft()
