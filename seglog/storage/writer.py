"""The writing side of a store: log, queues, durability and what keeps them going in the background.

One lock orders all appends. Inside it nothing waits for a disk but the creation of files: the record and
its queue units are written in the same critical section, so a message is consumable when it is
acknowledged. Durability is awaited outside of the lock.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from seglog.clock import Clock
from seglog.errors import ClosedError, FullError, StoreFailedError
from seglog.storage.background import Background
from seglog.storage.batch_overlay import BatchQueueState
from seglog.storage.batch_queue import BatchQueue
from seglog.storage.checkpoint_file import write_checkpoint
from seglog.storage.commit_log import CommitLog
from seglog.storage.compaction_queue import CompactionQueue
from seglog.storage.compaction_writer import CompactionWriter
from seglog.storage.consume_queue import ConsumeQueue
from seglog.storage.files import Files
from seglog.storage.flush import GroupCommit
from seglog.storage.format.batch_consume_queue import BATCH_UNIT_BYTES
from seglog.storage.format.checkpoint import Checkpoint
from seglog.storage.format.compaction import CompactionSizes
from seglog.storage.format.consume_queue import CQ_UNIT_BYTES
from seglog.storage.format.index import IndexGeometry
from seglog.storage.format.names import ABORT_FILE, BATCH_CONSUME_QUEUE, COMMIT_LOG
from seglog.storage.geometry import StoreGeometry
from seglog.storage.index_opening import open_key_index
from seglog.storage.kernels.append import Draft
from seglog.storage.known_topics import TopicKinds
from seglog.storage.mapped_file import MapPool
from seglog.storage.order import Order
from seglog.storage.os_errors import explain_os_error, explained, is_passing
from seglog.storage.queue_files import queue_directory
from seglog.storage.queue_overlay import QueueState
from seglog.storage.recover import kept_log_files
from seglog.storage.sealer import Sealer
from seglog.storage.segments import Segments
from seglog.storage.survey import Survey
from seglog.storage.waiters import Waiters

LOG_STEP_BYTES = 16 << 20
QUEUE_STEP_BYTES = 64 << 10
INDEX_INTERVAL_MS = 200
_INDEX_LAG_BYTES = 64 << 20
"""How far the index may fall behind while messages keep coming."""
SEAL_INTERVAL_MS = 2000
_CHECKPOINT_ROUNDS = 2
"""The queues and the checkpoint follow every second flush of the log: each second by default."""

_writers: weakref.WeakSet[Writer] = weakref.WeakSet()


class Written(NamedTuple):
    """Where records went.

    Attributes:
        queue_offset: Of the first record.
        phy_offsets: Of each.
        store_timestamp_ms: Their store time.
        end_phy_offset: Where the log ended then; they are durable once it is up to there.
    """

    queue_offset: int
    phy_offsets: list[int]
    store_timestamp_ms: int
    end_phy_offset: int


class Writer:
    """A store that this process has the lock of."""

    def __init__(
        self,
        root: Path,
        geometry: StoreGeometry,
        found: Survey | None,
        files: Files,
        clock: Clock,
        waiters: Waiters,
        index_geometry: IndexGeometry | None,
        compaction_sizes: CompactionSizes | None,
    ) -> None:
        self._root = root
        self.geometry = geometry
        self._files = files
        self._clock = clock
        self._waiters = waiters
        self._pool = MapPool()
        self._append_lock = threading.Lock()
        self._flush_lock = threading.Lock()
        self._checkpoint = found.checkpoint if found is not None else Checkpoint()
        self._last_store_ms = (
            int(found.rows["store_timestamp_ms"][-1]) if found is not None and len(found.rows) else 0
        )
        self.log = CommitLog(
            Segments(
                files,
                root / COMMIT_LOG,
                geometry.segment_size_bytes,
                self._pool,
                step_bytes=min(LOG_STEP_BYTES, geometry.segment_size_bytes),
                first_offsets=kept_log_files(found) if found is not None else (),
            ),
            found.max_phy_offset if found is not None else 0,
            found.holes if found is not None else (),
        )
        self.holes = () if found is None else tuple(found.holes)
        self.log.mended = {} if found is None else found.mended
        # What a process that was killed wrote need not be on the disk, although it reads as if it were.
        self._is_synced = found is None or found.mode == "normal"
        self._queues: dict[tuple[str, int], ConsumeQueue] = {}
        for state in found.queues.values() if found is not None else ():
            self._queues[state.topic, state.queue_id] = self._open_queue(state)
        self._kinds = found.kinds if found is not None else TopicKinds()
        self._special_topics = self._kinds.special
        self._batch_queues = {
            key: self._open_batch_queue(batch)
            for key, batch in (found.batch_queues.items() if found is not None else ())
        }
        self._compaction = CompactionWriter(files, root, self._pool, self.log, compaction_sizes)
        if found is not None:
            self._compaction.open(found)
        self._commit = GroupCommit(self.log.sync, lambda: self.log.end_phy_offset, self.log.end_phy_offset)
        self._closed = False
        _writers.add(self)
        self.index, self.index_findings = open_key_index(
            files,
            root,
            self._pool,
            clock,
            found,
            geometry.segment_size_bytes,
            lambda: self.log.end_phy_offset,
            index_geometry,
        )
        self._flush_rounds = 0
        self._indexed_round_end = -1
        self._flusher = Background(clock, "seglog-flush", self._flush_round)
        self._indexer = Background(clock, "seglog-index", self._index_round)
        self._sealer = Sealer(
            files,
            root,
            clock,
            geometry.segment_size_bytes,
            self.log.min_phy_offset,
            lambda: self._commit.flushed,
        )

    def start_background(self, flush_interval_ms: int) -> None:
        """Starts the threads that bring ASYNC puts to the disk, keep the index near the log, and seal it."""
        self._flusher.start(flush_interval_ms)
        self._indexer.start(INDEX_INTERVAL_MS)
        self._sealer.start(SEAL_INTERVAL_MS)

    def queue(self, topic: str, queue_id: int) -> ConsumeQueue | BatchQueue | None:
        """Returns a queue that had a message."""
        return self._queues.get((topic, queue_id)) or self._batch_queues.get((topic, queue_id))

    def queues(self) -> list[ConsumeQueue | BatchQueue]:
        """Returns all queues."""
        return [*self._queues.values(), *self._batch_queues.values()]

    @property
    def compaction_topics(self) -> frozenset[str]:
        """Topics that are read from a log of their own."""
        return self._kinds.compaction

    def compaction_queue(self, topic: str, queue_id: int) -> CompactionQueue | None:
        """Returns a queue of such a topic."""
        return self._compaction.queues.get((topic, queue_id))

    def add_kinds(self, configured: TopicKinds) -> None:
        """Takes up the kinds of new topics; a topic that has plain queues does not get batch queues."""
        with self._append_lock:
            plain = {topic for topic, _queue_id in self._queues}
            self._kinds = TopicKinds(
                self._kinds.batch | (configured.batch - plain), self._kinds.compaction | configured.compaction
            )
            self._special_topics = self._kinds.special

    def is_batch_topic(self, topic: str) -> bool:
        """Returns whether a topic has batch queues."""
        return topic in self._kinds.batch

    def append(self, topic: str, queue_id: int, drafts: Sequence[Draft]) -> Written:
        """Appends records of one queue, all or none, in one file; they are readable, but not yet durable.

        Args:
            topic: Their topic.
            queue_id: Their queue.
            drafts: The records.

        Raises:
            FullError: No space; nothing was written.
            StoreError: The process may not open or map more files; nothing was written.
            StoreFailedError: A flush failed, now or earlier.
            StoreError: The machine lacked something else; nothing was written.
            ClosedError: The store was closed.
        """
        self._check_open()
        if topic in self._special_topics:
            return self.append_order(topic, queue_id, Order(lambda _first, _further: drafts))
        with self._append_lock:
            self._check_open()
            self._commit.check()
            queue = self._queues.get((topic, queue_id))
            if queue is None:
                queue = self._open_queue(QueueState.empty(topic, queue_id))
            size_bytes = placed = 0
            for draft in drafts:
                size_bytes += draft.size_bytes
                placed += draft.takes_queue_offset
            try:
                # Everything that can fail comes before anything is written.
                segment = self.log.prepare(size_bytes)
                pieces = queue.prepare(placed)
                if placed:
                    self._queues[topic, queue_id] = queue
                now_ms = self._clock.now_ms()
                first = queue.max_offset
                starts, units = self.log.write(segment, drafts, first, now_ms)
            except OSError as error:
                if not is_passing(error):
                    self._commit.fail(error)
                self._commit.check()
                raise explain_os_error(error) from error
            if units:
                queue.append(pieces, units)
            self._last_store_ms = now_ms
            end = self.log.end_phy_offset
        self._waiters.notify(topic, queue_id)
        return Written(first, starts, now_ms, end)

    def append_order(self, topic: str, queue_id: int, order: Order) -> Written:
        """Appends records that are finished here because they name queue offsets, or to batch queues.

        Args:
            topic: Their topic.
            queue_id: Their queue.
            order: What to append.

        Raises:
            As :meth:`append`, and whatever making the records raises.
        """
        with self._append_lock, ExitStack() as unused:
            self._check_open()
            self._commit.check()
            queue = self._queue_to_append(topic, queue_id, unused)
            further = {name: self._plain_queue(name, 0, unused) for name in order.further}
            first = queue.max_offset
            drafts = order.make(first, [further[name].max_offset for name in order.further])
            try:
                segment = self.log.prepare(sum(draft.size_bytes for draft in drafts))
                placed = sum(draft.takes_queue_offset for draft in drafts)
                pieces = queue.prepare(placed)
                further_pieces = [(each, each.prepare(placed)) for each in further.values()]
                is_compaction = topic in self._kinds.compaction
                compaction = self._compaction.prepare(topic, queue_id, drafts) if is_compaction else None
                now_ms = self._clock.now_ms()
                starts, units = self.log.write(segment, drafts, first, now_ms)
            except OSError as error:
                if not is_passing(error):
                    self._commit.fail(error)
                self._commit.check()
                raise explain_os_error(error) from error
            unused.pop_all()
            if units:
                if isinstance(queue, BatchQueue):
                    queue.append(pieces, units, now_ms, order.batch_size)
                    self._batch_queues[topic, queue_id] = queue
                else:
                    queue.append(pieces, units)
                    self._queues[topic, queue_id] = queue
                for each, room in further_pieces:
                    each.append(room, units)
                    self._queues[each.topic, each.queue_id] = each
            if compaction is not None:
                self._compaction.append(*compaction, units, first, now_ms)
            self._last_store_ms = now_ms
            end = self.log.end_phy_offset
        for name, number in ((topic, queue_id), *((name, 0) for name in further)):
            self._waiters.notify(name, number)
        return Written(first, starts, now_ms, end)

    def _queue_to_append(self, topic: str, queue_id: int, unused: ExitStack) -> ConsumeQueue | BatchQueue:
        if topic not in self._kinds.batch:
            return self._plain_queue(topic, queue_id, unused)
        queue = self._batch_queues.get((topic, queue_id))
        if queue is None:
            queue = self._open_batch_queue(BatchQueueState.empty(topic, queue_id))
            unused.callback(queue.close)
        return queue

    def _plain_queue(self, topic: str, queue_id: int, unused: ExitStack) -> ConsumeQueue:
        queue = self._queues.get((topic, queue_id))
        if queue is None:
            queue = self._open_queue(QueueState.empty(topic, queue_id))
            unused.callback(queue.close)
        return queue

    def ensure(self, phy_offset: int) -> None:
        """Returns once the log below ``phy_offset`` is on the disk.

        Raises:
            StoreFailedError: The disk failed, now or earlier.
        """
        self._commit.ensure(phy_offset)

    def flush(self) -> None:
        """Brings log, queues and checkpoint to the disk.

        Raises:
            StoreFailedError: The disk failed.
        """
        with self._flush_lock:
            newest_ms = self._last_store_ms
            self._commit.ensure(self.log.end_phy_offset)
            try:
                for queue in self.queues():
                    queue.sync()
                self._compaction.sync()
                if newest_ms > self._checkpoint.physic_timestamp_ms:
                    self._checkpoint = replace(
                        self._checkpoint,
                        physic_timestamp_ms=newest_ms,
                        logics_timestamp_ms=newest_ms,
                        index_timestamp_ms=self.index.full_timestamp_ms
                        or self._checkpoint.index_timestamp_ms,
                    )
                    write_checkpoint(self._files, self._root, self._checkpoint)
            except OSError as error:
                self._commit.fail(error)
        self._commit.check()

    def close(self) -> None:
        """Flushes everything and marks the stop as clean; only gives everything back after a failed flush."""
        if self._closed:
            return
        with self._append_lock:
            self._closed = True
        self._flusher.stop()
        self._indexer.stop()
        self._sealer.stop()
        self._waiters.notify_all()
        try:
            self._finish_index()
            self.flush()
            with explained():
                # A broker that our lock kept out removes the file when it gives up.
                with suppress(FileNotFoundError):
                    self._files.remove(self._root / ABORT_FILE)
                self._files.sync_dir(self._root)
        finally:
            for queue in self.queues():
                queue.close()
            self._compaction.close()
            self.index.close()
            self.log.close()

    def _finish_index(self) -> None:
        """Brings the index to the end of the log, so that RocketMQ finds every key after a clean stop."""
        try:
            self.index.catch_up()
            self.index.sync()
        except FullError:
            return  # the next open goes on where this ended
        except OSError as error:
            self._commit.fail(error)

    def _open_queue(self, state: QueueState) -> ConsumeQueue:
        size = self.geometry.queue_file_size_bytes
        start, end = state.first_slot * CQ_UNIT_BYTES, state.max_offset * CQ_UNIT_BYTES
        first_offsets = range(start - start % size, end, size) if len(state.units) else ()
        segments = Segments(
            self._files,
            self._root / queue_directory(state.topic, state.queue_id),
            size,
            self._pool,
            step_bytes=min(QUEUE_STEP_BYTES, size),
            first_offsets=first_offsets,
            are_names_synced=self._is_synced,
        )
        return ConsumeQueue(
            state.topic,
            state.queue_id,
            segments,
            min_offset=state.min_offset,
            max_offset=state.max_offset,
            max_phy_offset=state.max_phy_offset,
            synced_offset=state.max_offset if self._is_synced else state.first_slot,
        )

    def _open_batch_queue(self, state: BatchQueueState) -> BatchQueue:
        size = self.geometry.batch_file_size_bytes
        start = state.first_index * BATCH_UNIT_BYTES
        segments = Segments(
            self._files,
            self._root / queue_directory(state.topic, state.queue_id, BATCH_CONSUME_QUEUE),
            size,
            self._pool,
            step_bytes=min(QUEUE_STEP_BYTES, size),
            first_offsets=range(start, start + len(state.units) * BATCH_UNIT_BYTES, size),
            are_names_synced=self._is_synced,
        )
        synced = state.first_index + len(state.units) if self._is_synced else state.first_index
        return BatchQueue(state, segments, synced)

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"the store {self._root} was closed")

    def _flush_round(self) -> bool:
        self._flush_rounds += 1
        try:
            if self._flush_rounds % _CHECKPOINT_ROUNDS:
                self._commit.ensure(self.log.end_phy_offset)
            else:
                self.flush()
        except FullError:
            return True  # only the checkpoint needs space here, and it can wait
        except StoreFailedError:
            return False  # the latch holds the reason; every later put reports it
        return True

    def _index_round(self) -> bool:
        """Indexes what was put while nothing is put, or when it has become much."""
        end = self.log.end_phy_offset
        is_quiet, self._indexed_round_end = end == self._indexed_round_end, end
        try:
            if is_quiet or self.index.behind_bytes > _INDEX_LAG_BYTES:
                self.index.catch_up(lambda: self._indexer.is_stopping)
        except FullError:
            return True  # it catches up when there is space, or at the next open
        except OSError as error:
            self._commit.fail(error)
            return False
        return True


def _close_in_child() -> None:
    # A forked child shares the maps but not the lock: whatever it wrote would go through the parent's log.
    for writer in list(_writers):
        writer._closed = True


os.register_at_fork(after_in_child=_close_in_child)
