"""The reading side of a store that another process may write: a snapshot that can follow the writer.

The reader writes nothing and maps nothing, because the owner of the files may cut them at any moment. It
derives the queues from the log, in memory, so it serves the messages that recovery would serve even if queue
files are wrong or missing.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Final, NoReturn

from seglog.clock import Clock
from seglog.errors import ClosedError, ReadOnlyError
from seglog.storage.compaction.files import CompactionState, infer_compaction_sizes, list_compaction_files
from seglog.storage.compaction.units import CompactionUnits
from seglog.storage.directory.geometry import StoreGeometry
from seglog.storage.directory.log_files import LogReader, list_log_files, place_log_files
from seglog.storage.files import Files, explained
from seglog.storage.findings.findings import Finding
from seglog.storage.format.names import can_name_directory
from seglog.storage.kernels.walk import Rows
from seglog.storage.log.commit_log import HoleMap
from seglog.storage.overlay import LostMessages, QueueState, lost_in_gaps
from seglog.storage.overlay.batch_overlay import BatchQueueState, units_of_rows
from seglog.storage.queues.queue_table import QueueKey
from seglog.storage.reads.open_queues import SnapshotTable
from seglog.storage.reads.snapshot_batch_queue import SnapshotBatchQueue
from seglog.storage.reads.snapshot_compaction import SnapshotCompactionQueue
from seglog.storage.reads.snapshot_log import SnapshotLog
from seglog.storage.reads.snapshot_queue import SnapshotQueue
from seglog.storage.survey import Survey, leave_front, look_again, start_now, survey, survey_moving
from seglog.storage.walk.behind_damage import Hole
from seglog.storage.walk.dispatch import dispatch, topics_with_inner_batches

_POLL_MS: Final = 20


class Reader:
    """A store opened for reading: a :class:`~seglog.storage.store_base.StoreCore` that refuses every change.

    Attributes:
        read_only: True.
        log: Its log; replaced when all files that the reader had seen are gone.
        queues: Its queues; replaced together with the log.
    """

    read_only = True

    def __init__(self, found: Survey, files: Files, clock: Clock) -> None:
        self._files = files
        self._clock = clock
        self._lock = threading.Lock()
        self._closing = threading.Condition()
        self._closed = False
        self._changed: Callable[[], None] = _nothing
        self._serve(found)

    def _serve(self, found: Survey) -> None:
        self._found = found
        self._units_per_file = found.geometry.units_per_file
        queues = SnapshotTable(found.kinds)
        for key, state in found.queues.items():
            queues.plain[key] = SnapshotQueue(state, self._units_per_file)
        for key, batch in found.batch_queues.items():
            queues.batch[key] = SnapshotBatchQueue(batch, found.geometry.batch_file_size_bytes)
        reader = LogReader(self._files, found.root, found.geometry.segment_size_bytes)
        self.log = SnapshotLog(reader, found)
        for key, compaction in found.compaction.items():
            queues.compaction[key] = SnapshotCompactionQueue(compaction, self._files, self.log)
        for key, rows in found.compaction_rows.items():
            queues.compaction[key].extend(rows)
        self.queues = queues
        # The queues hold all that is needed of the rows, which take as much memory as all queues together.
        found.rows, found.compaction_rows = found.rows[:0].copy(), {}
        self._leave_front()

    @property
    def geometry(self) -> StoreGeometry:
        """Lengths of the store's files, as far as the files show them."""
        return self._found.geometry

    @property
    def holes(self) -> tuple[Hole, ...]:
        """Unreadable stretches of the log."""
        return tuple(self._found.holes)

    def lost_in_gaps(self) -> list[LostMessages]:
        """Returns the messages at whose places the log has other records."""
        return [lost for state in self._found.all_queues.values() for lost in lost_in_gaps(state)]

    def repairable(self, topic: str, queue_id: int) -> frozenset[int]:
        """Returns the queue offsets of a queue whose messages a repair would bring back."""
        return self._found.repairable.get((topic, queue_id), frozenset())

    @property
    def later_findings(self) -> tuple[Finding, ...]:
        """Empty: the opening examined all records."""
        return ()

    def indexed(self) -> None:
        """Returns None: only a writer uses the key index."""

    def on_change(self, forget: Callable[[], None]) -> None:
        """Calls ``forget`` whenever queues may have been replaced."""
        self._changed = forget

    def refresh(self) -> int:
        """Reads the records that were written since the last look; returns their number."""
        with explained():
            count = self._look_again()
        self._changed()
        return count

    def _look_again(self) -> int:
        with self._lock:
            return look_again(self._refresh)

    def leave_front(self) -> bool:
        """Looks for log files that retention removed; returns whether there are any."""
        with self._lock:
            return self._leave_front()

    def _refresh(self) -> int:
        found = self._found
        log_files, _strays = list_log_files(self._files, found.root)
        log_files, _misplaced = place_log_files(log_files, found.geometry.segment_size_bytes)
        at = found.max_phy_offset - found.max_phy_offset % found.geometry.segment_size_bytes
        # Surveys again if there was no record yet, because the lengths of the files may have been unknown,
        # and if all files that the walk has seen are gone, because it has no place to continue at.
        if found.scan.last_phy_offset < 0 or (log_files and log_files[0].first_offset > at):
            self.log.close()
            found = survey_moving(lambda: survey(found.root, self._files), found.root, self._files)
            count = len(found.rows)
            self._serve(found)
            return count
        found.log_files = log_files
        found.scan.extend(log_files)
        with closing(found.scan):
            rows = found.scan.run()
        self.log.follow(found)
        self._add(rows)
        self._raise_min(found.min_phy_offset)
        self._leave_front()
        return len(rows)

    def _leave_front(self) -> bool:
        found = self._found
        start = start_now(found, found.root, self._files)
        if start <= self.log.min_phy_offset:
            return False
        leave_front(found, start)
        self.log.holes = HoleMap(found.holes)
        self._raise_min(start)
        return True

    def _raise_min(self, start: int) -> None:
        if start > self.log.min_phy_offset >= 0:
            for queue in self.queues:
                queue.raise_min(start)
        self.log.min_phy_offset = start

    def _add(self, rows: Rows) -> None:
        found, queues = self._found, self.queues
        plain_topics = {topic for topic, _queue_id in queues.plain}
        inner = topics_with_inner_batches(rows, found.scan.queues) - plain_topics
        queues.kinds = found.kinds = replace(found.kinds, batch=found.kinds.batch | inner)
        further = found.scan.inner.take_further()
        placed = dispatch(rows, further, found.scan.queues, found.kinds.batch)
        for key, added in placed.plain.items():
            if not can_name_directory(key[0]):
                continue
            queue = queues.plain.get(key) or SnapshotQueue(QueueState.empty(*key), self._units_per_file)
            queue.extend(added)
            queues.plain[key] = queue
            if key[0] in found.kinds.compaction:
                self._extend_compaction(key, added)
        for key, added in placed.batch.items():
            if not can_name_directory(key[0]):
                continue
            batch_queue = queues.batch.get(key) or SnapshotBatchQueue(
                BatchQueueState.empty(*key), found.geometry.batch_file_size_bytes
            )
            batch_queue.extend(units_of_rows(added, found.scan.inner.ranges))
            queues.batch[key] = batch_queue

    def _extend_compaction(self, key: QueueKey, rows: Rows) -> None:
        queue = self.queues.compaction.get(key)
        if queue is None:
            sizes = infer_compaction_sizes([state.files for state in self._found.compaction.values()])
            nothing = list_compaction_files(self._files, self._found.root, *key)
            state = CompactionState(nothing, CompactionUnits(sizes))
            queue = SnapshotCompactionQueue(state, self._files, self.log)
        queue.extend(rows)
        self.queues.compaction[key] = queue

    def wait_for_any(self, queues: Mapping[QueueKey, int], timeout_ms: float) -> bool:
        """Polls the store until a queue grows beyond its offset or the time is over."""
        with explained():
            has_any = self._poll(queues, timeout_ms)
        self._changed()
        return has_any

    async def wait_for_any_async(self, queues: Mapping[QueueKey, int], timeout_ms: float) -> bool:
        """Waits as :meth:`wait_for_any` does; a thread polls meanwhile."""
        return await asyncio.to_thread(self.wait_for_any, queues, timeout_ms)

    def _poll(self, queues: Mapping[QueueKey, int], timeout_ms: float) -> bool:
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        while not self._closed:
            for key, queue_offset in queues.items():
                queue = self.queues.find(*key)
                if queue is not None and queue.max_offset > queue_offset:
                    return True
            left_ms = deadline_ms - self._clock.monotonic_ms()
            if left_ms <= 0:
                return False
            if not self._look_again():
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

    def unlisten(self, _topic: str, _queue_id: int, _wake: Callable[[], None]) -> None:
        """Does nothing: a reader has no listeners."""

    def _refuse(self, *_arguments: object, **_named: object) -> NoReturn:
        """Refuses the calls of a writer."""
        root = self._found.root
        if self._closed:
            raise ClosedError(f"the store {root} was closed")
        raise ReadOnlyError(f"{root} was opened for reading", help="open it without read_only=True")

    put = append = new_records = raw_records = put_records = ensured = ensure = durable = _refuse
    put_batch_again = notify = ask = settle = listen = add_kinds = flush = _refuse

    def _keep(self, *_arguments: object) -> NoReturn:
        raise ReadOnlyError("a store that was opened for reading keeps what it has")

    trim = drop_topic = _keep


def _nothing() -> None:
    """The function to call on a change, until a caller sets another."""
