"""The reading side of a store that this process has no lock of: a snapshot that can follow the writer.

Nothing is written and nothing is mapped: the files may be cut at any moment by their owner. Queues are
worked out from the log in memory, so a reader sees what recovery would serve even where queue files are
wrong or gone.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.clock import Clock
from seglog.storage.compaction.files import CompactionState, infer_compaction_sizes, list_compaction_files
from seglog.storage.compaction.units import CompactionUnits
from seglog.storage.directory.geometry import StoreGeometry
from seglog.storage.directory.log_files import LogReader, list_log_files, place_log_files
from seglog.storage.files.files import Files
from seglog.storage.format.names import can_name_directory
from seglog.storage.format.queue.consume_queue import CQ_UNIT, Units
from seglog.storage.format.record.record import MIN_RECORD_BYTES
from seglog.storage.kernels.walk import Rows
from seglog.storage.log.commit_log import HoleMap
from seglog.storage.overlay.batch_overlay import BatchQueueState, units_of_rows
from seglog.storage.overlay.lost_messages import LostMessages, lost_in_gaps
from seglog.storage.overlay.queue_overlay import QueueState, is_message
from seglog.storage.reads.snapshot_batch_queue import SnapshotBatchQueue
from seglog.storage.reads.snapshot_compaction import SnapshotCompactionQueue
from seglog.storage.survey.moving_store import leave_front, look_again, start_now, survey_moving
from seglog.storage.survey.survey import Survey, survey
from seglog.storage.walk.dispatch import dispatch, topics_with_inner_batches
from seglog.storage.walk.log_scan import Hole
from seglog.storage.walk.queue_offsets import with_queue_offset

_POLL_MS: Final = 20
_MIN_CAPACITY: Final = 64
_MAX_GAP: Final = 1 << 20


class SnapshotQueue:
    """A queue in memory, which grows as the log does.

    Attributes:
        min_offset: Queue offset of the first message that the log holds.
        max_offset: Queue offset of the next message.
        max_phy_offset: Where the record of the last unit ends, -1 before the first.
    """

    def __init__(self, state: QueueState, units_per_file: int) -> None:
        self.topic = state.topic
        self.queue_id = state.queue_id
        self.units_per_file = units_per_file
        self.min_offset = state.min_offset
        self.max_offset = state.max_offset
        self.max_phy_offset = state.max_phy_offset
        self._first_slot = state.first_slot
        self._units = state.units

    @property
    def tail(self) -> SnapshotQueue:
        """Where it begins and ends: what it says itself."""
        return self

    def unit(self, queue_offset: int) -> tuple[int, int, int]:
        """Returns physical offset, size and tags code of one unit of the queue; zeros in front of them."""
        index = queue_offset - self._first_slot
        phy_offset, size_bytes, tags_code = self._units[index].item() if index >= 0 else (0, 0, 0)
        return phy_offset, size_bytes, tags_code

    def recheck(self) -> None:
        """Does nothing: units are in memory of this process."""

    def units(self, queue_offset: int, count: int) -> Units:
        """Returns up to ``count`` units from ``queue_offset`` on."""
        start = max(0, queue_offset - self._first_slot)
        return self._units[start : min(start + max(0, count), self.max_offset - self._first_slot)]

    def extend(self, rows: Rows) -> None:
        """Adds the units of records that came since; slots given before keep their message.

        A queue offset out of all reason is left to the next open, which sees all records of the queue.
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
        """Moves the minimum behind messages that retention took away."""
        units = self.units(self.min_offset, self.max_offset - self.min_offset)
        there = is_message(units) & (units["phy_offset"] >= min_phy_offset)
        self.min_offset = self.min_offset + int(there.argmax()) if there.any() else self.max_offset


class SnapshotLog:
    """The log through ``pread``.

    Attributes:
        holes: Its unreadable stretches.
        mended: Queue offset by physical offset of records that say another one of themselves.
        withheld: Where records lie that a repair would serve otherwise.
        end_phy_offset: Where it ended when it was last looked at. Queues may know places behind it: of
            messages that were lost with the log's end.
    """

    def __init__(self, reader: LogReader, end_phy_offset: int) -> None:
        self._reader = reader
        self.end_phy_offset = end_phy_offset
        self._lock = threading.Lock()
        self.holes = HoleMap(())
        self.mended: Mapping[int, int] = {}
        self.withheld: frozenset[int] = frozenset()

    def read(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        """Returns a copy of a record's bytes, None if they are gone."""
        if phy_offset + size_bytes > self.end_phy_offset or self.holes.covers(phy_offset):
            return None
        if phy_offset in self.withheld:
            return None
        with self._lock:
            record = self._reader.read(phy_offset, size_bytes)
        if len(record) != size_bytes:
            return None
        if phy_offset in self.mended and size_bytes >= MIN_RECORD_BYTES:
            return with_queue_offset(record, self.mended[phy_offset])
        return record

    def read_run(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        """Returns a copy of neighbouring records in one piece; None to have each asked for by itself."""
        if phy_offset + size_bytes > self.end_phy_offset or self.holes or self.mended or self.withheld:
            return None
        return self.stretch(phy_offset, size_bytes)

    def recheck(self) -> None:
        """Does nothing: each read asks the system."""

    def can_serve(
        self, phy_offsets: npt.NDArray[np.int64], _sizes: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Returns which of many records are served; all were looked at when the store was opened."""
        if not self.withheld:
            return np.ones(len(phy_offsets), np.bool_)
        return ~np.isin(phy_offsets, list(self.withheld))

    def stretch(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        """Returns a copy of bytes of one file, whatever they hold; None if they are gone."""
        with self._lock:
            found = self._reader.read(phy_offset, size_bytes)
        return found if len(found) == size_bytes else None

    def close(self) -> None:
        """Closes the open file."""
        with self._lock:
            self._reader.close()


class Reader:
    """A store opened for reading."""

    def __init__(self, found: Survey, files: Files, clock: Clock) -> None:
        self._files = files
        self._clock = clock
        self._lock = threading.Lock()
        self._closing = threading.Condition()
        self._closed = False
        self._serve(found)

    def _serve(self, found: Survey) -> None:
        self._found = found
        self._units_per_file = found.geometry.units_per_file
        self._queues = {
            key: SnapshotQueue(state, self._units_per_file) for key, state in found.queues.items()
        }
        self._batch_queues = {
            key: SnapshotBatchQueue(state, found.geometry.batch_file_size_bytes)
            for key, state in found.batch_queues.items()
        }
        reader = LogReader(self._files, found.root, found.geometry.segment_size_bytes)
        self.log = SnapshotLog(reader, found.max_phy_offset)
        self.log.holes = HoleMap(found.holes)
        self.log.mended = found.mended
        self.log.withheld = found.withheld
        self.min_phy_offset = found.min_phy_offset
        self._compaction = {
            key: SnapshotCompactionQueue(state, self._files, self.log)
            for key, state in found.compaction.items()
        }
        for key, rows in found.compaction_rows.items():
            self._compaction[key].extend(rows)
        # What was worked out from them is here; they would take as much as all of it together.
        found.rows, found.compaction_rows = found.rows[:0].copy(), {}
        self._leave_front()

    @property
    def geometry(self) -> StoreGeometry:
        """Lengths of the store's files, as far as they tell."""
        return self._found.geometry

    @property
    def end_phy_offset(self) -> int:
        """Where the log ends, as far as was looked."""
        return self._found.max_phy_offset

    @property
    def last_phy_offset(self) -> int:
        """Where the last record starts, as far as was looked; -1 before the first."""
        return self._found.scan.last_phy_offset

    @property
    def holes(self) -> tuple[Hole, ...]:
        """Unreadable stretches of the log."""
        return tuple(self._found.holes)

    def lost_in_gaps(self) -> list[LostMessages]:
        """Returns the messages that the log has other records in place of."""
        return [lost for state in self._found.queues.values() for lost in lost_in_gaps(state)]

    def queue(self, topic: str, queue_id: int) -> SnapshotQueue | SnapshotBatchQueue | None:
        """Returns a queue that had a message."""
        return self._queues.get((topic, queue_id)) or self._batch_queues.get((topic, queue_id))

    def queues(self) -> list[SnapshotQueue | SnapshotBatchQueue]:
        """Returns all queues."""
        return [*self._queues.values(), *self._batch_queues.values()]

    def repairable(self, topic: str, queue_id: int) -> frozenset[int]:
        """Returns the queue offsets of a queue whose messages a repair would bring back."""
        return self._found.repairable.get((topic, queue_id), frozenset())

    @property
    def compaction_topics(self) -> frozenset[str]:
        """Topics that are read from a log of their own."""
        return self._found.kinds.compaction

    def compaction_queue(self, topic: str, queue_id: int) -> SnapshotCompactionQueue | None:
        """Returns a queue of such a topic."""
        return self._compaction.get((topic, queue_id))

    def refresh(self) -> int:
        """Looks for what was written since; returns how many records that were."""
        with self._lock:
            return look_again(self._refresh)

    def leave_front(self) -> bool:
        """Takes notice of log files that retention removed; returns whether any were."""
        with self._lock:
            return self._leave_front()

    def _refresh(self) -> int:
        found = self._found
        log_files, _strays = list_log_files(self._files, found.root)
        log_files, _misplaced = place_log_files(log_files, found.geometry.segment_size_bytes)
        at = found.max_phy_offset - found.max_phy_offset % found.geometry.segment_size_bytes
        # Until there was a record, the files may not have told how long they are. And where all files that
        # were seen are gone, the walk has no place to go on from.
        if found.scan.last_phy_offset < 0 or (log_files and log_files[0].first_offset > at):
            self.log.close()
            found = survey_moving(lambda: survey(found.root, self._files), found.root, self._files)
            count = len(found.rows)
            self._serve(found)
            return count
        found.log_files = log_files
        found.scan.extend(log_files)
        try:
            rows = found.scan.run()
        finally:
            found.scan.close()
        self.log.holes = HoleMap(found.holes)
        self.log.end_phy_offset = found.max_phy_offset
        self._add(rows)
        self._raise_min(found.min_phy_offset)
        self._leave_front()
        return len(rows)

    def _leave_front(self) -> bool:
        found = self._found
        start = start_now(found, found.root, self._files)
        if start <= self.min_phy_offset:
            return False
        leave_front(found, start)
        self.log.holes = HoleMap(found.holes)
        self._raise_min(start)
        return True

    def _raise_min(self, start: int) -> None:
        if start > self.min_phy_offset >= 0:
            for queue in self.queues():
                queue.raise_min(start)
        self.min_phy_offset = start

    def _add(self, rows: Rows) -> None:
        found = self._found
        plain_topics = {topic for topic, _queue_id in self._queues}
        inner = topics_with_inner_batches(rows, found.scan.queues) - plain_topics
        found.kinds = replace(found.kinds, batch=found.kinds.batch | inner)
        further = found.scan.inner.take_further()
        placed = dispatch(rows, further, found.scan.queues, found.kinds.batch)
        for key, added in placed.plain.items():
            if not can_name_directory(key[0]):
                continue
            queue = self._queues.get(key) or SnapshotQueue(QueueState.empty(*key), self._units_per_file)
            queue.extend(added)
            self._queues[key] = queue
            if key[0] in found.kinds.compaction:
                self._extend_compaction(key, added)
        for key, added in placed.batch.items():
            if not can_name_directory(key[0]):
                continue
            batch_queue = self._batch_queues.get(key) or SnapshotBatchQueue(
                BatchQueueState.empty(*key), found.geometry.batch_file_size_bytes
            )
            batch_queue.extend(units_of_rows(added, found.scan.inner.ranges))
            self._batch_queues[key] = batch_queue

    def _extend_compaction(self, key: tuple[str, int], rows: Rows) -> None:
        queue = self._compaction.get(key)
        if queue is None:
            sizes = infer_compaction_sizes([state.files for state in self._found.compaction.values()])
            nothing = list_compaction_files(self._files, self._found.root, *key)
            state = CompactionState(nothing, CompactionUnits(sizes))
            queue = SnapshotCompactionQueue(state, self._files, self.log)
        queue.extend(rows)
        self._compaction[key] = queue

    def wait_for_any(self, queues: Mapping[tuple[str, int], int], timeout_ms: float) -> bool:
        """Looks again and again until a queue goes beyond its offset or the time is over."""
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        while not self._closed:
            for key, queue_offset in queues.items():
                queue = self.queue(*key)
                if queue is not None and queue.max_offset > queue_offset:
                    return True
            left_ms = deadline_ms - self._clock.monotonic_ms()
            if left_ms <= 0:
                return False
            if not self.refresh():
                with self._closing:
                    if not self._closed:
                        self._clock.wait(self._closing, min(_POLL_MS, left_ms))
        return False

    def close(self) -> None:
        """Closes open files and ends all waiting."""
        with self._closing:
            self._closed = True
            self._closing.notify_all()
        self.log.close()
