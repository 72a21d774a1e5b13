"""Finds single records of a log whose stretches are known.

For the few units whose records belong to other queues (``%LMQ%``), so that splits cannot match them.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seglog.storage.directory import LogReader, StoreGeometry
from seglog.storage.directory.log_facts import MOST_RECORD_BYTES
from seglog.storage.files.files import Files
from seglog.storage.format.queue.consume_queue import Units
from seglog.storage.format.record.record import Damage, RecordRow, examine
from seglog.storage.splits.stretches import Stretch
from seglog.storage.walk.log_records import record_at


class LogLookup:
    """Reads records by their place.

    Args:
        files: Where the store is.
        root: The store directory.
        geometry: Lengths of its files.
        stretches: The log, in order; checksums were computed when it was walked.
    """

    def __init__(
        self, files: Files, root: Path, geometry: StoreGeometry, stretches: Sequence[Stretch]
    ) -> None:
        self._reader = LogReader(files, root, geometry.segment_size_bytes)
        self._stretches = stretches

    def led_to(self, units: Units) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Returns where the records that units lead to start, in order, and their sizes.

        Args:
            units: ``(n,) CQ_UNIT.dtype``; those that lead to no record of the log are left out.
        """
        places = np.unique(units[["phy_offset", "size_bytes"]])
        found = [(phy, size) for phy, size in places.tolist() if self._size_at(phy, size) == size]
        starts = np.array([phy for phy, _size in found], np.int64)
        return starts, np.array([size for _phy, size in found], np.int32)

    def is_in_log(self, phy_offset: int) -> bool:
        """Returns whether a place is in a stretch of the log."""
        at = bisect.bisect_right(self._stretches, phy_offset, key=lambda stretch: stretch.start) - 1
        return at >= 0 and phy_offset < self._stretches[at].end

    def row_at(self, phy_offset: int) -> RecordRow | None:
        """Returns what a record states, None where there is none any more."""
        found = record_at(self._reader, phy_offset, verify=False, most_bytes=MOST_RECORD_BYTES)
        return None if found is None else found[1]

    def close(self) -> None:
        """Closes the file that was read last."""
        self._reader.close()

    def _size_at(self, phy_offset: int, at_most_bytes: int) -> int | None:
        if not self.is_in_log(phy_offset) or not 0 < at_most_bytes <= MOST_RECORD_BYTES:
            return None
        window = self._reader.read(phy_offset, at_most_bytes)
        row = examine(window, 0, phy_offset, verify=False)
        return None if isinstance(row, Damage) else row.size_bytes
