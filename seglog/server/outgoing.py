"""Bytes for one client: the answers of a turn are one write, and records are sent from the log's pages.

Bytes that the socket does not take at once wait here, as views without a copy. The transport gets one small
piece of them, because it notices when the socket takes bytes again.
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
"""Most pieces of one write; the system takes at most 1,024."""
NATIVE_INT: Final = struct.Struct("i")
HANDED_BYTES: Final = 16 << 10


class Outgoing:
    """The bytes that wait to be written. The loop calls it.

    Args:
        end: The socket.

    Attributes:
        waiting_bytes: The number of unwritten bytes.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._transport: asyncio.Transport | None = None
        self._pieces: deque[bytes | memoryview] = deque()
        self._handed_bytes = 0
        self.waiting_bytes = 0

    def open(self, transport: asyncio.Transport) -> None:
        """Begins to write."""
        transport.set_write_buffer_limits(high=0)  # it then reports each end of its writes
        self._transport = transport

    def put(self, pieces: Iterable[bytes | memoryview]) -> None:
        """Takes bytes; :meth:`flush` writes them."""
        for piece in pieces:
            if len(piece):
                self._pieces.append(piece)
                self.waiting_bytes += len(piece)

    def flush(self) -> int:
        """Writes as many bytes as the socket takes, and returns their number.

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
        """Continues after the transport has written its piece; returns all bytes written, that piece too.

        Raises:
            OSError: The connection is broken.
        """
        handed_bytes, self._handed_bytes = self._handed_bytes, 0
        self.waiting_bytes -= handed_bytes
        return handed_bytes + self.flush()

    def kernel_bytes(self) -> int:
        """Returns the bytes in the system's send buffer, which the other end has not read.

        The socket takes bytes again only when much of that buffer is free: until then only this shows whether
        the other end reads.
        """
        raw = fcntl.ioctl(self._end, termios.TIOCOUTQ, bytes(NATIVE_INT.size))
        return int(NATIVE_INT.unpack(raw)[0])

    def drop(self) -> None:
        """Drops the waiting bytes: the connection has ended."""
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
        """Passes the first waiting bytes to the transport, which then reports when they are written."""
        first = memoryview(self._pieces[0])[:HANDED_BYTES]
        self._handed_bytes = len(first)
        self._drop(len(first))
        self.waiting_bytes += len(first)  # it is not written yet
        transport.write(first)
        if not transport.get_write_buffer_size():  # the socket took it at once, and no report follows
            self._handed_bytes = 0
            self.waiting_bytes -= len(first)
