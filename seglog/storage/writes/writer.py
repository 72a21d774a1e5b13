"""The writing side of a store: its parts, and its life from the opening to the close.

:class:`~seglog.storage.writes.append_core.AppendCore` appends,
:class:`~seglog.storage.writes.growth.Growth` creates the files ahead of the appends; see
:mod:`seglog.storage.writes.lock_order` for the locks of all three. This module has durability, the background
threads, and the close.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from seglog.clock import Clock
from seglog.errors import FullError, InvalidArgumentError, StoreError, StoreFailedError
from seglog.forked import abandon_in_children
from seglog.logs import logger
from seglog.storage.directory.broker_topics import TopicKinds
from seglog.storage.directory.geometry import StoreGeometry
from seglog.storage.directory.queue_files import remove_topic_folders
from seglog.storage.files.files import Files
from seglog.storage.files.latch import Latch
from seglog.storage.files.os_errors import explained, is_passing
from seglog.storage.findings.findings import Finding
from seglog.storage.format.checkpoint import Checkpoint
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.names import ABORT_FILE, COMMIT_LOG
from seglog.storage.format.queue.compaction import CompactionSizes
from seglog.storage.format.record import RecordRow, takes_queue_offset
from seglog.storage.kernels.calls.tails import LogTail
from seglog.storage.log.commit_log import CommitLog
from seglog.storage.overlay.lost_messages import LostMessages
from seglog.storage.queues.queue_opening import QueueOpening
from seglog.storage.queues.queue_table import QueueKey
from seglog.storage.recovery.index_opening import open_key_index
from seglog.storage.recovery.recovery_points import PointKeeper
from seglog.storage.recovery.store_recovery import kept_log_files
from seglog.storage.seals.block_guard import BlockGuard
from seglog.storage.seals.sealer import Sealer
from seglog.storage.segments.mapped_file import MapPool
from seglog.storage.segments.segments import Segments
from seglog.storage.small_files.checkpoint_file import leave_to_rescan, write_checkpoint
from seglog.storage.survey.store_survey import Survey
from seglog.storage.threads.background import Background
from seglog.storage.threads.waiters import Waiters
from seglog.storage.threads.whole_steps import done_whole
from seglog.storage.walk.behind_damage import Hole
from seglog.storage.walk.log_scan import segment_holes
from seglog.storage.writes.append_core import AppendCore
from seglog.storage.writes.compaction_writer import CompactionWriter
from seglog.storage.writes.flush import GroupCommit
from seglog.storage.writes.growth import Growth
from seglog.storage.writes.lock_order import LockRank, new_lock
from seglog.storage.writes.log_trimmer import LogTrimmer, Trimmed
from seglog.storage.writes.open_flag import OpenFlag
from seglog.storage.writes.writer_queues import WriterQueues

_log = logger(__name__)
LOG_STEP_BYTES = 16 << 20
INDEX_INTERVAL_MS = 200
_INDEX_LAG_BYTES = 16 << 20
"""The index may fall behind the log by this much while messages keep coming."""
SEAL_INTERVAL_MS = 2000
POINT_INTERVAL_MS = 500
_CHECKPOINT_ROUNDS = 2
"""Queues and checkpoint are synced with every second flush of the log: once a second by default."""


class Writer:
    """A store whose lock this process holds: a :class:`~seglog.storage.store_base.StoreCore`.

    Attributes:
        read_only: False.
        geometry: Lengths of its files.
        log: Its log.
        queues: Its queues.
        holes: Unreadable stretches of the log.
        appends: Appends records.
        commit: Syncs the log.
        index: Its key index.
        index_findings: Findings of the opening of the index.
        trimmer: Deletes the front of the log.
        flush_lock: Held to sync queues and write the checkpoint, which it guards. Within it the
            locks of ``trimmer``, growth and appends may be taken, in their order.
        waiters: Threads and tasks that wait for queues to grow.
    """

    read_only = False

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
        self.waiters = waiters
        self._latch = latch
        self._open_flag = OpenFlag(root)
        self._changed: Callable[[], None] = _nothing
        self.flush_lock = new_lock(LockRank.FLUSH)
        self._checkpoint = Checkpoint() if found is None else found.checkpoint
        pool = MapPool()
        self.log = _open_log(files, root, geometry, found, pool)
        self.holes = () if found is None else tuple(found.holes)
        self._opening = QueueOpening(
            files,
            root,
            geometry,
            pool,
            # After a kill, units that read back well may be in the page cache only: sync them again.
            are_units_synced=found is None or found.mode == "normal",
            topics=() if found is None else {topic for topic, _ in (*found.queues, *found.batch_queues)},
        )
        self.queues = WriterQueues(self._opening, found)
        self._compaction = CompactionWriter(
            files, root, pool, self.log, compaction_sizes, self.queues.compaction
        )
        if found is not None:
            self._compaction.open(found)
        self.commit = GroupCommit(
            self.log.sync, lambda: self.log.end_phy_offset, self.log.end_phy_offset, latch
        )
        self._growth = Growth(self.log, self.queues, self._compaction, self.commit, latch, self._open_flag)
        self.appends = AppendCore(
            self.log, self.queues, self._compaction, self._growth, clock, waiters, latch, self._open_flag
        )
        abandon_in_children(self, Writer.abandon)
        tail = self.log.tail
        self.index, self.index_findings = open_key_index(
            files,
            root,
            pool,
            clock,
            found,
            geometry.segment_size_bytes,
            lambda: (tail.end_phy_offset, tail.keyed_end),
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
            log_end=self.appends.end,
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
            flush_lock=self.flush_lock,
            grow_lock=self._growth.grow_lock,
            log_lock=self._growth.log_lock,
            check_open=self._open_flag.check,
        )
        if self.log.guard is not None:
            self.log.guard.serve(self._is_placed, self._points.forget)
            self._check_unindexed(self.log.guard)

    def start_background(self, flush_interval_ms: int) -> None:
        """Starts the threads that flush, index and seal, and the one that writes recovery points, if any.

        From now on a thread also creates files of the log and of queues ahead of the appends.

        Args:
            flush_interval_ms: Time between two syncs of the log; every second one also syncs queues and
                checkpoint.
        """
        self._growth.start()
        self._flusher.start(flush_interval_ms)
        self._indexer.start(INDEX_INTERVAL_MS)
        self._sealer.start(SEAL_INTERVAL_MS)
        if self._has_points:
            self._points.start(POINT_INTERVAL_MS)

    @property
    def later_findings(self) -> tuple[Finding, ...]:
        """Findings of reads since the open, in parts of the log that the opening did not walk."""
        return () if self.log.guard is None else self.log.guard.findings

    def lost_in_gaps(self) -> tuple[LostMessages, ...]:
        """Returns nothing: the opening wrote tombstones for lost messages."""
        return ()

    def repairable(self, _topic: str, _queue_id: int) -> frozenset[int]:
        """Returns nothing: the opening mended all records that can be mended."""
        return frozenset()

    def leave_front(self) -> bool:
        """Returns False: no other process removes files of the log."""
        return False

    def refresh(self) -> int:
        """Returns 0: no other process writes."""
        return 0

    def indexed(self) -> tuple[int, int]:
        """Brings the key index to the end of the log, and returns its position.

        If space or descriptors are short, the index ends earlier, and queries read the log behind it.
        """
        try:
            self.index.catch_up()
        except FullError:
            return self.index.position
        except OSError as error:
            if not is_passing(error):
                raise
        return self.index.position

    def on_change(self, forget: Callable[[], None]) -> None:
        """Calls ``forget`` whenever queues may have been replaced, or their minimums have changed."""
        self._changed = forget

    def wait_for_any(self, queues: Mapping[QueueKey, int], timeout_ms: float) -> bool:
        """Waits until a queue grows beyond its offset; returns whether one did while the store is open."""
        has_any = self.waiters.wait(queues, lambda: self._has_any(queues), timeout_ms)
        return has_any and not self._open_flag.is_closed

    async def wait_for_any_async(self, queues: Mapping[QueueKey, int], timeout_ms: float) -> bool:
        """Waits as :meth:`wait_for_any` does, for a task."""
        has_any = await self.waiters.wait_async(queues, lambda: self._has_any(queues), timeout_ms)
        return has_any and not self._open_flag.is_closed

    def _has_any(self, queues: Mapping[QueueKey, int]) -> bool:
        if self._open_flag.is_closed:
            return True  # ends the wait; the callers turn it into False
        found = ((self.queues.find(*key), offset) for key, offset in queues.items())
        return any((0 if queue is None else queue.max_offset) > offset for queue, offset in found)

    def listen(self, topic: str, queue_id: int, wake: Callable[[], None]) -> None:
        """Calls ``wake`` after every put to a queue."""
        self.waiters.listen((topic, queue_id), wake)

    def unlisten(self, topic: str, queue_id: int, wake: Callable[[], None]) -> None:
        """Ends the calls that :meth:`listen` began."""
        self.waiters.unlisten((topic, queue_id), wake)

    def add_kinds(self, configured: TopicKinds) -> None:
        """Adds the kinds of new topics."""
        self.appends.add_kinds(configured)
        self._changed()

    def trim(self, phy_offset: int) -> Trimmed:
        """Deletes the files of the log that end at or below a place; see :meth:`LogTrimmer.trim`."""
        trimmed = self.trimmer.trim(phy_offset)
        self._changed()
        return trimmed

    def drop_topic(self, topic: str) -> int:
        """Deletes the queues of a topic, and returns their number; a new queue of the topic begins at 0.

        Raises:
            InvalidArgumentError: It is a compaction topic.
            StoreError: A file could not be deleted.
        """
        if topic in self.queues.kinds.compaction:
            raise InvalidArgumentError(
                f"{topic} is a compaction topic, which has a log of its own: it cannot be deleted",
                help="delete it while no broker has the store open, and the folder compaction/ with it",
            )
        # The locks keep other threads from syncing or creating files of these queues meanwhile: a new queue
        # of the topic has the same file names.
        with self.flush_lock, self._growth.grow_lock, explained():
            self._points.forget()  # first: a recovery point cannot record that a topic was dropped
            dropped = self.appends.drop(topic)
            self._growth.forget(topic)
            for queue in dropped:
                queue.remove_files()
            remove_topic_folders(self._files, self._root, topic)
        self._changed()
        return len(dropped)

    def flush(self) -> None:
        """Syncs log and queues, then writes the checkpoint.

        Raises:
            StoreFailedError: The disk failed, now or earlier.
            FullError: No space for the checkpoint.
            StoreError: The machine lacked something.
        """
        with self.flush_lock:
            # Read before the syncs: the checkpoint must not cover a message that comes during them.
            newest_ms = self.log.tail.last_store_ms
            # The log first: a synced unit must lead to a synced record.
            self.commit.ensure(self.log.end_phy_offset)
            with self._latch.failing("syncing queues and checkpoint"):
                for queue in self.queues:
                    queue.sync()
                self._opening.folders.sync()
                self._compaction.sync()
                # The checkpoint last: RocketMQ begins its recovery by it, so everything that it covers must
                # be on the disk. A crash before it only makes the next walk longer.
                # Also backward, where the clock was ahead for a while: it would cover what is not synced.
                if newest_ms and newest_ms != self._checkpoint.physic_timestamp_ms:
                    indexed_ms = self.index.full_timestamp_ms or self._checkpoint.index_timestamp_ms
                    checkpoint = replace(
                        self._checkpoint,
                        physic_timestamp_ms=newest_ms,
                        logics_timestamp_ms=newest_ms,
                        index_timestamp_ms=min(indexed_ms, newest_ms),
                    )
                    write_checkpoint(self._files, self._root, checkpoint)
                    self._checkpoint = checkpoint
        self._latch.check()

    def abandon(self) -> None:
        """Stops all writes in a forked child.

        The child shares the maps but not the store's lock: its writes would overwrite the parent's files.
        """
        self._latch.abandon()
        self.appends.abandon()

    def close(self) -> None:
        """Flushes everything and marks the stop as clean; after a failure only closes files and threads."""
        if self._open_flag.is_closed:
            return
        # All of it, also after an interrupt: no thread may write to the files once the lock is released.
        done_whole(self._stop)
        try:
            self._latch.check()
            self._finish_index()
            self.flush()
            with self._growth.grow_lock, self._growth.log_lock, explained():
                self.log.remove_unused()
                if self._has_points:
                    self._points.finish()
                # If a sync of a background thread failed, the stop is not clean: the abort file stays.
                self._latch.check()
                # The abort file last: while it exists, the next open recovers as after a crash. A broker that
                # our lock kept out may have removed it when it gave up.
                if self.index.lacks_keys:
                    leave_to_rescan(self._files, self._root)
                else:
                    with suppress(FileNotFoundError):
                        self._files.remove(self._root / ABORT_FILE)
                self._files.sync_dir(self._root)
        finally:
            self.commit.close()
            with self._growth.grow_lock, self._growth.log_lock:
                for queue in (*self.queues, *self.queues.new.values()):
                    queue.close()
                self._compaction.close()
                self.index.close()
                self.log.close()

    def _stop(self) -> None:
        """Refuses appends, then ends the threads: what the final flush syncs does not grow any more."""
        self.appends.close()
        self._growth.stop()
        self._flusher.stop()
        self._indexer.stop()
        self._sealer.stop()
        self._points.stop()
        self.waiters.notify_all()  # their calls return now, instead of at their timeouts
        self.trimmer.wait()

    def _is_placed(self, record: RecordRow, phy_offset: int) -> bool:
        """Returns whether a record's queue unit leads to it; True for a record that takes no offset."""
        if not takes_queue_offset(record.sys_flag):
            return True
        queue = self.queues.plain.get((record.topic.decode("utf-8", "replace"), record.queue_id))
        if queue is None or not queue.min_offset <= record.queue_offset < queue.max_offset:
            return False
        return int(queue.units(record.queue_offset, 1)["phy_offset"][0]) == phy_offset

    def _check_unindexed(self, guard: BlockGuard) -> None:
        """Looks for damage between the position of the index and the start of the opening's walk."""
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
        except FullError as error:
            self._note_unindexed(error)
        except OSError as error:
            if not is_passing(error):
                self._latch.fail(error, "writing the index")
            self._note_unindexed(error)

    def _note_unindexed(self, error: Exception) -> None:
        """Logs that keys are missing in the index; the next open continues at the same position."""
        _log.warning(
            "the keys of the last %s bytes of the log are not in the index: %s; the next open puts them"
            " there, until then RocketMQ does not find them",
            self.index.behind_bytes,
            error,
        )

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
            return True  # space or descriptors are short: the next round writes the checkpoint
        return True

    def _index_round(self) -> bool:
        """Indexes new messages when no put came since the last round, or when the index is far behind."""
        end = self.log.end_phy_offset
        is_quiet, self._indexed_round_end = end == self._indexed_round_end, end
        try:
            while (is_quiet or self.index.behind_bytes > _INDEX_LAG_BYTES) and not self._indexer.is_stopping:
                is_quiet = False
                self.index.catch_up(lambda: self._indexer.is_stopping)
        except FullError:
            return True  # it catches up when there is space, or at the next open
        except StoreError:
            return False  # the latch closed, or the log was cut: appends raise it
        except OSError as error:
            if is_passing(error):
                return True
            self._latch.fail(error, "writing the index")
            return False
        return True


def _open_log(
    files: Files, root: Path, geometry: StoreGeometry, found: Survey | None, pool: MapPool
) -> CommitLog:
    step_bytes = min(LOG_STEP_BYTES, geometry.segment_size_bytes)
    segments = Segments(
        files,
        root / COMMIT_LOG,
        geometry.segment_size_bytes,
        pool,
        step_bytes=step_bytes,
        first_offsets=() if found is None else kept_log_files(found),
    )
    if found is None:
        return CommitLog(segments, LogTail(0, -1, 0, 0), (), step_bytes)
    scan = found.scan
    tail = LogTail(found.max_phy_offset, scan.last_phy_offset, scan.last_store_ms, found.newest_store_ms)
    log = CommitLog(segments, tail, found.holes, step_bytes, found.guard)
    log.mended = found.mended
    return log


def _nothing() -> None:
    """The function to call on a change, until a caller sets another."""
