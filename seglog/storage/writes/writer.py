"""The writing side of a store: log, queues, durability and what keeps them going in the background.

One lock orders all appends. Inside it nothing waits for a disk: the record and its queue units are written
into memory in the same critical section, so a message is consumable when it is acknowledged. Where a file
or space is missing, the append steps out, makes it under a lock for that alone, and tries again; space, the
log's next file and those of fast queues are made ahead by a thread. Durability is awaited outside of all
locks. Lock order: growing queues, growing the log, append; nothing of the disk inside append.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from seglog.clock import Clock
from seglog.errors import (
    ClosedError,
    FullError,
    InvalidArgumentError,
    StoreError,
    StoreFailedError,
    TruncatedError,
)
from seglog.storage.compaction.queue import CompactionQueue
from seglog.storage.directory.geometry import StoreGeometry
from seglog.storage.directory.known_topics import TopicKinds
from seglog.storage.directory.queue_files import remove_topic_folders
from seglog.storage.files.files import Files
from seglog.storage.files.latch import Latch
from seglog.storage.files.os_errors import explain_os_error, explained, is_passing
from seglog.storage.format.checkpoint import Checkpoint
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.names import (
    ABORT_FILE,
    COMMIT_LOG,
    MAX_TOPIC_BYTES,
    SCHEDULE_TOPIC,
)
from seglog.storage.format.queue.compaction import CompactionSizes
from seglog.storage.format.record.record import RecordRow
from seglog.storage.format.record.sys_flag import takes_queue_offset
from seglog.storage.kernels.fast_path import FastPath
from seglog.storage.kernels.pending_record import PendingRecord
from seglog.storage.kernels.tails import LogTail
from seglog.storage.log.commit_log import CommitLog
from seglog.storage.overlay.batch_overlay import BatchQueueState
from seglog.storage.overlay.queue_overlay import QueueState
from seglog.storage.queues.batch_queue import BatchQueue
from seglog.storage.queues.consume_queue import ConsumeQueue
from seglog.storage.queues.queue_opening import QueueOpening
from seglog.storage.recovery.index_opening import open_key_index
from seglog.storage.recovery.recover import kept_log_files
from seglog.storage.recovery.recovery_points import LogEnd, PointKeeper
from seglog.storage.seals.block_guard import BlockGuard
from seglog.storage.seals.sealer import Sealer
from seglog.storage.segments.mapped_file import MapPool
from seglog.storage.segments.segments import Segments
from seglog.storage.small_files.checkpoint_file import write_checkpoint
from seglog.storage.survey.survey import Survey
from seglog.storage.threads.background import Background
from seglog.storage.threads.on_demand import OnDemand
from seglog.storage.threads.waiters import Waiters
from seglog.storage.walk.log_scan import Hole, segment_holes
from seglog.storage.writes.compaction_writer import CompactionWriter
from seglog.storage.writes.deferred_records import Order
from seglog.storage.writes.flush import Durability, GroupCommit
from seglog.storage.writes.log_trimmer import LogTrimmer
from seglog.storage.writes.values import BatchResult, PutResult

LOG_STEP_BYTES = 16 << 20
INDEX_INTERVAL_MS = 200
_INDEX_LAG_BYTES = 16 << 20
"""How far the index may fall behind while messages keep coming."""
SEAL_INTERVAL_MS = 2000
POINT_INTERVAL_MS = 500
_CHECKPOINT_ROUNDS = 2
"""The queues and the checkpoint follow every second flush of the log: each second by default."""

_writers: weakref.WeakSet[Writer] = weakref.WeakSet()


_MOST_FAST_QUEUES = 64
"""So many queues have their files made ahead, those that became fast last."""


class WouldWaitError(Exception):
    """An append needs a file or space first, and may not wait for the disk."""


class _Need(NamedTuple):
    """What an append needs room for: bytes in the log, units in its queues."""

    size_bytes: int
    placed: int


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
        latch: Latch,
        *,
        recovery_step_bytes: int,
        mark: Callable[[], None],
    ) -> None:
        """Serves a recovered store; ``files`` are behind ``latch``."""
        self._root = root
        self.geometry = geometry
        self._files = files
        self._clock = clock
        self.waiters = waiters
        self._pool = MapPool()
        self._latch = latch
        self.append_lock = threading.Lock()
        self._grow_lock = threading.Lock()
        self._log_lock = threading.Lock()
        self._flush_lock = threading.Lock()
        self._ahead = OnDemand("seglog-ahead", self._grow_ahead)
        self._checkpoint = found.checkpoint if found is not None else Checkpoint()
        self._tail = LogTail(0, -1, 0, 0) if found is None else _tail_of(found)
        step_bytes = min(LOG_STEP_BYTES, geometry.segment_size_bytes)
        self.log = CommitLog(
            Segments(
                files,
                root / COMMIT_LOG,
                geometry.segment_size_bytes,
                self._pool,
                step_bytes=step_bytes,
                first_offsets=kept_log_files(found) if found is not None else (),
            ),
            self._tail,
            found.holes if found is not None else (),
            step_bytes,
            found.guard if found is not None else None,
        )
        self.holes = () if found is None else tuple(found.holes)
        self.log.mended = {} if found is None else found.mended
        # What a process that was killed wrote need not be on the disk, although it reads as if it were.
        is_synced = found is None or found.mode == "normal"
        self._opening = QueueOpening(
            files,
            root,
            geometry,
            self._pool,
            are_units_synced=is_synced,
            topics=() if found is None else {topic for topic, _ in (*found.queues, *found.batch_queues)},
        )
        self._queues: dict[tuple[str, int], ConsumeQueue] = {}
        self._fast_queues: dict[tuple[str, int], ConsumeQueue] = {}
        self._new: dict[tuple[str, int], ConsumeQueue | BatchQueue] = {}
        for state in found.queues.values() if found is not None else ():
            self._queues[state.topic, state.queue_id] = self._opening.queue(state)
        self._kinds = found.kinds if found is not None else TopicKinds()
        self._special_topics = self._kinds.special
        self._batch_queues = {
            key: self._opening.batch_queue(batch)
            for key, batch in (found.batch_queues.items() if found is not None else ())
        }
        self._compaction = CompactionWriter(files, root, self._pool, self.log, compaction_sizes)
        if found is not None:
            self._compaction.open(found)
        self.commit = GroupCommit(
            self.log.sync, lambda: self.log.end_phy_offset, self.log.end_phy_offset, latch
        )
        self._closed = False
        self._fast_paths: list[FastPath[PutResult, BatchResult, Durability]] = []
        latch.on_close(self._close_fast_paths)
        _writers.add(self)
        self.index, self.index_findings = open_key_index(
            files,
            root,
            self._pool,
            clock,
            found,
            geometry.segment_size_bytes,
            lambda: (self._tail.end_phy_offset, self._tail.keyed_end),
            index_geometry,
            keeps_removed=True,
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
            lambda: self.commit.flushed,
        )
        self._points = PointKeeper(
            files,
            root,
            clock,
            geometry,
            found,
            recovery_step_bytes,
            log_end=self._log_end,
            flush=self.flush,
            queues=self.queues,
            indexed=lambda: self.index.position,
            mark=mark,
        )
        self._has_points = recovery_step_bytes > 0
        self.trimmer = LogTrimmer(
            files,
            root,
            self.log,
            self.queues,
            self.index,
            self._sealer,
            self._points,
            flush=self.flush,
            flush_lock=self._flush_lock,
            grow_lock=self._grow_lock,
            log_lock=self._log_lock,
            check_open=self._check_open,
        )
        if self.log.guard is not None:
            self.log.guard.serve(self._is_placed, self._points.forget)
            self._check_unindexed(self.log.guard)

    def start_background(self, flush_interval_ms: int) -> None:
        """Starts the threads that bring ASYNC puts to the disk, keep the index near the log, and seal it.

        From now on the log's next file is made ahead as well.
        """
        self.log.wake_allocator_with(self._ahead.ask)
        self._flusher.start(flush_interval_ms)
        self._indexer.start(INDEX_INTERVAL_MS)
        self._sealer.start(SEAL_INTERVAL_MS)
        if self._has_points:
            self._points.start(POINT_INTERVAL_MS)

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
        with self.append_lock, self._tail:
            plain = {topic for topic, _queue_id in self._queues}
            self._kinds = TopicKinds(
                self._kinds.batch | (configured.batch - plain), self._kinds.compaction | configured.compaction
            )
            self._special_topics = self._kinds.special
            for fast_path in self._fast_paths:
                fast_path.forget()

    def drop_topic(self, topic: str) -> int:
        """Deletes the queues of a topic; a queue that is made anew begins at 0. Returns how many there were.

        Raises:
            InvalidArgumentError: It is a compaction topic.
            StoreError: A file could not be deleted.
        """
        if topic in self._kinds.compaction:
            raise InvalidArgumentError(
                f"{topic} is a compaction topic, which has a log of its own: it cannot be deleted",
                help="delete it while no broker has the store open, and the folder compaction/ with it",
            )
        # Nobody syncs or makes files of these queues meanwhile: a new queue has the same names.
        with self._flush_lock, self._grow_lock, explained():
            self._points.forget()  # a point cannot say that a topic is gone
            with self.append_lock, self._tail:
                self._check_open()
                dropped = [queue for queue in self.queues() if queue.topic == topic]
                for table in (self._queues, self._batch_queues, self._new, self._fast_queues):
                    for queue_id in [number for name, number in table if name == topic]:
                        del table[topic, queue_id]
                self._kinds = TopicKinds(self._kinds.batch - {topic}, self._kinds.compaction)
                self._special_topics = self._kinds.special
                for fast_path in self._fast_paths:
                    fast_path.forget()
            for queue in dropped:
                queue.remove_files()
            remove_topic_folders(self._files, self._root, topic)
        return len(dropped)

    def is_batch_topic(self, topic: str) -> bool:
        """Returns whether a topic has batch queues."""
        return topic in self._kinds.batch

    def serve(self, fast_path: FastPath[PutResult, BatchResult, Durability]) -> None:
        """Lets a fast path append from now on, as long as the store is open and sound."""
        with self.append_lock, self._tail:
            if self._closed or self._latch.is_closed:
                fast_path.close()
            else:
                self._fast_paths.append(fast_path)

    def grant(self, topic: str, queue_id: int) -> None:
        """Grants the fast paths the files where the next message of a queue goes, if it is a plain one."""
        with self.append_lock, self._tail:
            queue = self._queues.get((topic, queue_id))
            if self._closed or queue is None or not self._is_plain(topic):
                return
            self.log.grant()
            queue.grant()
            for fast_path in self._fast_paths:
                fast_path.add(topic, queue_id, queue.tail)

    def _is_plain(self, topic: str) -> bool:
        """Returns whether records of a topic need nothing that other records do not."""
        return topic not in self._special_topics and topic != SCHEDULE_TOPIC and len(topic) <= MAX_TOPIC_BYTES

    def _close_fast_paths(self) -> None:
        for fast_path in self._fast_paths:
            fast_path.close()

    def append(
        self, topic: str, queue_id: int, drafts: Sequence[PendingRecord], may_wait: bool = True
    ) -> Written:
        """Appends records of one queue, all or none, in one file; they are readable, but not yet durable.

        Args:
            topic: Their topic.
            queue_id: Their queue.
            drafts: The records.
            may_wait: Whether to make files and space where they are missing, which may wait for the disk.

        Raises:
            FullError: No space; nothing was written.
            StoreError: The process may not open or map more files; nothing was written.
            StoreFailedError: A flush failed, now or earlier.
            StoreError: The machine lacked something else; nothing was written.
            ClosedError: The store was closed.
            WouldWaitError: It may not wait, but would have to; nothing was written.
        """
        self._check_open()
        if topic in self._special_topics:
            return self.append_order(topic, queue_id, Order(lambda _first, _further: drafts), may_wait)
        key = topic, queue_id
        with self.append_lock, self._tail:
            written = self._try_append(key, drafts)
        if not isinstance(written, Written):
            if not may_wait:
                raise WouldWaitError
            written = self._grow_and_try((key,), written, lambda: self._try_append(key, drafts))
        self._publish_soon(key)
        self.waiters.notify(topic, queue_id)
        return written

    def append_order(self, topic: str, queue_id: int, order: Order, may_wait: bool = True) -> Written:
        """Appends records that are finished here because they name queue offsets, or to batch queues.

        Args:
            topic: Their topic.
            queue_id: Their queue.
            order: What to append.
            may_wait: As in :meth:`append`; files of compaction topics cannot be made without.

        Raises:
            As :meth:`append`, and whatever making the records raises.
        """
        if not may_wait:
            raise WouldWaitError
        keys = ((topic, queue_id), *((name, 0) for name in order.further))
        with self.append_lock, self._tail:
            written = self._try_order(keys, order)
        if not isinstance(written, Written):
            written = self._grow_and_try(keys, written, lambda: self._try_order(keys, order))
        for key in keys:
            self._publish_soon(key)
        for key in keys:
            self.waiters.notify(*key)
        return written

    def _publish_soon(self, key: tuple[str, int]) -> None:
        """Has the file named that a queue went on to, if it was made ahead."""
        queue = self._queues.get(key)
        if queue is not None and queue.is_staging:
            self._ahead.ask()

    def _try_append(self, key: tuple[str, int], drafts: Sequence[PendingRecord]) -> Written | _Need:
        """Appends under the append lock, or returns what it needs to."""
        self._check_open()
        self._latch.check()
        queue = self._queues.get(key) or self._new.get(key)
        size_bytes = placed = 0
        for draft in drafts:
            size_bytes += draft.size_bytes
            placed += draft.takes_queue_offset
        try:
            # Everything that can fail comes before anything is written.
            pieces = None if queue is None else queue.room(placed)
            if pieces is None and placed:
                return _Need(size_bytes, placed)
            segment = self.log.room(size_bytes)
            if segment is None:
                return _Need(size_bytes, placed)
        except (OSError, TruncatedError) as error:
            raise self._explained(error) from error
        now_ms = self._clock.now_ms()
        first = 0 if queue is None else queue.max_offset
        starts, units = self.log.write(segment, drafts, first, now_ms)
        if units and pieces is not None and isinstance(queue, ConsumeQueue):
            queue.append(pieces, units)
            if key in self._new:
                self._queues[key] = queue
                del self._new[key]
        self._tail.last_store_ms = now_ms
        self._tail.newest_store_ms = max(self._tail.newest_store_ms, now_ms)
        return Written(first, starts, now_ms, self.log.end_phy_offset)

    def _try_order(self, keys: Sequence[tuple[str, int]], order: Order) -> Written | _Need:
        """Appends under the append lock, or returns what it needs to."""
        self._check_open()
        self._latch.check()
        (topic, queue_id), queues = keys[0], [self._known(key) for key in keys]
        offsets = [0 if queue is None else queue.max_offset for queue in queues]
        drafts = order.make(offsets[0], offsets[1:])
        need = _Need(
            sum(draft.size_bytes for draft in drafts), sum(draft.takes_queue_offset for draft in drafts)
        )
        is_compaction = topic in self._kinds.compaction
        with self._failing():
            pieces = [None if queue is None else queue.room(need.placed) for queue in queues]
            if need.placed and None in pieces:
                return need
            # Its files are made under the lock: such a topic needs few, and they are long.
            compaction = self._compaction.prepare(topic, queue_id, drafts) if is_compaction else None
            segment = self.log.room(need.size_bytes)
            if segment is None:
                return need
            now_ms = self._clock.now_ms()
            starts, units = self.log.write(segment, drafts, offsets[0], now_ms)
        for key, queue, room in zip(keys, queues, pieces, strict=True):
            if not units or queue is None or room is None:
                continue
            if isinstance(queue, BatchQueue):
                queue.append(room, units, now_ms, order.batch_size)
                self._batch_queues[key] = queue
            else:
                queue.append(room, units)
                self._queues[key] = queue
            self._new.pop(key, None)
        if compaction is not None:
            self._compaction.append(*compaction, units, offsets[0], now_ms)
        self._tail.last_store_ms = now_ms
        self._tail.newest_store_ms = max(self._tail.newest_store_ms, now_ms)
        return Written(offsets[0], starts, now_ms, self.log.end_phy_offset)

    def _grow_and_try(
        self, keys: Sequence[tuple[str, int]], need: _Need, attempt: Callable[[], Written | _Need]
    ) -> Written:
        """Makes room and tries to append, until nobody else took the room before."""
        written: Written | _Need = need
        while not isinstance(written, Written):
            self._grow(keys, written)
            with self.append_lock, self._tail:
                written = attempt()
        for key in keys:
            queue = self.queue(*key)
            if queue is not None and queue.is_staging:
                with suppress(OSError, FullError, StoreFailedError):  # the next sync tries again, and tells
                    queue.publish()
        return written

    def _grow(self, keys: Sequence[tuple[str, int]], need: _Need) -> None:
        """Makes files and space; only those wait who need some, and nobody behind the append lock."""
        with self._grow_lock:
            self._check_open()
            self._latch.check()
            try:
                with self._failing():
                    for key in keys if need.placed else ():
                        self._grow_queue(self._known(key) or self._make_queue(key), need.placed)
                    if not self.log.has_room(need.size_bytes):
                        with self._log_lock:
                            self.log.grow(need.size_bytes)
            except StoreError:
                self._drop_new(keys)
                raise

    def _grow_queue(self, queue: ConsumeQueue | BatchQueue, count: int) -> None:
        queue.grow(count)
        if isinstance(queue, ConsumeQueue) and queue.grows_fast:
            self._fast_queues[queue.topic, queue.queue_id] = queue
            if len(self._fast_queues) > _MOST_FAST_QUEUES:
                del self._fast_queues[next(iter(self._fast_queues))]

    def _grow_ahead(self) -> None:
        with self._log_lock:
            if self._closed or self._latch.is_closed:
                return
            try:
                self.log.grow_ahead()
            except OSError as error:
                if not is_passing(error):
                    self._latch.fail(error, "making a file of the log")
            except StoreError:
                return  # the append that it was for says the same
        for queue in list(self._fast_queues.values()):
            # An append that finds no room, or a sync, says what is wrong.
            with suppress(OSError, StoreError), self._grow_lock:
                is_there = self._fast_queues.get((queue.topic, queue.queue_id)) is queue
                if is_there and not self._closed:
                    queue.grow_ahead()
            if queue.is_staging:
                with suppress(OSError, StoreError):
                    queue.publish()
        # Without the lock: it touches nothing that growing does.
        with suppress(OSError, StoreError):  # as above
            self.log.warm_ahead(self.commit.flushed)

    def _known(self, key: tuple[str, int]) -> ConsumeQueue | BatchQueue | None:
        return self.queue(*key) or self._new.get(key)

    def _make_queue(self, key: tuple[str, int]) -> ConsumeQueue | BatchQueue:
        """Makes a queue that is not served before its first message."""
        queue: ConsumeQueue | BatchQueue
        if key[0] in self._kinds.batch:
            queue = self._opening.batch_queue(BatchQueueState.empty(*key))
        else:
            queue = self._opening.queue(QueueState.empty(*key))
        self._new[key] = queue
        return queue

    def _drop_new(self, keys: Sequence[tuple[str, int]]) -> None:
        """Takes away what was made for queues that cannot have their first message now."""
        with self.append_lock, self._tail:
            dropped = [self._new.pop(key) for key in keys if key in self._new]
        for queue in dropped:
            queue.close()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Raises what the disk did to the block as the error that explains it."""
        try:
            yield
        except (OSError, TruncatedError) as error:
            raise self._explained(error) from error

    def _explained(self, error: OSError | TruncatedError) -> StoreError:
        """Returns what to raise; closes the latch unless the machine only lacked something for a moment."""
        if isinstance(error, OSError) and is_passing(error):
            return self._latch.error() if self._latch.is_closed else explain_os_error(error)
        self._latch.fail(error, "making room for a message" if isinstance(error, OSError) else "writing")
        return self._latch.error()

    def ensure(self, phy_offset: int) -> None:
        """Returns once the log below ``phy_offset`` is on the disk.

        Raises:
            StoreFailedError: The disk failed, now or earlier.
        """
        self.commit.ensure(phy_offset)

    def flush(self) -> None:
        """Brings log, queues and checkpoint to the disk.

        Raises:
            StoreFailedError: The disk failed, now or earlier.
            FullError: No space for the checkpoint.
            StoreError: The machine lacked something.
        """
        with self._flush_lock:
            newest_ms = self._tail.last_store_ms
            self.commit.ensure(self.log.end_phy_offset)
            with self._failing():
                for queue in self.queues():
                    queue.sync()
                self._opening.folders.sync()
                self._compaction.sync()
                if newest_ms > self._checkpoint.physic_timestamp_ms:
                    checkpoint = replace(
                        self._checkpoint,
                        physic_timestamp_ms=newest_ms,
                        logics_timestamp_ms=newest_ms,
                        index_timestamp_ms=self.index.full_timestamp_ms
                        or self._checkpoint.index_timestamp_ms,
                    )
                    write_checkpoint(self._files, self._root, checkpoint)
                    self._checkpoint = checkpoint
        self._latch.check()

    def close(self) -> None:
        """Flushes everything and marks the stop as clean; only gives everything back after a failure."""
        if self._closed:
            return
        with self.append_lock, self._tail:
            self._closed = True
            self._close_fast_paths()
        self._ahead.stop()
        self._flusher.stop()
        self._indexer.stop()
        self._sealer.stop()
        self._points.stop()
        self.waiters.notify_all()
        self.trimmer.wait()
        try:
            self._latch.check()
            self._finish_index()
            self.flush()
            with self._grow_lock, self._log_lock, explained():
                self.log.remove_unused()
                if self._has_points:
                    self._points.finish()
                # Whoever met a failed sync and went on without it: the stop is clean only if none was.
                self._latch.check()
                # A broker that our lock kept out removes the file when it gives up.
                with suppress(FileNotFoundError):
                    self._files.remove(self._root / ABORT_FILE)
                self._files.sync_dir(self._root)
        finally:
            self.commit.close()
            with self._grow_lock, self._log_lock:
                for queue in (*self.queues(), *self._new.values()):
                    queue.close()
                self._compaction.close()
                self.index.close()
                self.log.close()

    def _log_end(self) -> LogEnd:
        with self.append_lock, self._tail:
            return LogEnd(
                self.log.end_phy_offset,
                self.log.last_phy_offset,
                self._tail.last_store_ms,
                self._tail.newest_store_ms,
            )

    def _is_placed(self, record: RecordRow, phy_offset: int) -> bool:
        """Returns whether the queue that a record names leads to it, as far as it has a place in one."""
        if not takes_queue_offset(record.sys_flag):
            return True
        queue = self._queues.get((record.topic.decode("utf-8", "replace"), record.queue_id))
        if queue is None or not queue.min_offset <= record.queue_offset < queue.max_offset:
            return False
        return int(queue.units(record.queue_offset, 1)["phy_offset"][0]) == phy_offset

    def _check_unindexed(self, guard: BlockGuard) -> None:
        """Looks for damage where the index must go on below what opening walked."""
        start = self.index.next_phy_offset
        segment = self.geometry.segment_size_bytes
        holes: list[Hole] = []
        for first in guard.damaged_segments(start, guard.end_phy_offset):
            holes += segment_holes(self._files, self._root, first, segment, guard.end_phy_offset)
        if holes:
            self.holes = (*self.holes, *holes)
            self.index.step_over(holes)

    def _finish_index(self) -> None:
        """Brings the index to the end of the log, so that RocketMQ finds every key after a clean stop."""
        try:
            self.index.catch_up()
            self.index.sync()
        except FullError:
            return  # the next open goes on where this ended
        except OSError as error:
            self._latch.fail(error, "writing the index")

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"the store {self._root} was closed")

    def _flush_round(self) -> bool:
        self._flush_rounds += 1
        try:
            if self._flush_rounds % _CHECKPOINT_ROUNDS:
                self.commit.ensure(self.log.end_phy_offset)
            else:
                self.flush()
        except StoreFailedError:
            return False  # the latch holds the reason; every later put reports it
        except StoreError:
            return True  # the checkpoint needs space, or descriptors, and can wait for them
        return True

    def _index_round(self) -> bool:
        """Indexes what was put while nothing is put, or when it has become much."""
        end = self.log.end_phy_offset
        is_quiet, self._indexed_round_end = end == self._indexed_round_end, end
        try:
            while (is_quiet or self.index.behind_bytes > _INDEX_LAG_BYTES) and not self._indexer.is_stopping:
                is_quiet = False
                self.index.catch_up(lambda: self._indexer.is_stopping)
        except FullError:
            return True  # it catches up when there is space, or at the next open
        except StoreError:
            return False  # the latch closed, or the log was cut: appends say so
        except OSError as error:
            if is_passing(error):
                return True
            self._latch.fail(error, "writing the index")
            return False
        return True


def _tail_of(found: Survey) -> LogTail:
    scan = found.scan
    return LogTail(found.max_phy_offset, scan.last_phy_offset, scan.last_store_ms, found.newest_store_ms)


def _close_in_child() -> None:
    # A forked child shares the maps but not the lock: whatever it wrote would go through the parent's log.
    for writer in list(_writers):
        writer._closed = True
        writer._close_fast_paths()


os.register_at_fork(after_in_child=_close_in_child)
