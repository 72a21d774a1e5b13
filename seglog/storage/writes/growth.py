"""Makes files and space for appends: what they lack, and what they are going to need.

A thread that makes something waits for the disk, with a lock of this module and without the append lock:
others append meanwhile. Space, the log's next file and those of fast queues are made ahead by a thread.
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
"""So many queues have their files made ahead, those that became fast last."""


class Need(NamedTuple):
    """What an append needs room for.

    Attributes:
        queues: Where its units go; copies of its records go to the compaction log of the first.
        size_bytes: Bytes in the log.
        placed: Units in each queue.
        copied: Sizes of the records that are copied to a compaction log.
    """

    queues: Sequence[QueueKey]
    size_bytes: int
    placed: int
    copied: Sequence[int] = ()


class Growth:
    """Makes files and space.

    Attributes:
        grow_lock: Held to make or remove files of queues and compaction logs. Under it
            ``queues.new`` gets queues, and a queue's files are those that its last unit needs, or more.
        log_lock: Held to make or remove files of the log, alone or within ``grow_lock``.

    Thread rule: any thread, without the append lock.
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
        """Lets appends wake the thread that makes things ahead."""
        self._log.wake_allocator_with(self._allocator.ask)

    def stop(self) -> None:
        """Returns once the thread has ended."""
        self._allocator.stop()

    def make(self, need: Need) -> None:
        """Makes files and space; only those wait who need some.

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
        """Gives the files of queues that got a unit their names."""
        for key in keys:
            queue = self._queues.find(*key)
            if queue is not None and queue.is_staging:
                with suppress(OSError, FullError, StoreFailedError):  # the next sync tries again, and raises
                    queue.publish()

    def publish_soon(self, keys: Sequence[QueueKey]) -> None:
        """Has the thread give files that were made ahead, and got a unit, their names."""
        for key in keys:
            queue = self._queues.plain.get(key)
            if queue is not None and queue.is_staging:
                self._allocator.ask()

    def forget(self, topic: str) -> None:
        """Makes nothing ahead for queues of a topic any more; the caller holds ``grow_lock``."""
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
                return  # the append that it was for raises the same
        for key, queue in list(self._fast_queues.items()):
            # An append that finds no room, or a sync, raises what is wrong.
            with suppress(OSError, StoreError), self.grow_lock:
                if self._fast_queues.get(key) is queue and not self._open_flag.is_closed:
                    queue.grow_ahead()
            if queue.is_staging:
                with suppress(OSError, StoreError):
                    queue.publish()
        # Without a lock: it touches nothing that growing does.
        with suppress(OSError, StoreError):  # as above
            self._log.warm_ahead(self._commit.flushed)
