"""How long a send waits for the disk; then its client gets FLUSH_DISK_TIMEOUT, and where its message is.

The message stays, and is consumed; the client decides whether it sends once more. The time is that of the
machine, as the disk's is.

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
    """The sends that wait for the disk, in the order in which they came.

    Args:
        clock: Its monotonic time, which passes by itself.
    """

    name: ClassVar[str] = "send-deadlines"

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: deque[tuple[float, Deferred[Response], Response]] = deque()

    def add(self, answer: Deferred[Response], response: Response) -> None:
        """Has an answer given in time, whether or not the disk has followed.

        Args:
            answer: What the client waits for.
            response: What it gets once the message is on the disk.
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
