"""The core of a writer: one critical section that gives records and their queue units their places.

The section writes the record and its units into memory, so consumers can read a message when its put is
acknowledged. The section creates no file and never waits for a disk: if a file or space is missing, the
append leaves the section, lets :class:`~seglog.storage.writes.growth.Growth` create it, and tries again. The
caller waits for durability outside of all locks.
"""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence
from typing import Any, NamedTuple

from seglog.arguments import as_text
from seglog.clock import Clock
from seglog.errors import StoreError, TruncatedError
from seglog.storage.directory.broker_topics import TopicKinds
from seglog.storage.files.latch import Latch
from seglog.storage.kernels.pending_record import PendingRecord
from seglog.storage.log.commit_log import CommitLog
from seglog.storage.queues.batch_queue import BatchQueue
from seglog.storage.queues.consume_queue import ConsumeQueue
from seglog.storage.queues.queue_table import QueueKey
from seglog.storage.recovery.recovery_points import LogEnd
from seglog.storage.threads.waiters import Waiters
from seglog.storage.threads.waiting import WouldWaitError
from seglog.storage.threads.whole_steps import done_whole
from seglog.storage.writes.compaction_writer import CompactionWriter
from seglog.storage.writes.deferred_records import Order
from seglog.storage.writes.fast_path import NO_FAST_PATH, FastPath
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.growth import Growth, Need
from seglog.storage.writes.lock_order import LockRank, new_lock
from seglog.storage.writes.open_flag import OpenFlag
from seglog.storage.writes.values import BatchResult, NewMessage
from seglog.storage.writes.writer_queues import WriterQueue, WriterQueues

_ROOM = "making room for a message"
"""The action that the error names when the latch closes."""


class Written(NamedTuple):
    """The places of records that were appended.

    Attributes:
        queue_offset: Queue offset of the first record.
        phy_offsets: Physical offset of each record.
        store_timestamp_ms: Their store time.
        end_phy_offset: The end of the log after them; they are durable once the log is on the disk up to it.
    """

    queue_offset: int
    phy_offsets: list[int]
    store_timestamp_ms: int
    end_phy_offset: int


class AppendCore:
    """Appends records.

    Attributes:
        append_lock: Orders all appends. Its holder also shuts the log's tail, because the native fast path
            takes no lock. The lock guards the tail of the log and the tails of queues, which only grow, the
            tables of ``queues``, and the set of queues that the fast path serves.
        waiters: Threads and tasks that wait for queues to grow.

    Thread rule: any thread.
    """

    def __init__(
        self,
        log: CommitLog,
        queues: WriterQueues,
        compaction: CompactionWriter,
        growth: Growth,
        clock: Clock,
        waiters: Waiters,
        latch: Latch,
        open_flag: OpenFlag,
    ) -> None:
        self.append_lock = new_lock(LockRank.APPEND)
        self._log = log
        self._tail = log.tail
        self._queues = queues
        self._compaction = compaction
        self._growth = growth
        self._clock = clock
        self.waiters = waiters
        self._latch = latch
        self._open_flag = open_flag
        self._fast_path: FastPath = NO_FAST_PATH
        self._gathered: MutableSequence[Any] = []
        self._drain: Callable[[], None] = _nothing
        latch.on_close(self._close_fast_path)

    def append(
        self, topic: str, queue_id: int, records: Sequence[PendingRecord], may_wait: bool = True
    ) -> Written:
        """Appends records of one queue, all or none, in one file; they are readable, but not yet durable.

        Args:
            topic: Their topic.
            queue_id: Their queue.
            records: The records.
            may_wait: Whether to make files and space where they are missing, which may wait for the disk.

        Raises:
            FullError: No space; nothing was written.
            StoreError: The process may not open or map more files; nothing was written.
            StoreFailedError: A flush failed, now or earlier.
            StoreError: The machine lacked something else; nothing was written.
            ClosedError: The store was closed.
            WouldWaitError: It may not wait, but would have to; nothing was written.
        """
        topic = as_text("topic", topic)
        if topic in self._queues.special_topics:
            return self.append_order(topic, queue_id, Order(lambda _first, _further: records), may_wait)
        key = topic, queue_id
        return self._append((key,), lambda: self._try_append(key, records), may_wait)

    def append_order(self, topic: str, queue_id: int, order: Order, may_wait: bool = True) -> Written:
        """Appends records that can be encoded only once their queue offsets are known, or to batch queues.

        Args:
            topic: Their topic.
            queue_id: Their queue.
            order: Encodes the records.
            may_wait: As in :meth:`append`; only a thread that may wait can append an order.

        Raises:
            As :meth:`append`, and what making the records raises.
        """
        if not may_wait:
            raise WouldWaitError
        keys = ((as_text("topic", topic), queue_id), *((name, 0) for name in order.further))
        return self._append(keys, lambda: self._try_order(keys, order), may_wait)

    def _append(
        self, keys: Sequence[QueueKey], attempt: Callable[[], Written | Need], may_wait: bool
    ) -> Written:
        """Appends; makes room and tries again while other appends use up the room first."""
        if self._gathered:
            self._drain()  # called before this append, so stored before it, unless files for them are missing
        has_grown = False
        while True:
            with self.append_lock, self._tail:
                # Checked within the lock: close() sets the flag under it, so no append is written afterwards.
                self._open_flag.check()
                self._latch.check()
                written = attempt()
                if isinstance(written, Written):
                    if self._fast_path.lacks_window:
                        self._grant(keys[0])
                    break
            if not may_wait:
                raise WouldWaitError
            has_grown = True
            self._make(written)
        # A new queue file gets its name only now, with a unit in it: a crash before leaves no empty queue.
        if has_grown:
            self._growth.publish(keys)
        self._growth.publish_soon(keys)
        for key in keys:
            self.waiters.notify(*key)
        return written

    def _make(self, need: Need) -> None:
        try:
            self._growth.make(need)
        except StoreError:
            # Removes the queues that were created for this append: they cannot get their first message now.
            with self.append_lock, self._tail:
                dropped = [self._queues.new.pop(key) for key in need.queues if key in self._queues.new]
            for queue in dropped:
                queue.close()
            raise

    def _try_append(self, key: QueueKey, records: Sequence[PendingRecord]) -> Written | Need:
        """Appends within the section, or returns the room that is missing."""
        queues = self._queues
        queue = queues.plain.get(key) or queues.new.get(key)
        size_bytes = placed = 0
        for record in records:
            size_bytes += record.size_bytes
            placed += record.takes_queue_offset
        try:
            # All steps that can fail come before the first write: an error leaves neither record nor unit.
            pieces = None if queue is None else queue.room(placed)
            if pieces is None and placed:
                return Need((key,), size_bytes, placed)
            segment = self._log.room(size_bytes)
            if segment is None:
                return Need((key,), size_bytes, placed)
        except (OSError, TruncatedError) as error:
            raise self._latch.explained(error, _ROOM) from error
        now_ms = self._clock.now_ms()  # read within the section: store times follow the order of the records
        first = 0 if queue is None else queue.max_offset
        at = self._log.end_phy_offset

        def place() -> Written:
            # The record before the unit: a kill between the two leaves a record that recovery can dispatch,
            # while a unit without its record would lead readers to bytes that are no message.
            starts, units = self._log.write(segment, at, records, first, now_ms)
            if units and pieces is not None and isinstance(queue, ConsumeQueue):
                queue.append(pieces, units, first)
                if key in queues.new:
                    queues.plain[key] = queue
                    del queues.new[key]
            return self._written(first, starts, now_ms)

        return done_whole(place)

    def _try_order(self, keys: Sequence[QueueKey], order: Order) -> Written | Need:
        """Encodes and appends records within the section, or returns the room that is missing."""
        (topic, queue_id), queues = keys[0], [self._queues.known(key) for key in keys]
        offsets = [0 if queue is None else queue.max_offset for queue in queues]
        records = order.make(offsets[0], offsets[1:])
        placed = [record for record in records if record.takes_queue_offset]
        copied: Sequence[int] = ()
        if topic in self._queues.kinds.compaction:
            copied = self._compaction.sizes_of(placed)
        need = Need(keys, sum(record.size_bytes for record in records), len(placed), copied)
        with self._latch.failing(_ROOM):
            # Room in all queues, in the compaction log and in the log, before the first write.
            pieces = [None if queue is None else queue.room(need.placed) for queue in queues]
            if need.placed and None in pieces:
                return need
            places = self._compaction.room(topic, queue_id, copied) if copied else ()
            segment = None if places is None else self._log.room(need.size_bytes)
            if segment is None or places is None:
                return need
            now_ms = self._clock.now_ms()
            at = self._log.end_phy_offset
            indexes = [queue.end_index if isinstance(queue, BatchQueue) else 0 for queue in queues]

        def place() -> Written:
            starts, units = self._log.write(segment, at, records, offsets[0], now_ms)
            for key, queue, room, begin, index in zip(keys, queues, pieces, offsets, indexes, strict=True):
                if units and queue is not None and room is not None:
                    self._place(key, queue, room, units, now_ms, order.batch_size, begin, index)
            if places:
                self._compaction.append(topic, queue_id, places, units, offsets[0], now_ms)
            return self._written(offsets[0], starts, now_ms)

        with self._latch.failing(_ROOM):
            return done_whole(place)

    def _place(
        self,
        key: QueueKey,
        queue: WriterQueue,
        room: Sequence[memoryview],
        units: Sequence[tuple[int, int, int]],
        now_ms: int,
        batch_size: int,
        queue_offset: int,
        index: int,
    ) -> None:
        if isinstance(queue, BatchQueue):
            queue.append(room, units, now_ms, batch_size, queue_offset, index)
            self._queues.batch[key] = queue
        else:
            queue.append(room, units, queue_offset)
            self._queues.plain[key] = queue
        self._queues.new.pop(key, None)

    def _written(self, queue_offset: int, starts: list[int], now_ms: int) -> Written:
        tail = self._tail
        tail.last_store_ms = now_ms
        tail.newest_store_ms = max(tail.newest_store_ms, now_ms)
        return Written(queue_offset, starts, now_ms, tail.end_phy_offset)

    def end(self) -> LogEnd:
        """Returns the end of the log at a moment when no append is half written."""
        tail = self._tail
        with self.append_lock, tail:
            return LogEnd(tail.end_phy_offset, tail.last_phy_offset, tail.last_store_ms, tail.newest_store_ms)

    def is_batch_topic(self, topic: str) -> bool:
        """Returns whether a topic has batch queues."""
        return topic in self._queues.kinds.batch

    def add_kinds(self, configured: TopicKinds) -> None:
        """Adds the kinds of new topics; a topic that has plain queues does not get batch queues."""
        with self.append_lock, self._tail:
            kinds = self._queues.kinds
            plain = {topic for topic, _queue_id in self._queues.plain}
            batch = kinds.batch | (configured.batch - plain)
            self._queues.set_kinds(TopicKinds(batch, kinds.compaction | configured.compaction))
            self._fast_path.forget()  # it may serve a topic that is not plain now; _grant adds the others

    def drop(self, topic: str) -> list[WriterQueue]:
        """Removes the queues of a topic, whose files the caller deletes; a new queue begins at 0."""
        if self._gathered:
            self._drain()
        with self.append_lock, self._tail:
            self._open_flag.check()
            dropped = self._queues.drop(topic)
            self._fast_path.forget()
        return dropped

    def close(self) -> None:
        """Refuses all further appends."""
        with self.append_lock, self._tail:
            self._open_flag.is_closed = True
            self._fast_path.close()

    def abandon(self) -> None:
        """Refuses all further appends in a forked child, without the lock: a parent's thread may hold it."""
        self._open_flag.is_closed = self._open_flag.is_forked = True
        self._fast_path.close()
        self._gathered.clear()  # the parent appends them

    def drain_with(self, gathered: MutableSequence[Any], drain: Callable[[], None]) -> None:
        """Sets the function that appends the gathered puts; it is called before any later append."""
        self._gathered, self._drain = gathered, drain

    def serve(self, path: FastPath) -> None:
        """Lets a fast path append from now on, while the store is open and no sync has failed."""
        with self.append_lock, self._tail:
            self._fast_path = path
            if self._open_flag.is_closed or self._latch.is_closed:
                path.close()

    def put_batch_again(
        self,
        topic: object,
        messages: Sequence[NewMessage | bytes],
        queue_id: object,
        durability: Durability | None,
    ) -> BatchResult | None:
        """Tries the fast path once more, with all room that exists by now, where it lacked some.

        The ordinary way makes room too, but takes several times as long for each record, and a long batch
        lacks a window often.

        Returns:
            None if the ordinary way must do it; nothing was appended.
        """
        path = self._fast_path
        # The ordinary way refuses what has another type.
        if not self._fast_path.lacks_window or type(topic) is not str or not isinstance(queue_id, int):
            return None
        key = topic, queue_id
        if not self._renew_windows(key):
            return None
        made = path.try_put_batch(topic, messages, queue_id, durability)
        if made is None and path.lacks_window and self._lacks_units(key, len(messages)):
            # Queue files grow in short steps. Of the log, which has its space made ahead, nothing is asked.
            self._growth.make(Need((key,), 0, len(messages)))
            if self._renew_windows(key):
                made = path.try_put_batch(topic, messages, queue_id, durability)
        return made

    def _lacks_units(self, key: QueueKey, count: int) -> bool:
        """Returns whether a queue has no room for so many units; it has where they go into two files."""
        with self.append_lock, self._tail, self._latch.failing(_ROOM):
            queue = self._queues.plain.get(key)
            return queue is not None and queue.room(count) is None

    def _renew_windows(self, key: QueueKey) -> bool:
        """Grants the fast path what was reserved for the log and a queue; returns whether it may use that."""
        with self.append_lock, self._tail:
            queue = self._queues.plain.get(key)
            if self._open_flag.is_closed or self._latch.is_closed or queue is None or queue.is_next_staged:
                return False
            self._log.ask_for_more()
            self._grant(key)
        return True

    def _grant(self, key: QueueKey) -> None:
        """Grants the fast path write windows for the next message of a queue, if the queue is a plain one."""
        self._fast_path.lacks_window = False
        queue = self._queues.plain.get(key)
        if queue is not None and self._queues.is_usual(key[0]):
            self._log.grant()
            queue.grant()
            self._fast_path.add(*key, queue.tail)

    def _close_fast_path(self) -> None:
        self._fast_path.close()


def _nothing() -> None:
    """Called while no task gathers puts."""
