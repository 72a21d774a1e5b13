"""Where a log and its queues end: what every append changes and every read looks at.

The native kernels change them in place; nobody else keeps a copy. Readers take them without a lock, so
appends change them last: queue before log, and only when the record and its unit are there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from seglog.storage.kernels import KERNELS, NATIVE

NEVER: Final = (1 << 63) - 1
"""An end that no log reaches."""


class Window:
    """Memory of a file that is lent for writing.

    Attributes:
        memory: The whole file.
        first: Offset of its first byte in the sequence.
        end: Where writing must stop.
        checked_ms: When somebody looked last whether the file is whole, in the time of the store.
    """

    __slots__ = ("_length", "checked_ms", "end", "first", "memory")

    def __init__(self, memory: memoryview, first: int, end: int, length: Callable[[], int] | None) -> None:
        self.memory = memory
        self.first = first
        self.end = end
        self.checked_ms = -1
        self._length = length

    def is_whole(self, now_ms: int) -> bool:
        """Returns whether nobody cut the file."""
        self.checked_ms = now_ms
        return self._length is None or self._length() >= len(self.memory)


_NO_WINDOW: Final = Window(memoryview(b""), 0, -1, None)


class PythonLogTip:
    """Where a log ends.

    Attributes:
        end_phy_offset: Where the next record goes.
        last_phy_offset: Where the last record starts, -1 before the first.
        last_store_ms: Store time of the last record, 0 before the first.
        newest_store_ms: Newest store time of any record: the machine's time may have been set back.
        keyed_end: No record from there on has properties, so none has keys; where the log ended when it was
            opened, or the end of a later record.
        nudge_at: From this end on, an append asks for files to be made ahead.
        is_shut: Whether somebody holds the append lock and nothing else may append: the block of a ``with``.
        window: The file of the end, as far as it was lent.
    """

    __slots__ = (
        "end_phy_offset",
        "is_shut",
        "keyed_end",
        "last_phy_offset",
        "last_store_ms",
        "newest_store_ms",
        "nudge_at",
        "window",
    )

    def __init__(
        self, end_phy_offset: int, last_phy_offset: int, last_store_ms: int, newest_store_ms: int
    ) -> None:
        self.end_phy_offset = end_phy_offset
        self.last_phy_offset = last_phy_offset
        self.last_store_ms = last_store_ms
        self.newest_store_ms = newest_store_ms
        self.keyed_end = end_phy_offset
        self.nudge_at = NEVER
        self.is_shut = False
        self.window = _NO_WINDOW

    def __enter__(self) -> Self:
        self.is_shut = True
        return self

    def __exit__(self, *_error: object) -> None:
        self.is_shut = False

    def lend(self, memory: memoryview, first: int, end: int, length: Callable[[], int] | None, /) -> None:
        """Lends a file for writing.

        Args:
            memory: The whole file.
            first: Physical offset of its first byte.
            end: Where writing must stop.
            length: Answers how long the file is now; None where nobody can cut it.
        """
        self.window = Window(memory, first, end, length)

    def take_back(self) -> None:
        """Takes back what was lent."""
        self.window = _NO_WINDOW


class PythonQueueTip:
    """Where a queue ends.

    Attributes:
        min_offset: Queue offset of the first message that the log holds.
        max_offset: Queue offset that the next message gets.
        max_phy_offset: Where the record of the last unit ends, -1 before the first.
        window: The file of the next unit, as far as it was lent.
    """

    __slots__ = ("max_offset", "max_phy_offset", "min_offset", "window")

    def __init__(self, min_offset: int, max_offset: int, max_phy_offset: int) -> None:
        self.min_offset = min_offset
        self.max_offset = max_offset
        self.max_phy_offset = max_phy_offset
        self.window = _NO_WINDOW

    def lend(self, memory: memoryview, first: int, end: int, length: Callable[[], int] | None, /) -> None:
        """Lends a file as :meth:`PythonLogTip.lend` does; the offsets are those of bytes in the queue."""
        self.window = Window(memory, first, end, length)

    def take_back(self) -> None:
        """Takes back what was lent."""
        self.window = _NO_WINDOW


LogTip: TypeAlias = PythonLogTip
QueueTip: TypeAlias = PythonQueueTip
if KERNELS == NATIVE and not TYPE_CHECKING:
    from seglog.storage.kernels import _native

    LogTip = _native.LogTip
    QueueTip = _native.QueueTip
