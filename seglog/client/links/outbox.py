"""Bytes that any thread has for one connection, written by its home: a burst is one wake-up and one write."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Final

MOST_BYTES: Final = 32 << 20
"""So much may wait to be written; beyond it nothing more is taken. That is two frames of the largest size."""


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

    @property
    def is_full(self) -> bool:
        """Whether so much waits that nothing more is taken."""
        return self._waiting_bytes >= MOST_BYTES

    def put(self, pieces: Iterable[bytes | memoryview]) -> None:
        """Has bytes written, behind those of earlier calls."""
        with self._lock:
            is_posted = bool(self._pieces)
            for piece in pieces:
                self._pieces.append(piece)
                self._waiting_bytes += len(piece)
            is_open = self._write is not None
        if is_open and not is_posted:
            self._post(self.flush)

    def open(self, write: Callable[[bytes], None]) -> None:
        """Has what waits written, and all that comes, until it is paused; called by the home."""
        with self._lock:
            self._write = write
        self.flush()

    def pause(self) -> None:
        """Keeps what comes."""
        with self._lock:
            self._write = None

    def flush(self) -> None:
        """Writes what waits, unless it is paused; called by the home."""
        with self._lock:
            write = self._write
            if write is None or not self._pieces:
                return
            pieces, self._pieces = self._pieces, []
            self._waiting_bytes = 0
        write(b"".join(pieces))

    def drop(self) -> None:
        """Forgets what waits: the connection has ended."""
        with self._lock:
            self._write = None
            self._pieces = []
            self._waiting_bytes = 0
