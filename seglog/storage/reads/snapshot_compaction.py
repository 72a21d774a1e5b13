"""A compaction queue of a store opened for reading: its files, and the records that only the log has yet."""

from __future__ import annotations

from seglog.storage.compaction.copies import has_key
from seglog.storage.compaction.files import CompactionState
from seglog.storage.compaction.units import place
from seglog.storage.files.files import Files
from seglog.storage.format.queue.compaction import compaction_record
from seglog.storage.kernels.walk import Rows
from seglog.storage.reads.snapshot_log import SnapshotLog


class SnapshotCompactionQueue:
    """One queue, and the log that its units lead into.

    Attributes:
        units: The places of its messages, also of those that only a writer's next open will copy.
    """

    def __init__(self, state: CompactionState, files: Files, log: SnapshotLog) -> None:
        self.units = state.units
        self._state = state
        self._files = files
        self._log = log
        self._in_commit_log = {place: source for place, (source, _size) in state.copies.items()}
        self._lost = state.lost.keys()
        self._behind: set[int] = set()

    def extend(self, rows: Rows) -> None:
        """Adds records of the commit log that the queue does not have yet; in log order."""
        for row in rows[rows["queue_offset"] >= self.units.max_offset]:
            phy_offset, size = int(row["phy_offset"]), int(row["size_bytes"])
            record = self._log.read(phy_offset, size)
            if record is None or not has_key(record, phy_offset):
                continue
            at = place(self.units.end, size, self.units.sizes)
            self._in_commit_log[at.first + at.log_bytes] = phy_offset
            self._behind.add(at.first + at.log_bytes)
            self.units.add(
                at,
                size,
                int(row["tags_code"]),
                int(row["store_timestamp_ms"]),
                int(row["queue_offset"]),
            )

    def read(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        """Returns a copy of a record of the queue's log; None if it cannot be read any more."""
        if phy_offset in self._lost:
            return None
        source = self._in_commit_log.get(phy_offset)
        record = None if source is None else self._log.read(source, size_bytes)
        if record is not None:
            return memoryview(compaction_record(record, phy_offset)).toreadonly()
        if phy_offset in self._behind:
            return None
        try:
            record = self._state.read_log(self._files, phy_offset, size_bytes)
        except FileNotFoundError:
            return None
        return record.toreadonly() if len(record) == size_bytes else None
