"""Outgoing bytes of all threads for one connection, written by its home: a burst is one wake-up, one write.

A thread without concurrent senders writes itself: waking the home for a single write costs more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Final

MOST_BYTES: Final = 32 << 20
"""Most waiting bytes, beyond which nothing more is accepted: two frames of the largest size."""


def _nothing() -> int:
    return 0


class Outbox:
    """The waiting bytes. Any thread may call :meth:`put`.

    Args:
        post: Runs a function on the home.
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
        """Whether nothing more is accepted."""
        return self._waiting_bytes >= MOST_BYTES

    def put(self, pieces: Iterable[bytes | memoryview], *, is_alone: bool = False) -> None:
        """Queues bytes, behind those of earlier calls.

        Args:
            pieces: The bytes.
            is_alone: Whether the calling thread, which must not be the home, may write them itself if nothing
                waits before them: no other bytes are expected soon that could share the write.
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
        """Begins to write waiting and later bytes, until it is paused; called by the home.

        Args:
            write: Writes, and keeps bytes that cannot be written yet; called by the home.
            write_now: Writes as many bytes as possible, in any thread, and returns their number.
            left_bytes: Returns the number of bytes that ``write`` keeps; called by the home.
        """
        with self._lock:
            self._write, self._write_now, self._left_bytes = write, write_now, left_bytes
            self._is_clear = not left_bytes()
        self.flush()

    def pause(self) -> None:
        """Keeps later bytes."""
        with self._lock:
            self._write = self._write_now = None

    def flush(self) -> None:
        """Writes the waiting bytes, unless it is paused; called by the home."""
        with self._lock:
            write = self._write
            if write is None or not self._pieces:
                return
            pieces, self._pieces = self._pieces, []
            self._waiting_bytes = 0
            self._is_clear = False  # no later bytes may overtake these
        write(b"".join(pieces))
        with self._lock:
            self._is_clear = not self._left_bytes()

    def drop(self) -> None:
        """Drops the waiting bytes: the connection has ended."""
        with self._lock:
            self._write = self._write_now = None
            self._pieces = []
            self._waiting_bytes = 0
