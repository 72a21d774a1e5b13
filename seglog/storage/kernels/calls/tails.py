"""Where a log and its queues end: what every append changes and every read looks at.

The native kernels change them in place; nothing else keeps a copy. Readers take them without a lock, so
appends change them last: queue before log, and only when the record and its unit are there.
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
        end: Where writing must stop.
        descriptor: Of the file, to be written to by pwrite; -1 for none.
        checked_ms: When the file was last checked to be whole, in the time of the store.
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
        """Writes one record, its size last: a reader beside it sees nothing or all of it.

        Args:
            offset: Where it begins.
            rest: All but the size.
            size: The size.
            via_pwrite: Whether to write to the page cache: what is to be on the disk at once is there sooner,
                as no map of it must be cleaned first, which interrupts every core.

        Raises:
            OSError: It could not be written so; the size is not there.
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
        if self.descriptor >= 0:  # not asked for its times: the next sync would write them too
            is_whole = os.lseek(self.descriptor, 0, os.SEEK_END) >= len(self.memory)
        else:
            is_whole = self._length is None or self._length() >= len(self.memory)
        # Who asks again within this millisecond gets the same answer.
        self.checked_ms = now_ms if is_whole else -1
        return is_whole


_NO_WINDOW: Final = WriteWindow(memoryview(b""), 0, -1, None, -1)


class _Tail:
    """What can be granted a file for writing.

    Attributes:
        window: The file of the end, as far as it was granted.
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
            end: Where writing must stop.
            length: Returns how long the file is now; None where it cannot be cut.
            descriptor: Of the file, to be written to by pwrite; -1 for none.
        """
        self.window = WriteWindow(memory, first, end, length, descriptor)

    def revoke(self) -> None:
        """Ends the grant."""
        self.window = _NO_WINDOW


class PythonLogTail(_Tail):
    """Where a log ends.

    Attributes:
        end_phy_offset: Where the next record goes.
        last_phy_offset: Where the last record starts, -1 before the first.
        last_store_ms: Store time of the last record, 0 before the first.
        newest_store_ms: Newest store time of any record: the machine's time may have been set back.
        keyed_end: No record from there on has properties, so none has keys; where the log ended when it was
            opened, or the end of a later record.
        wake_allocator_at: From this end on, an append asks for files to be made ahead.
        is_shut: Whether the append lock is held and nothing else may append: the block of a ``with``.
    """

    __slots__ = (
        "end_phy_offset",
        "is_shut",
        "keyed_end",
        "last_phy_offset",
        "last_store_ms",
        "newest_store_ms",
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
        self.is_shut = False

    def __enter__(self) -> Self:
        self.is_shut = True
        return self

    def __exit__(self, *_error: object) -> None:
        self.is_shut = False


class PythonQueueTail(_Tail):
    """Where a queue ends.

    Attributes:
        min_offset: Queue offset of the first message that the log holds.
        max_offset: Queue offset that the next message gets.
        max_phy_offset: Where the record of the last unit ends, -1 before the first.
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
