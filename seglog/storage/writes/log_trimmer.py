"""Deletes the oldest files of a log that is open for writing, and the queue and index files that follow.

The order makes it safe. First the minimum of every queue and of the log is raised, so that no new read begins
below it; reads that have begun keep their memory, because a map lives as long as its views. Then the files of
the log are removed, oldest first, and each removal is synced before the next: the log never has a gap. Last,
the files of queues and index are removed, which lead nowhere by now. A crash in between leaves units and
entries of messages that do not exist; the next open removes them, as RocketMQ does.

Source: ``DefaultMessageStore.java CleanCommitLogService, CleanConsumeQueueService``,
``ConsumeQueue.java correctMinOffset, deleteExpiredFile``, ``IndexService.java deleteExpiredFile``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.errors import FullError
from seglog.storage.files import Files, explained
from seglog.storage.index.key_index import KeyIndex
from seglog.storage.log.commit_log import CommitLog
from seglog.storage.reads.offset_by_position import offsets_from
from seglog.storage.recovery.recovery_points import PointKeeper
from seglog.storage.seals.seal_files import list_seals, remove_seal
from seglog.storage.seals.sealer import Sealer
from seglog.storage.writes.lock_order import Lock, LockRank, new_lock
from seglog.storage.writes.writer_queues import WriterQueues

_NOTHING: Final = -1


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The files that a trim deleted.

    Attributes:
        min_phy_offset: The new beginning of the log.
        log_files: Number of files of the log.
        queue_files: Number of files of queues.
        index_files: Number of files of the key index.
        freed_bytes: The sum of their lengths; sparse parts of them used no space.
    """

    min_phy_offset: int
    log_files: int = 0
    queue_files: int = 0
    index_files: int = 0
    freed_bytes: int = 0


class LogTrimmer:
    """Deletes the start of one log.

    Args:
        files: The file layer of the store.
        root: The store directory.
        log: Its log.
        queues: Its queues.
        index: Its key index.
        sealer: Writes its seals.
        points: Writes its recovery points.
        flush: Syncs log and queues.
        flush_lock: Held to sync files of queues.
        grow_lock: Held to make files of queues.
        log_lock: Held to make files of the log.
        check_open: Raises once the store is closed.

    Thread rule: any thread.
    """

    def __init__(
        self,
        files: Files,
        root: Path,
        log: CommitLog,
        queues: WriterQueues,
        index: KeyIndex,
        sealer: Sealer,
        points: PointKeeper,
        *,
        flush: Callable[[], None],
        flush_lock: Lock,
        grow_lock: Lock,
        log_lock: Lock,
        check_open: Callable[[], None],
    ) -> None:
        self._files = files
        self._root = root
        self._log = log
        self._queues = queues
        self._index = index
        self._sealer = sealer
        self._points = points
        self._flush = flush
        self._flush_lock = flush_lock
        self._grow_lock = grow_lock
        self._log_lock = log_lock
        self._check_open = check_open
        self._lock = new_lock(LockRank.TRIM)

    def trim(self, phy_offset: int) -> Trimmed:
        """Deletes every file of the log that ends at or below an offset, but not the file of the last record.

        Views of deleted files stay valid; the file system frees the space when the last view is gone.

        Raises:
            StoreFailedError: The disk failed.
            StoreError: A file could not be deleted; the log begins behind that file nevertheless.
            ClosedError: The store was closed.
        """
        with self._lock, explained():
            segment = self._log.segment_size_bytes
            last = self._log.last_phy_offset
            start = min(phy_offset - phy_offset % segment, last - last % segment) if last >= 0 else _NOTHING
            start = max(start, self._log.min_phy_offset)
            with suppress(FullError):  # only the checkpoint can raise it; log and queues are synced by then
                self._flush()  # no file may be deleted while it waits for a sync
            self._raise_minimum(start)
            log_files, log_bytes = self._trim_log(start)
            queue_files, queue_bytes = self._trim_queues()
            self._check_open()
            index_files, index_bytes = self._index.remove_expired(start)
            self._trim_seals(start)
        freed_bytes = log_bytes + queue_bytes + index_bytes
        return Trimmed(start, log_files, queue_files, index_files, freed_bytes)

    def wait(self) -> None:
        """Returns once no trim is under way."""
        with self._lock:
            return

    def _raise_minimum(self, start: int) -> None:
        # Everything that could lead a read below the new start, before the log itself.
        self._points.expire(start)
        self._sealer.expire(start)
        with suppress(FullError):
            self._index.catch_up_to(start)
        for key, (low,) in offsets_from(self._queues, [start]).items():
            queue = self._queues.find(*key)
            if queue is not None:
                queue.expire(low)
        self._log.expire(start)

    def _trim_log(self, start: int) -> tuple[int, int]:
        count = size_bytes = 0
        while True:
            with self._log_lock:
                self._check_open()
                removed = self._log.remove_first(start)
            if removed is None:
                return count, size_bytes
            self._log.sync_names()  # before the next removal: a crash must not leave a gap between two files
            count, size_bytes = count + 1, size_bytes + removed.size_bytes

    def _trim_queues(self) -> tuple[int, int]:
        count = size_bytes = 0
        for queue in self._queues:
            while True:
                with self._flush_lock, self._grow_lock:
                    self._check_open()
                    removed = queue.remove_expired()
                if removed is None:
                    break
                queue.sync_names()
                count, size_bytes = count + 1, size_bytes + removed.size_bytes
        return count, size_bytes

    def _trim_seals(self, start: int) -> None:
        for first in list_seals(self._files, self._root):
            if first < start:
                remove_seal(self._files, self._root, first)
