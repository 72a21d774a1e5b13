"""Outlet: lines to a descriptor that may be full, blocked or closed, written by a thread of its own.

Callers never wait. The amount of waiting lines is bounded; a line beyond it is counted and dropped, and a
line in its place states how many are missing. After the reader has gone nothing is written.
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
"""Most bytes of waiting lines."""
CLOSE_S: Final = 1.0
"""How long :meth:`Outlet.close` waits for a reader that does not read."""
_OF_THREAD: Final = 0.8
"""The share of it that the thread itself waits, so that the thread has ended when the close returns."""
_STARVED_S: Final = 30.0
"""How long the close waits if the descriptor has room and only the thread gets no processor time."""
_CHUNK_BYTES: Final = select.PIPE_BUF
"""A pipe that is ready for writing takes this many bytes without blocking."""
_log = logger(__name__)


class Outlet(Closing):
    """Writes lines in the order of the calls. Any thread may call it.

    Args:
        descriptor: Descriptor of the output; it is not closed.
        name: Name of the output, for the log.
        missing: Returns the line that replaces a number of dropped lines.
        most_bytes: Most bytes of waiting lines.
    """

    def __init__(
        self, descriptor: int, name: str, missing: Callable[[int], str], *, most_bytes: int = MOST_BYTES
    ) -> None:
        self._descriptor = descriptor
        self._name = name
        self._missing = missing
        self._most_bytes = most_bytes
        self._changed = threading.Condition()
        self._waiting: deque[tuple[bytes, int]] = deque()  # each with the number of lines that it stands for
        self._waiting_bytes = self._missing_count = 0
        self._is_closing = self._is_gone = self._is_failing = False
        self._is_left = False
        self._close_s = 0.0
        self._woken, self._wake = os.pipe()
        self._thread = threading.Thread(target=self._run, name=f"seglog-{name}", daemon=True)
        self._thread.start()

    def put(self, line: str) -> None:
        """Adds a line with its newline; drops it if too many bytes wait."""
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
        """Returns when all is written, or after :data:`CLOSE_S` if nothing reads. May be called again."""
        with self._changed:
            if self._is_closing:
                return
            self._is_closing = True
            self._close_s = time.monotonic() + CLOSE_S * _OF_THREAD
            self._changed.notify()
        os.write(self._wake, b"\n")
        most_s = time.monotonic() + _STARVED_S
        self._thread.join(CLOSE_S)
        # If the descriptor has room, the thread is not blocked: it only gets no processor time.
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
        """Adds a line in place of those that were dropped."""
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
            except OSError:  # a full disk, a closed descriptor; a later line may be written again
                is_written = False
            if not is_written:
                with self._changed:
                    self._missing_count += line[1]
                    self._is_failing = True

    def _next(self) -> tuple[bytes, int] | None:
        """Returns the next line, None at the end."""
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
        """Writes a line; returns whether it was written; False at the end if nothing reads."""
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
        """Waits until the descriptor can be written; returns whether it can. The final wait is limited."""
        if not self._is_closing:
            poll = self._poll()
            poll.register(self._woken, select.POLLIN)
            if any(descriptor == self._descriptor for descriptor, _ in poll.poll()):
                return True
        has_room = self._has_room(max(0.0, self._close_s - time.monotonic()))
        return has_room and not self._is_left

    def _has_room(self, wait_s: float) -> bool:
        """Returns whether the descriptor can be written, or a write would fail at once."""
        with suppress(OSError):
            return bool(self._poll().poll(wait_s * 1_000))
        return False

    def _poll(self) -> select.poll:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        return poll
