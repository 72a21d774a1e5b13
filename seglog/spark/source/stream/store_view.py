"""A store that a stream follows, at one moment: its files, its queues, and the end of its log.

Queues are read first, then the log (see :mod:`seglog.spark.source.read.queue_units`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from seglog.logs import logger
from seglog.spark.source.read.log_end import LogEnd, find_log_end, lost_behind
from seglog.spark.source.read.losses import Loss
from seglog.spark.source.read.queue_units import Queue, StoreQueues, look_at_store
from seglog.storage.directory import MOST_RECORD_BYTES, LogReader, StoreGeometry
from seglog.storage.files import Files
from seglog.storage.format.queue import CQ_UNIT, Units
from seglog.storage.format.record import RecordRow
from seglog.storage.kernels.walk import Rows, are_dispatched
from seglog.storage.walk import LogScan, record_at

_log = logger(__name__)
Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class FollowedStore:
    """A store that is followed.

    Attributes:
        key: Its unique name in offsets.
        path: The path or address that the user gave.
        broker_name: The option ``brokerName``, which several stores may share.
        files: Access to the store.
        root: The store directory.
    """

    key: str
    path: str
    broker_name: str | None
    files: Files
    root: Path


class StoreView:
    """A store as it is now.

    Args:
        store: The store.
        hints: Queue offsets near the ends of its queues.
        verify: Whether to compute checksums.

    Attributes:
        listing: Its files.
        queues: Its queues.
        reader: Its log.
    """

    def __init__(self, store: FollowedStore, hints: Mapping[Key, int], *, verify: bool) -> None:
        self.store = store
        self.verify = verify
        self.listing, self.queues = look_at_store(store.files, store.root, hints)
        self.reader = LogReader(store.files, store.root, self.geometry.segment_size_bytes)

    @property
    def geometry(self) -> StoreGeometry:
        """Lengths of its files."""
        return self.listing.geometry

    @property
    def first_phy_offset(self) -> int:
        """Start of its log."""
        return self.listing.log_files[0].first_offset if self.listing.log_files else 0

    @property
    def files_end(self) -> int:
        """End of its last log file; files have their full length from the start."""
        last = self.listing.log_files[-1] if self.listing.log_files else None
        return 0 if last is None else last.first_offset + last.size_bytes

    @cached_property
    def end(self) -> LogEnd:
        """End of its log."""
        return find_log_end(self.store.files, self.store.root, self.listing, self.queues, verify=self.verify)

    @cached_property
    def fitting_queues(self) -> StoreQueues:
        """Its queues by the log: those of the files if they fit, else those of a walk."""
        if all(self._fits(queue) for queue in self.queues.ends) and self.queues.ends:
            return self.queues
        if self.listing.log_files:
            _log.warning("%s: the queues do not fit the log; all of it is walked", self.store.path)
        walked = _WalkedUnits(self)
        return StoreQueues(walked, walked, [Queue(*key) for key in walked.queues])

    def lost_behind(self, end_phy_offset: int) -> tuple[Loss, ...]:
        """Returns the messages after an end of the log that queues have units for."""
        return lost_behind(self.reader, self.listing, self.queues, end_phy_offset)

    def scan(self) -> LogScan:
        """Returns a walk over its log."""
        segment = self.geometry.segment_size_bytes
        return LogScan(self.reader, self.listing.log_files, segment, verify=self.verify)

    def range_of(self, queue: Queue) -> range:
        """Returns the queue offsets of a queue whose messages are in the log."""
        queues = self.fitting_queues
        end = queues.number_at(queue, self.end.phy_offset, queues.ends[queue])
        first = min(queues.first_at(queue, self.first_phy_offset), end)
        return range(queues.queue_offset(queue, first), queues.queue_offset(queue, end))

    def row_at(self, queue: Queue, number: int) -> RecordRow | None:
        """Returns the row of the record of a unit; None if there is none, or it is another one."""
        queues = self.fitting_queues if "fitting_queues" in self.__dict__ else self.queues
        unit = queues.units(queue, number, number + 1)[0]
        place = int(unit["phy_offset"])
        found = record_at(self.reader, place, verify=False, most_bytes=MOST_RECORD_BYTES)
        if found is None:
            return None
        row = found[1]
        said = row.topic.decode("utf-8", "surrogateescape"), row.queue_id, row.queue_offset
        return row if said == (*queue.key, queues.queue_offset(queue, number)) else None

    def close(self) -> None:
        """Closes the file that was read last."""
        self.reader.close()

    def _fits(self, queue: Queue) -> bool:
        """Returns whether the first and the last message of a queue are at the places of their units."""
        first, end = self.queues.first_at(queue, self.first_phy_offset), self.queues.ends[queue]
        behind = self.queues.number_at(queue, self.end.phy_offset, end)
        return first >= behind or all(self.row_at(queue, number) for number in (first, behind - 1))


class _WalkedUnits:
    """Units derived from the records of a log, for a store whose queues are missing."""

    def __init__(self, view: StoreView) -> None:
        with closing(view.scan()) as scan:
            parts = [rows[are_dispatched(rows)].copy() for rows in scan.iter_rows()]
        self._units: dict[Key, tuple[int, Units]] = {}
        if parts:
            rows: Rows = np.concatenate(parts)
            for number in np.unique(rows["queue"]).tolist():
                self._units[scan.queues.names[number]] = _units_of(rows[rows["queue"] == number])

    @property
    def queues(self) -> list[Key]:
        """Topic and queue id of the queues that have messages in the log."""
        return list(self._units)

    def read(self, topic: str, queue_id: int, first_slot: int, count: int) -> Units:
        """Returns units of a queue; those that do not exist are zero."""
        first, units = self._units[topic, queue_id]
        found = np.zeros(count, CQ_UNIT.dtype)
        start, end = max(first_slot, first), min(first_slot + count, first + len(units))
        if start < end:
            found[start - first_slot : end - first_slot] = units[start - first : end - first]
        return found

    def extent(self, topic: str, queue_id: int) -> range:
        """Returns the numbers of the units."""
        first, units = self._units[topic, queue_id]
        return range(first, first + len(units))


def _units_of(rows: Rows) -> tuple[int, Units]:
    """Returns the units of one queue; for a lost record the unit of the record before it."""
    first, last = int(rows["queue_offset"].min()), int(rows["queue_offset"].max())
    slots = np.zeros(last - first + 1, np.int64)
    slots[rows["queue_offset"] - first] = np.arange(len(rows)) + 1
    at = np.maximum.accumulate(slots) - 1
    units = np.zeros(len(slots), CQ_UNIT.dtype)
    units["phy_offset"], units["size_bytes"] = rows["phy_offset"][at], rows["size_bytes"][at]
    return first, units
