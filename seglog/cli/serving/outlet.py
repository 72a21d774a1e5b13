"""Outlet: lines to a descriptor that may be full, blocked or gone, written by a thread of its own.

Who gives it a line never waits. What waits to be written is bounded; a line beyond that is counted and
dropped, and a line in its place says how many are missing. Once the reader has gone nothing is written.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from typing_extensions import override

from seglog.closing import Closing
from seglog.logs import logger

MOST_BYTES: Final = 1 << 20
"""How much waits at most."""
CLOSE_S: Final = 1.0
"""How long a close waits for a reader that does not read."""
_OF_THREAD: Final = 0.8
"""The share of it that the thread waits itself; then it has ended when the close returns."""
_STARVED_S: Final = 30.0
"""How long it waits where there is room, and only the thread has no turn to write."""
_CHUNK_BYTES: Final = select.PIPE_BUF
"""A pipe that can be written takes so much without waiting."""
_log = logger(__name__)


class Outlet(Closing):
    """Writes lines in the order in which they come. Any thread may call it.

    Args:
        descriptor: Where they go; it stays open.
        name: What it is, for the log.
        missing: Returns the line that stands for so many that were dropped.
        most_bytes: How much waits at most.
    """

    def __init__(
        self, descriptor: int, name: str, missing: Callable[[int], str], *, most_bytes: int = MOST_BYTES
    ) -> None:
        self._descriptor = descriptor
        self._name = name
        self._missing = missing
        self._most_bytes = most_bytes
        self._changed = threading.Condition()
        self._waiting: deque[tuple[bytes, int]] = deque()  # and how many lines each stands for
        self._waiting_bytes = self._missing_count = 0
        self._is_closing = self._is_gone = self._is_failing = False
        self._is_left = False
        self._close_s = 0.0
        self._woken, self._wake = os.pipe()
        self._thread = threading.Thread(target=self._run, name=f"seglog-{name}", daemon=True)
        self._thread.start()

    def put(self, line: str) -> None:
        """Takes a line, with the newline at its end; it is dropped where too much waits."""
        data = line.encode("utf-8", "backslashreplace")
        with self._changed:
            if self._is_gone or self._is_closing:
                return
            if self._waiting_bytes + len(data) > self._most_bytes:
                self._missing_count += 1
                return
            self._is_failing = False
            self._say_missing()
            self._add(data, 1)
            self._changed.notify()

    @override
    def close(self) -> None:
        """Returns once all is written; after :data:`CLOSE_S` too where there is no reader. Once is enough."""
        with self._changed:
            if self._is_closing:
                return
            self._is_closing = True
            self._close_s = time.monotonic() + CLOSE_S * _OF_THREAD
            self._changed.notify()
        os.write(self._wake, b"\n")
        most_s = time.monotonic() + _STARVED_S
        self._thread.join(CLOSE_S)
        # Where the descriptor takes more, the thread is not stuck: this machine has no turn for it yet.
        while self._thread.is_alive() and time.monotonic() < most_s and self._has_room(0):
            self._thread.join(CLOSE_S)
        self._is_left = True
        if not self._thread.is_alive():
            os.close(self._woken)
            os.close(self._wake)

    def _add(self, data: bytes, count: int) -> None:
        self._waiting.append((data, count))
        self._waiting_bytes += len(data)

    def _say_missing(self) -> None:
        """Puts a line in the place of those that were dropped."""
        if self._missing_count:
            self._add(self._missing(self._missing_count).encode(), self._missing_count)
            self._missing_count = 0

    def _run(self) -> None:
        while (line := self._next()) is not None:
            try:
                is_written = self._write(line[0])
            except BrokenPipeError:
                with self._changed:
                    self._is_gone = True
                    self._waiting.clear()
                _log.warning("%s has no reader any more; nothing is written there from now on", self._name)
                return
            except OSError:  # a full disk, a closed descriptor; it may be there again for a later line
                is_written = False
            if not is_written:
                with self._changed:
                    self._missing_count += line[1]
                    self._is_failing = True

    def _next(self) -> tuple[bytes, int] | None:
        """Returns the line that is next, None at the end."""
        with self._changed:
            while True:
                if not (self._waiting or self._is_failing):
                    self._say_missing()
                if self._waiting:
                    line = self._waiting.popleft()
                    self._waiting_bytes -= len(line[0])
                    return line
                if self._is_closing:
                    return None
                self._changed.wait()

    def _write(self, data: bytes) -> bool:
        """Writes a line; returns whether it is written, false at the end without a reader."""
        view, chunk_bytes = memoryview(data), _CHUNK_BYTES
        while view:
            if not self._await_room():
                return False
            try:
                view = view[os.write(self._descriptor, view[:chunk_bytes]) :]
            except BlockingIOError:  # another process has set O_NONBLOCK on the descriptor
                chunk_bytes = max(1, chunk_bytes // 2)
        return True

    def _await_room(self) -> bool:
        """Returns whether something can be written, once it can; at the end it does not wait for ever."""
        if not self._is_closing:
            poll = self._poll()
            poll.register(self._woken, select.POLLIN)
            if any(descriptor == self._descriptor for descriptor, _ in poll.poll()):
                return True
        has_room = self._has_room(max(0.0, self._close_s - time.monotonic()))
        return has_room and not self._is_left

    def _has_room(self, wait_s: float) -> bool:
        """Returns whether something can be written, or would fail at once."""
        with suppress(OSError):
            return bool(self._poll().poll(wait_s * 1_000))
        return False

    def _poll(self) -> select.poll:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        return poll
