"""Bytes that any thread has for one connection, written by its home: a burst is one wake-up and one write.

A thread that is alone writes itself: to wake the home, which would do nothing else, costs more than that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Final

MOST_BYTES: Final = 32 << 20
"""So much may wait to be written; beyond it nothing more is taken. That is two frames of the largest size."""


def _nothing() -> int:
    return 0


class Outbox:
    """What waits to be written. Any thread may put.

    Args:
        post: Has a function run by the home.
    """

    def __init__(self, post: Callable[[Callable[[], None]], None]) -> None:
        self._post = post
        self._lock = threading.Lock()
        self._pieces: list[bytes | memoryview] = []
        self._waiting_bytes = 0
        self._write: Callable[[bytes], None] | None = None
        self._write_now: Callable[[bytes], int] | None = None
        self._left_bytes: Callable[[], int] = _nothing
        self._is_clear = False

    @property
    def is_full(self) -> bool:
        """Whether so much waits that nothing more is taken."""
        return self._waiting_bytes >= MOST_BYTES

    def put(self, pieces: Iterable[bytes | memoryview], *, is_alone: bool = False) -> None:
        """Has bytes written, behind those of earlier calls.

        Args:
            pieces: The bytes.
            is_alone: Whether the calling thread, which is not the home, may write them if nothing is before
                them: no others are to come soon that could go along.
        """
        with self._lock:
            is_posted = bool(self._pieces)
            if is_alone and self._is_clear and not is_posted and self._write_now is not None:
                whole = b"".join(pieces)
                taken_bytes = self._write_now(whole)
                if taken_bytes == len(whole):
                    return
                pieces = [memoryview(whole)[taken_bytes:]]
            for piece in pieces:
                self._pieces.append(piece)
                self._waiting_bytes += len(piece)
            is_open = self._write is not None
        if is_open and not is_posted:
            self._post(self.flush)

    def open(
        self,
        write: Callable[[bytes], None],
        write_now: Callable[[bytes], int] | None = None,
        left_bytes: Callable[[], int] = _nothing,
    ) -> None:
        """Has what waits written, and all that comes, until it is paused; called by the home.

        Args:
            write: Writes, or keeps what cannot be written yet; called by the home.
            write_now: Writes as much as can be, by any thread, and returns how much that was.
            left_bytes: Returns how much of what was written is kept; called by the home.
        """
        with self._lock:
            self._write, self._write_now, self._left_bytes = write, write_now, left_bytes
            self._is_clear = not left_bytes()
        self.flush()

    def pause(self) -> None:
        """Keeps what comes."""
        with self._lock:
            self._write = self._write_now = None

    def flush(self) -> None:
        """Writes what waits, unless it is paused; called by the home."""
        with self._lock:
            write = self._write
            if write is None or not self._pieces:
                return
            pieces, self._pieces = self._pieces, []
            self._waiting_bytes = 0
            self._is_clear = False  # until these are written none may go past them
        write(b"".join(pieces))
        with self._lock:
            self._is_clear = not self._left_bytes()

    def drop(self) -> None:
        """Forgets what waits: the connection has ended."""
        with self._lock:
            self._write = self._write_now = None
            self._pieces = []
            self._waiting_bytes = 0
