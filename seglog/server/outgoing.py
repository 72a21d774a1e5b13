"""Bytes for one client: answers of a turn are one write, and records go out of the log's pages uncopied.

What the socket does not take at once waits here, as the views that it is. The transport gets one small
piece of it, because it knows when the socket takes bytes again.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import termios
from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Final

MOST_PIECES: Final = 256
"""Of one write; the system takes at most 1,024."""
NATIVE_INT: Final = struct.Struct("i")
HANDED_BYTES: Final = 16 << 10


class Outgoing:
    """What waits to be written. The loop calls it.

    Args:
        end: The socket.

    Attributes:
        waiting_bytes: How much is not written.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._transport: asyncio.Transport | None = None
        self._pieces: deque[bytes | memoryview] = deque()
        self._handed_bytes = 0
        self.waiting_bytes = 0

    def open(self, transport: asyncio.Transport) -> None:
        """Has bytes written from now on."""
        transport.set_write_buffer_limits(high=0)  # it says so whenever it has written what it has
        self._transport = transport

    def put(self, pieces: Iterable[bytes | memoryview]) -> None:
        """Takes bytes; :meth:`flush` writes them."""
        for piece in pieces:
            if len(piece):
                self._pieces.append(piece)
                self.waiting_bytes += len(piece)

    def flush(self) -> int:
        """Writes what the socket takes, and returns how much that was.

        Raises:
            OSError: The connection is broken.
        """
        if self._transport is None or self._handed_bytes or not self._pieces:
            return 0
        before_bytes = self.waiting_bytes
        while self._pieces and not self._handed_bytes:
            try:
                taken_bytes = self._end.sendmsg(islice(self._pieces, MOST_PIECES))
            except (BlockingIOError, InterruptedError):
                self._hand(self._transport)
            else:
                self._drop(taken_bytes)
        return before_bytes - self.waiting_bytes

    def written(self) -> int:
        """Goes on once the transport has written what it had; returns how much was written, that included.

        Raises:
            OSError: The connection is broken.
        """
        handed_bytes, self._handed_bytes = self._handed_bytes, 0
        self.waiting_bytes -= handed_bytes
        return handed_bytes + self.flush()

    def kernel_bytes(self) -> int:
        """Returns how much the system has for the other end, which has not read it.

        The socket takes bytes again only when much of that is gone: until then this alone says whether the
        other end reads.
        """
        raw = fcntl.ioctl(self._end, termios.TIOCOUTQ, bytes(NATIVE_INT.size))
        return int(NATIVE_INT.unpack(raw)[0])

    def drop(self) -> None:
        """Forgets what waits: the connection has ended."""
        self._pieces.clear()
        self._transport = None
        self.waiting_bytes = 0

    def _drop(self, taken_bytes: int) -> None:
        self.waiting_bytes -= taken_bytes
        while taken_bytes:
            first = self._pieces[0]
            if taken_bytes < len(first):
                self._pieces[0] = memoryview(first)[taken_bytes:]
                return
            taken_bytes -= len(first)
            self._pieces.popleft()

    def _hand(self, transport: asyncio.Transport) -> None:
        """Gives the transport the beginning of what waits, and so has it tell when that is written."""
        first = memoryview(self._pieces[0])[:HANDED_BYTES]
        self._handed_bytes = len(first)
        self._drop(len(first))
        self.waiting_bytes += len(first)  # it is not written yet
        transport.write(first)
        if not transport.get_write_buffer_size():  # the socket took it meanwhile, and nothing will be told
            self._handed_bytes = 0
            self.waiting_bytes -= len(first)
