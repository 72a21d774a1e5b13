"""Where the messages of a compaction queue lie in its own log, in memory: what both engines' files say.

Units of single messages whose queue offsets grow with gaps; end units are left out. A file ends where the
next record does not fit its log, or its units the queue file.

Source: ``store/.../SparseConsumeQueue.java``, ``store/.../kv/CompactionLog.java getMessage``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from seglog.storage.format.queue.batch_consume_queue import (
    BATCH_UNIT,
    BATCH_UNIT_BYTES,
    NO_COMPACTED_OFFSET,
    BatchUnits,
)
from seglog.storage.format.queue.compaction import CompactionSizes, compaction_rolls

_MIN_CAPACITY: Final = 64


class Position(NamedTuple):
    """A place in a pair of files.

    Attributes:
        first: Offset of the first byte of the log file, which names both.
        log_bytes: Where in the log file.
        queue_bytes: Where in the queue file.
    """

    first: int
    log_bytes: int
    queue_bytes: int

    def behind(self, size_bytes: int) -> Position:
        """Returns the place behind a record that is put here."""
        return Position(self.first, self.log_bytes + size_bytes, self.queue_bytes + BATCH_UNIT_BYTES)


def place(at: Position, size_bytes: int, sizes: CompactionSizes) -> Position:
    """Returns where a record goes when the last one ended at ``at``."""
    if compaction_rolls(size_bytes, at.log_bytes, at.queue_bytes, sizes):
        return Position(at.first + sizes.log_bytes, 0, 0)
    return at


class CompactionUnits:
    """The units of one queue, all files together, read as those of a batch queue are.

    Attributes:
        end: Where the last record ends.
        end_index: How many units there are.

    Thread rule: any thread may read; one at a time may add.
    """

    first_index: Final = 0

    def __init__(self, sizes: CompactionSizes) -> None:
        self.sizes = sizes
        self.end = Position(0, 0, 0)
        self.end_index = 0
        self._units = np.zeros(_MIN_CAPACITY, BATCH_UNIT.dtype)
        self._file_starts: list[int] = []

    @property
    def min_offset(self) -> int:
        """Queue offset of the first message, -1 without any."""
        return int(self._units[0]["base_queue_offset"]) if self.end_index else -1

    @property
    def max_offset(self) -> int:
        """Queue offset behind the last message, 0 without any."""
        return int(self._units[self.end_index - 1]["base_queue_offset"]) + 1 if self.end_index else 0

    def units(self, index: int, count: int) -> BatchUnits:
        """Returns up to ``count`` units from number ``index`` on."""
        return self._units[index : min(self.end_index, index + max(0, count))]

    def file_end(self, index: int) -> int:
        """Returns the number of the first unit behind the file of a unit."""
        return next((start for start in self._file_starts if start > index), self.end_index)

    def begin_file(self, first: int, units: BatchUnits) -> None:
        """Adds a file that exists; the one before it is full."""
        self._file_starts.append(self.end_index)
        self._grow(self.end_index + len(units))
        self._units[self.end_index : self.end_index + len(units)] = units
        self.end_index += len(units)
        log_bytes = int(units[-1]["phy_offset"]) + int(units[-1]["size_bytes"]) - first if len(units) else 0
        self.end = Position(first, log_bytes, len(units) * BATCH_UNIT_BYTES)

    def add(
        self, at: Position, size_bytes: int, tags_code: int, store_timestamp_ms: int, queue_offset: int
    ) -> bytes:
        """Adds a record that is at ``at``; returns its unit. May be called again after it was interrupted."""
        starts = self._file_starts
        is_new_file = at.queue_bytes == 0 and (not starts or self.end.first != at.first)
        if is_new_file and starts[-1:] != [self.end_index]:
            starts.append(self.end_index)
        index = starts[-1] + at.queue_bytes // BATCH_UNIT_BYTES
        unit = BATCH_UNIT.struct.pack(
            at.first + at.log_bytes,
            size_bytes,
            tags_code,
            store_timestamp_ms,
            queue_offset,
            1,
            NO_COMPACTED_OFFSET,
            0,
        )
        self._grow(index + 1)
        self._units[index : index + 1] = np.frombuffer(unit, BATCH_UNIT.dtype)
        self.end = at.behind(size_bytes)
        self.end_index = index + 1
        return unit

    def _grow(self, count: int) -> None:
        if count > len(self._units):
            grown = np.zeros(max(count, 2 * len(self._units)), BATCH_UNIT.dtype)
            grown[: self.end_index] = self._units[: self.end_index]
            self._units = grown
