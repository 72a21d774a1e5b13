"""A batch queue in memory, for stores opened for reading; it grows as the log does."""

from __future__ import annotations

import numpy as np

from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT_BYTES, BatchUnits
from seglog.storage.overlay.batch_overlay import BatchQueueState, batch_end, batch_min_index


class SnapshotBatchQueue:
    """A batch queue at the moment of the last look at the log.

    Attributes:
        min_offset: Queue offset of the first message that the log holds.
        max_offset: Queue offset of the next message.
        max_phy_offset: Physical offset of the last record, -1 before the first.
        first_index: Number of the first unit.
    """

    def __init__(self, state: BatchQueueState, file_size_bytes: int) -> None:
        self.topic = state.topic
        self.queue_id = state.queue_id
        self._units_per_file = file_size_bytes // BATCH_UNIT_BYTES
        self.min_offset = state.min_offset
        self.max_offset = state.max_offset
        self.max_phy_offset = state.max_phy_offset
        self.first_index = state.first_index
        self._units = state.units

    @property
    def end_index(self) -> int:
        """Number of the next unit."""
        return self.first_index + len(self._units)

    def file_end(self, index: int) -> int:
        """Returns the number of the first unit behind the file of a unit."""
        return index - index % self._units_per_file + self._units_per_file

    def units(self, index: int, count: int) -> BatchUnits:
        """Returns up to ``count`` units from number ``index`` on."""
        start = max(0, index - self.first_index)
        return self._units[start : start + max(0, count)]

    def extend(self, units: BatchUnits) -> None:
        """Adds the units of new records; offsets that the queue already has keep their message."""
        units = units[units["base_queue_offset"] >= self.max_offset]
        if not len(units):
            return
        if self.max_offset == self.min_offset:
            self.min_offset = int(units[0]["base_queue_offset"])
        self._units = np.concatenate([self._units, units], dtype=self._units.dtype)
        self.max_phy_offset = int(units[-1]["phy_offset"])
        self.max_offset = batch_end(units)

    def raise_min(self, min_phy_offset: int) -> None:
        """Raises the minimum behind messages that retention removed."""
        index = batch_min_index(self._units, min_phy_offset)
        is_left = index < len(self._units)
        self.min_offset = int(self._units[index]["base_queue_offset"]) if is_left else self.max_offset
