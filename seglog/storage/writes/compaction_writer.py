"""The writing side of compaction topics: copies each of their records to the compaction log of its queue."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from seglog.storage.compaction.copies import has_key
from seglog.storage.compaction.files import CompactionState, infer_compaction_sizes, list_compaction_files
from seglog.storage.compaction.queue import CompactionQueue
from seglog.storage.compaction.units import CompactionUnits, Position
from seglog.storage.files.files import Files
from seglog.storage.format.queue.compaction import CompactionSizes, compaction_key, compaction_sizes
from seglog.storage.kernels.pending_record import PendingRecord
from seglog.storage.queues.queue_table import QueueKey
from seglog.storage.segments.mapped_file import MapPool
from seglog.storage.survey.store_survey import Survey


class LogRecords(Protocol):
    """Reads records of the commit log."""

    def read(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        """Returns a record, None if it cannot be read."""


class CompactionWriter:
    """The compaction queues of a store that is open for writing.

    Args:
        files: The file layer of the store.
        root: The store directory.
        pool: Bounds the number of maps.
        log: The commit log.
        sizes: Lengths of compaction files, for a store that has none yet; None for RocketMQ's.
        queues: Filled with the queues that had a message, by topic and number.

    Thread rule: one thread at a time may call :meth:`grow`, and one :meth:`room` and :meth:`append`.
    """

    def __init__(
        self,
        files: Files,
        root: Path,
        pool: MapPool,
        log: LogRecords,
        sizes: CompactionSizes | None,
        queues: dict[QueueKey, CompactionQueue],
    ) -> None:
        self._queues = queues
        self._new: dict[QueueKey, CompactionQueue] = {}
        self._files = files
        self._root = root
        self._pool = pool
        self._log = log
        self._sizes = sizes or compaction_sizes()

    def open(self, found: Survey) -> None:
        """Opens the compaction queues, and copies to them the records that only the commit log has."""
        for key, state in found.compaction.items():
            is_synced = found.mode == "normal"
            queue = self._queues[key] = CompactionQueue(state, self._files, self._pool, is_synced=is_synced)
            queue.clear_tail()
            rows = found.compaction_rows.get(key)
            for row in () if rows is None else rows[rows["queue_offset"] >= queue.units.max_offset]:
                phy_offset, size = int(row["phy_offset"]), int(row["size_bytes"])
                record = self._log.read(phy_offset, size)
                if record is not None and has_key(record, phy_offset):
                    (place,) = queue.prepare([size])
                    stamp, code = int(row["store_timestamp_ms"]), int(row["tags_code"])
                    queue.append(place, record, code, stamp, int(row["queue_offset"]))
            queue.sync()
        states = [state.files for state in found.compaction.values()]
        self._sizes = infer_compaction_sizes(states, self._sizes)

    def sizes_of(self, records: Sequence[PendingRecord]) -> list[int]:
        """Returns the sizes of records of a compaction topic.

        Raises:
            MessageIllegalError: A record has no key.
        """
        for record in records:
            compaction_key(record.properties)
        return [record.size_bytes for record in records]

    def room(self, topic: str, queue_id: int, sizes_bytes: Sequence[int]) -> list[Position] | None:
        """Returns the places for copies of records, None until :meth:`grow` has made room for them.

        Raises:
            OSError: A file cannot be mapped.
        """
        queue = self._known((topic, queue_id))
        return None if queue is None else queue.room(sizes_bytes)

    def grow(self, topic: str, queue_id: int, sizes_bytes: Sequence[int]) -> None:
        """Makes the room that :meth:`room` lacks now; another append may use it first.

        Raises:
            FullError: The file system is full.
            OSError: A file could not be made.
        """
        key = topic, queue_id
        queue = self._known(key)
        if queue is None:
            nothing = list_compaction_files(self._files, self._root, topic, queue_id)
            units = CompactionUnits(self._sizes)
            queue = CompactionQueue(CompactionState(nothing, units), self._files, self._pool)
            self._new[key] = queue
        queue.prepare(sizes_bytes)

    def append(
        self,
        topic: str,
        queue_id: int,
        places: Sequence[Position],
        units: Sequence[tuple[int, int, int]],
        queue_offset: int,
        store_timestamp_ms: int,
    ) -> None:
        """Copies records that were just written to the log to the places that :meth:`room` returned.

        May be called again, with the same arguments, after it was interrupted.
        """
        key = topic, queue_id
        if key in self._new:
            self._queues[key] = self._new[key]
            del self._new[key]
        queue = self._queues[key]
        for place, (phy_offset, size_bytes, tags_code) in zip(places, units, strict=True):
            record = self._log.read(phy_offset, size_bytes)
            if record is not None:
                queue.append(place, record, tags_code, store_timestamp_ms, queue_offset)
            queue_offset += 1

    def _known(self, key: QueueKey) -> CompactionQueue | None:
        return self._queues.get(key) or self._new.get(key)

    def sync(self) -> None:
        """Syncs the files of all queues."""
        for queue in list(self._queues.values()):
            queue.sync()

    def close(self) -> None:
        """Releases all maps."""
        for queue in (*self._queues.values(), *self._new.values()):
            queue.close()
