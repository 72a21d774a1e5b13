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
from dataclasses import replace
from pathlib import Path

from seglog.clock import Clock
from seglog.errors import ClosedError, FullError, StoreFailedError
from seglog.storage.checkpoint_file import write_checkpoint
from seglog.storage.commit_log import CommitLog
from seglog.storage.consume_queue import ConsumeQueue
from seglog.storage.files import Files
from seglog.storage.flush import Durability, GroupCommit
from seglog.storage.format.checkpoint import Checkpoint
from seglog.storage.format.consume_queue import CQ_UNIT_BYTES
from seglog.storage.format.names import ABORT_FILE, COMMIT_LOG
from seglog.storage.geometry import StoreGeometry
from seglog.storage.kernels.append import Draft
from seglog.storage.mapped_file import MapPool
from seglog.storage.queue_files import queue_directory
from seglog.storage.queue_overlay import QueueState
from seglog.storage.recover import kept_log_files
from seglog.storage.segments import Segments
from seglog.storage.survey import Survey
from seglog.storage.waiters import Waiters

LOG_STEP_BYTES = 16 << 20
QUEUE_STEP_BYTES = 64 << 10
_CHECKPOINT_ROUNDS = 2
"""The queues and the checkpoint follow every second flush of the log: each second by default."""

_writers: weakref.WeakSet[Writer] = weakref.WeakSet()


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
    ) -> None:
        self._root = root
        self._geometry = geometry
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
        self._queues: dict[tuple[str, int], ConsumeQueue] = {}
        for state in found.queues.values() if found is not None else ():
            self._queues[state.topic, state.queue_id] = self._open_queue(state)
        self._commit = GroupCommit(self.log.sync, lambda: self.log.end_phy_offset, self.log.end_phy_offset)
        self._closed = False
        _writers.add(self)
        self._stop = threading.Condition()
        self._flusher: threading.Thread | None = None

    def start_flusher(self, interval_ms: int) -> None:
        """Starts the thread that brings ASYNC puts to the disk."""
        self._flusher = threading.Thread(
            target=self._flush_forever, args=(interval_ms,), name="seglog-flush", daemon=True
        )
        self._flusher.start()

    def queue(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """Returns a queue that had a message."""
        return self._queues.get((topic, queue_id))

    def queues(self) -> list[ConsumeQueue]:
        """Returns all queues."""
        return list(self._queues.values())

    def append(
        self,
        topic: str,
        queue_id: int,
        drafts: Sequence[Draft],
        codes: Sequence[int | None],
        durability: Durability,
    ) -> tuple[int, list[int], int]:
        """Appends records of one queue, all or none, in one file.

        Args:
            topic: Their topic.
            queue_id: Their queue.
            drafts: The records.
            codes: Tags code of each; None where the store time decides it (the delay topic).
            durability: How far they must be before this returns.

        Returns:
            Queue offset of the first, physical offsets, store time in ms.

        Raises:
            FullError: No space; nothing was written.
            StoreFailedError: A flush failed, now or earlier.
            ClosedError: The store was closed.
        """
        self._check_open()
        with self._append_lock:
            self._check_open()
            self._commit.check()
            queue = self._queues.get((topic, queue_id))
            if queue is None:
                queue = self._open_queue(QueueState.empty(topic, queue_id))
            # Everything that can fail for want of space comes before anything is written.
            self.log.prepare(sum([draft.size_bytes for draft in drafts]))
            placed = sum([draft.takes_queue_offset for draft in drafts])
            if placed:
                queue.prepare(placed)
                self._queues[topic, queue_id] = queue
            now_ms = self._clock.now_ms()
            numbered: list[tuple[Draft, int]] = []
            first = following = queue.max_offset
            for draft in drafts:
                numbered.append((draft, following if draft.takes_queue_offset else 0))
                following += draft.takes_queue_offset
            starts = self.log.write(numbered, now_ms)
            for draft, start, code in zip(drafts, starts, codes, strict=True):
                if draft.takes_queue_offset:
                    queue.append(
                        start, draft.size_bytes, draft.unit_tags_code(now_ms) if code is None else code
                    )
            self._last_store_ms = now_ms
            end = self.log.end_phy_offset
        self._waiters.notify(topic, queue_id)
        if durability is Durability.SYNC:
            self._commit.ensure(end)
        return first, starts, now_ms

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
                if newest_ms > self._checkpoint.physic_timestamp_ms:
                    self._checkpoint = replace(
                        self._checkpoint, physic_timestamp_ms=newest_ms, logics_timestamp_ms=newest_ms
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
        with self._stop:
            self._stop.notify_all()
        if self._flusher is not None:
            self._flusher.join()
        self._waiters.notify_all()
        try:
            self.flush()
            self._files.remove(self._root / ABORT_FILE)
            self._files.sync_dir(self._root)
        finally:
            for queue in self.queues():
                queue.close()
            self.log.close()

    def _open_queue(self, state: QueueState) -> ConsumeQueue:
        size = self._geometry.queue_file_size_bytes
        start, end = state.first_slot * CQ_UNIT_BYTES, state.max_offset * CQ_UNIT_BYTES
        first_offsets = range(start - start % size, end, size) if len(state.units) else ()
        segments = Segments(
            self._files,
            self._root / queue_directory(state.topic, state.queue_id),
            size,
            self._pool,
            step_bytes=min(QUEUE_STEP_BYTES, size),
            first_offsets=first_offsets,
        )
        return ConsumeQueue(
            state.topic,
            state.queue_id,
            segments,
            min_offset=state.min_offset,
            max_offset=state.max_offset,
            max_phy_offset=state.max_phy_offset,
        )

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"the store {self._root} was closed")

    def _flush_forever(self, interval_ms: int) -> None:
        rounds = 0
        while True:
            with self._stop:
                if not self._closed:
                    self._clock.wait(self._stop, interval_ms)
                if self._closed:
                    return
            rounds += 1
            try:
                if rounds % _CHECKPOINT_ROUNDS:
                    self._commit.ensure(self.log.end_phy_offset)
                else:
                    self.flush()
            except FullError:
                continue  # only the checkpoint needs space here, and it can wait
            except StoreFailedError:
                return  # the latch holds the reason; every later put reports it


def _close_in_child() -> None:
    # A forked child shares the maps but not the lock: whatever it wrote would go through the parent's log.
    for writer in list(_writers):
        writer._closed = True


os.register_at_fork(after_in_child=_close_in_child)
