"""A plain queue in memory, for stores opened for reading; it grows as the log does."""

from __future__ import annotations

from typing import Final

import numpy as np

from seglog.storage.format.queue.consume_queue import CQ_UNIT, Units
from seglog.storage.kernels.walk import Rows
from seglog.storage.overlay.kept_units import is_message
from seglog.storage.overlay.queue_overlay import QueueState

_MIN_CAPACITY: Final = 64
_MAX_GAP: Final = 1 << 20


class SnapshotQueue:
    """A queue in memory, which grows as the log does.

    Attributes:
        min_offset: Queue offset of the first message that the log holds.
        max_offset: Queue offset of the next message.
        max_phy_offset: End of the record of the last unit, as a physical offset; -1 before the first.
        maps: None: nothing is mapped.
    """

    def __init__(self, state: QueueState, units_per_file: int) -> None:
        self.topic = state.topic
        self.queue_id = state.queue_id
        self.units_per_file = units_per_file
        self.min_offset = state.min_offset
        self.max_offset = state.max_offset
        self.max_phy_offset = state.max_phy_offset
        self.maps = None
        self._first_slot = state.first_slot
        self._units = state.units

    @property
    def tail(self) -> SnapshotQueue:
        """Its minimum and maximum: the object itself, which has the same attributes."""
        return self

    def unit(self, queue_offset: int) -> tuple[int, int, int]:
        """Returns physical offset, size and tags code of a unit; zeros before the first unit."""
        index = queue_offset - self._first_slot
        phy_offset, size_bytes, tags_code = self._units[index].item() if index >= 0 else (0, 0, 0)
        return phy_offset, size_bytes, tags_code

    def recheck(self) -> None:
        """Does nothing: units are in memory of this process."""

    def units(self, queue_offset: int, count: int) -> Units:
        """Returns up to ``count`` units from ``queue_offset`` on."""
        start = max(0, queue_offset - self._first_slot)
        return self._units[start : min(start + max(0, count), self.max_offset - self._first_slot)]

    def file_of(self, _queue_offset: int) -> None:
        """Returns None: no file is mapped."""

    def extend(self, rows: Rows) -> None:
        """Adds the units of new records; offsets that the queue already has keep their message.

        A queue offset that is far too high is ignored until the next open, which sees all records of the
        queue.
        """
        rows = rows[rows["queue_offset"] >= self.max_offset]
        if not len(rows):
            return
        if self.max_offset == self.min_offset == self._first_slot:
            self._first_slot = self.min_offset = self.max_offset = int(rows["queue_offset"].min())
        rows = rows[rows["queue_offset"] - self.max_offset <= len(rows) + _MAX_GAP]
        slots = rows["queue_offset"] - self._first_slot
        top = int(slots.max()) + 1
        if top > len(self._units):
            grown = np.zeros(max(top, 2 * len(self._units), _MIN_CAPACITY), CQ_UNIT.dtype)
            grown[: len(self._units)] = self._units
            self._units = grown
        for name in ("phy_offset", "size_bytes", "tags_code"):
            self._units[name][slots] = rows[name]
        last = rows[-1]
        self.max_phy_offset = int(last["phy_offset"]) + int(last["size_bytes"])
        self.max_offset = self._first_slot + top

    def raise_min(self, min_phy_offset: int) -> None:
        """Raises the minimum behind messages that retention removed."""
        units = self.units(self.min_offset, self.max_offset - self.min_offset)
        there = is_message(units) & (units["phy_offset"] >= min_phy_offset)
        self.min_offset = self.min_offset + int(there.argmax()) if there.any() else self.max_offset
