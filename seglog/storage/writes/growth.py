"""Creates files and space for appends: those that an append lacks now, and those that appends need next.

A thread that creates a file waits for the disk. It holds a lock of this module but not the append lock, so
other threads append meanwhile. A thread of the store creates space, the log's next file and the next files of
fast queues ahead of the appends.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from seglog.errors import FullError, StoreError, StoreFailedError
from seglog.storage.files.latch import Latch
from seglog.storage.files.os_errors import is_passing
from seglog.storage.log.commit_log import CommitLog
from seglog.storage.queues.consume_queue import ConsumeQueue
from seglog.storage.queues.queue_table import QueueKey
from seglog.storage.threads.on_demand import OnDemand
from seglog.storage.writes.compaction_writer import CompactionWriter
from seglog.storage.writes.flush import GroupCommit
from seglog.storage.writes.lock_order import LockRank, new_lock
from seglog.storage.writes.open_flag import OpenFlag
from seglog.storage.writes.writer_queues import WriterQueue, WriterQueues

_MOST_FAST_QUEUES: Final = 64
"""At most this many queues have their files created ahead: those that became fast last."""


class Need(NamedTuple):
    """The room that an append needs.

    Attributes:
        queues: The queues that get its units; the compaction log of the first one gets copies of its records.
        size_bytes: Bytes in the log.
        placed: Units in each queue.
        copied: Sizes of the records that are copied to a compaction log.
    """

    queues: Sequence[QueueKey]
    size_bytes: int
    placed: int
    copied: Sequence[int] = ()


class Growth:
    """Creates files and space.

    Attributes:
        grow_lock: Held to create or remove files of queues and compaction logs, and to add queues to
            ``queues.new``. While it is held, a queue has the files that its last unit needs, or more.
        log_lock: Held to create or remove files of the log, alone or within ``grow_lock``.

    Thread rule: any thread that does not hold the append lock.
    """

    def __init__(
        self,
        log: CommitLog,
        queues: WriterQueues,
        compaction: CompactionWriter,
        commit: GroupCommit,
        latch: Latch,
        open_flag: OpenFlag,
    ) -> None:
        self.grow_lock = new_lock(LockRank.GROW)
        self.log_lock = new_lock(LockRank.LOG)
        self._log = log
        self._queues = queues
        self._compaction = compaction
        self._commit = commit
        self._latch = latch
        self._open_flag = open_flag
        self._fast_queues: dict[QueueKey, ConsumeQueue] = {}  # guarded by grow_lock
        self._allocator = OnDemand("seglog-ahead", self._grow_ahead)

    def start(self) -> None:
        """Lets appends wake the thread that creates files ahead."""
        self._log.wake_allocator_with(self._allocator.ask)

    def stop(self) -> None:
        """Returns once the thread has ended."""
        self._allocator.stop()

    def make(self, need: Need) -> None:
        """Creates the files and the space of a need; appends that have room do not wait for it.

        Raises:
            FullError: No space.
            StoreError: The machine lacks something.
            StoreFailedError: The disk failed, now or earlier.
            ClosedError: The store was closed.
        """
        with self.grow_lock:
            self._open_flag.check()
            self._latch.check()
            with self._latch.failing("making room for a message"):
                for key in need.queues if need.placed else ():
                    self._grow_queue(self._queues.known(key) or self._queues.make(key), need.placed)
                if need.copied:
                    self._compaction.grow(*need.queues[0], need.copied)
                if not self._log.has_room(need.size_bytes):
                    with self.log_lock:
                        self._log.grow(need.size_bytes)

    def publish(self, keys: Sequence[QueueKey]) -> None:
        """Gives staged files of queues their final names, now that they hold a unit."""
        for key in keys:
            queue = self._queues.find(*key)
            if queue is not None and queue.is_staging:
                with suppress(OSError, FullError, StoreFailedError):  # the next sync tries again, and raises
                    queue.publish()

    def publish_soon(self, keys: Sequence[QueueKey]) -> None:
        """Requests that the thread names the files that were created ahead and hold a unit now."""
        for key in keys:
            queue = self._queues.plain.get(key)
            if queue is not None and queue.is_staging:
                self._allocator.ask()

    def forget(self, topic: str) -> None:
        """Stops creating files ahead for the queues of a topic; the caller holds ``grow_lock``."""
        for key in [key for key in self._fast_queues if key[0] == topic]:
            del self._fast_queues[key]

    def _grow_queue(self, queue: WriterQueue, count: int) -> None:
        queue.grow(count)
        if isinstance(queue, ConsumeQueue) and queue.grows_fast:
            self._fast_queues[queue.topic, queue.queue_id] = queue
            if len(self._fast_queues) > _MOST_FAST_QUEUES:
                del self._fast_queues[next(iter(self._fast_queues))]

    def _grow_ahead(self) -> None:
        with self.log_lock:
            if self._open_flag.is_closed or self._latch.is_closed:
                return
            try:
                self._log.grow_ahead()
            except OSError as error:
                if not is_passing(error):
                    self._latch.fail(error, "making a file of the log")
            except StoreError:
                return  # the append that needs the space gets the same error and raises it
        for key, queue in list(self._fast_queues.items()):
            # Errors are dropped here: an append that finds no room, or the next sync, meets and raises them.
            with suppress(OSError, StoreError), self.grow_lock:
                if self._fast_queues.get(key) is queue and not self._open_flag.is_closed:
                    queue.grow_ahead()
            if queue.is_staging:
                with suppress(OSError, StoreError):
                    queue.publish()
        # Without a lock: warming pages changes nothing that growing changes.
        with suppress(OSError, StoreError):  # as above
            self._log.warm_ahead(self._commit.flushed)
