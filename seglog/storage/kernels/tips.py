"""Where a log and its queues end: what every append changes and every read looks at.

The native kernels change them in place; nobody else keeps a copy. Readers take them without a lock, so
appends change them last: queue before log, and only when the record and its unit are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from seglog.storage.kernels import KERNELS, NATIVE

NEVER: Final = (1 << 63) - 1
"""An end that no log reaches."""


class PythonLogTip:
    """Where a log ends.

    Attributes:
        end_phy_offset: Where the next record goes.
        last_phy_offset: Where the last record starts, -1 before the first.
        last_store_ms: Store time of the last record, 0 before the first.
        newest_store_ms: Newest store time of any record: the machine's time may have been set back.
        nudge_at: From this end on, an append asks for files to be made ahead.
        is_shut: Whether somebody holds the append lock and nothing else may append.
    """

    __slots__ = (
        "end_phy_offset",
        "is_shut",
        "last_phy_offset",
        "last_store_ms",
        "newest_store_ms",
        "nudge_at",
    )

    def __init__(
        self, end_phy_offset: int, last_phy_offset: int, last_store_ms: int, newest_store_ms: int
    ) -> None:
        self.end_phy_offset = end_phy_offset
        self.last_phy_offset = last_phy_offset
        self.last_store_ms = last_store_ms
        self.newest_store_ms = newest_store_ms
        self.nudge_at = NEVER
        self.is_shut = False


class PythonQueueTip:
    """Where a queue ends.

    Attributes:
        min_offset: Queue offset of the first message that the log holds.
        max_offset: Queue offset that the next message gets.
        max_phy_offset: Where the record of the last unit ends, -1 before the first.
    """

    __slots__ = ("max_offset", "max_phy_offset", "min_offset")

    def __init__(self, min_offset: int, max_offset: int, max_phy_offset: int) -> None:
        self.min_offset = min_offset
        self.max_offset = max_offset
        self.max_phy_offset = max_phy_offset


LogTip: TypeAlias = PythonLogTip
QueueTip: TypeAlias = PythonQueueTip
if KERNELS == NATIVE and not TYPE_CHECKING:
    from seglog.storage.kernels import _native

    LogTip = _native.LogTip
    QueueTip = _native.QueueTip
