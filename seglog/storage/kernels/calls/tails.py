"""The ends of a log and its queues, which every append changes and every read uses.

The native kernels change the tails in place; no other code keeps a copy. Readers read them without a lock, so
an append changes them last, when the record and its unit are written; the fast path changes the queue's tail
before the log's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from seglog.storage.kernels import KERNELS, NATIVE

NEVER: Final = (1 << 63) - 1
"""An end that no log reaches."""


_MOST_PWRITE_BYTES: Final = 1 << 20


class WriteWindow:
    """Memory of a file that is granted for writing.

    Attributes:
        memory: The whole file.
        first: Offset of its first byte in the sequence.
        end: Offset at which writing must stop.
        descriptor: Descriptor of the file for pwrite; -1 for none.
        checked_ms: Time of the last check that the file was not cut, by the clock of the store.
    """

    __slots__ = ("_length", "checked_ms", "descriptor", "end", "first", "memory")

    def __init__(
        self, memory: memoryview, first: int, end: int, length: Callable[[], int] | None, descriptor: int
    ) -> None:
        self.memory = memory
        self.first = first
        self.end = end
        self.descriptor = descriptor
        self.checked_ms = -1
        self._length = length

    def write(self, offset: int, rest: bytes, size: bytes, *, via_pwrite: bool) -> None:
        """Writes one record, its size last, so that a concurrent reader sees nothing or the whole record.

        Args:
            offset: Offset of the record.
            rest: All bytes but the size field.
            size: The size field.
            via_pwrite: Whether to write with pwrite. A sync after it is faster, because no page of the map is
                dirty: cleaning such a page interrupts every core.

        Raises:
            OSError: The write failed; the size field was not written.
        """
        position = offset - self.first
        behind = position + len(size)
        is_via_pwrite = via_pwrite and self.descriptor >= 0 and len(rest) < _MOST_PWRITE_BYTES
        if is_via_pwrite and os.pwrite(self.descriptor, rest, behind) == len(rest):
            os.pwrite(self.descriptor, size, position)
            return
        self.memory[behind : behind + len(rest)] = rest
        self.memory[position:behind] = size

    def is_whole(self, now_ms: int) -> bool:
        """Returns whether the file was not cut."""
        if self.descriptor >= 0:  # lseek, not fstat: reading the times makes the next sync write them too
            is_whole = os.lseek(self.descriptor, 0, os.SEEK_END) >= len(self.memory)
        else:
            is_whole = self._length is None or self._length() >= len(self.memory)
        # Another check within this millisecond is not needed.
        self.checked_ms = now_ms if is_whole else -1
        return is_whole


_NO_WINDOW: Final = WriteWindow(memoryview(b""), 0, -1, None, -1)


class _Tail:
    """An end of a sequence of files, to which a write window can be granted.

    Attributes:
        window: The granted window in the last file.
    """

    __slots__ = ("window",)

    def __init__(self) -> None:
        self.window = _NO_WINDOW

    def grant(
        self,
        memory: memoryview,
        first: int,
        end: int,
        length: Callable[[], int] | None,
        descriptor: int,
        /,
    ) -> None:
        """Grants a file for writing.

        Args:
            memory: The whole file.
            first: Offset of its first byte: physical, or in bytes of the queue.
            end: Offset at which writing must stop.
            length: Returns the length of the file now; None if it cannot be cut.
            descriptor: Descriptor of the file for pwrite; -1 for none.
        """
        self.window = WriteWindow(memory, first, end, length, descriptor)

    def revoke(self) -> None:
        """Ends the grant."""
        self.window = _NO_WINDOW


class PythonLogTail(_Tail):
    """The end of a log.

    Attributes:
        end_phy_offset: Physical offset of the next record.
        last_phy_offset: Physical offset of the last record, -1 before the first.
        last_store_ms: Store time of the last record, 0 before the first.
        newest_store_ms: Newest store time of any record: the machine's time may have been set back.
        keyed_end: No record from this offset on has properties, so none has keys: the end of the log at the
            opening, or the end of a later record.
        wake_allocator_at: From this end of the log on, an append requests that files are created ahead.
        past_map_bytes: Bytes that appends have written by pwrite, past the map; 0 with these kernels, whose
            batches go through the map.
        is_shut: Whether the append lock is held, in a ``with`` block, so that no fast path may append.
    """

    __slots__ = (
        "end_phy_offset",
        "is_shut",
        "keyed_end",
        "last_phy_offset",
        "last_store_ms",
        "newest_store_ms",
        "past_map_bytes",
        "wake_allocator_at",
    )

    def __init__(
        self, end_phy_offset: int, last_phy_offset: int, last_store_ms: int, newest_store_ms: int
    ) -> None:
        super().__init__()
        self.end_phy_offset = end_phy_offset
        self.last_phy_offset = last_phy_offset
        self.last_store_ms = last_store_ms
        self.newest_store_ms = newest_store_ms
        self.keyed_end = end_phy_offset
        self.wake_allocator_at = NEVER
        self.past_map_bytes = 0
        self.is_shut = False

    def __enter__(self) -> Self:
        self.is_shut = True
        return self

    def __exit__(self, *_error: object) -> None:
        self.is_shut = False


class PythonQueueTail(_Tail):
    """The end of a queue.

    Attributes:
        min_offset: Queue offset of the first message that the log holds.
        max_offset: Queue offset that the next message gets.
        max_phy_offset: End of the record of the last unit, as a physical offset; -1 before the first.
    """

    __slots__ = ("max_offset", "max_phy_offset", "min_offset")

    def __init__(self, min_offset: int, max_offset: int, max_phy_offset: int) -> None:
        super().__init__()
        self.min_offset = min_offset
        self.max_offset = max_offset
        self.max_phy_offset = max_phy_offset


LogTail: TypeAlias = PythonLogTail
QueueTail: TypeAlias = PythonQueueTail
if KERNELS == NATIVE and not TYPE_CHECKING:
    from seglog.storage.kernels import _native

    LogTail = _native.LogTail
    QueueTail = _native.QueueTail
