"""The ways to read queues: one class for each kind of queue, so that no reader tests the kind.

The classes serve both sides of a store: a writer's queues in maps and a reader's queues in memory have the
same interface.

    ``get``: reads messages; arguments and result as of :func:`seglog.storage.reads.get.read_queue`.
    ``is_superseded``: whether retention explains the messages that a read missed, given the queue that has
        the name now and the lowest minimum that it then must have.
    ``repairable``: the skipped queue offsets whose messages a repair brings back, given the offsets whose
        records a repair brings back to the commit log.
    ``offer``: registers the queue for plain reads, if they can serve it.

The classes of the commit log also have ``offset_by_time``, and ``with_units``: the queue as one with a unit
for each message; raises InvalidArgumentError for a batch queue.
"""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

from seglog.errors import InvalidArgumentError
from seglog.storage.reads.batch_get import batch_offset_by_time, read_batch_queue
from seglog.storage.reads.compaction_get import read_compaction_queue
from seglog.storage.reads.ext_codes import ExtCodes
from seglog.storage.reads.fast_reads import FastReads
from seglog.storage.reads.get import GetResult, Log, read_queue
from seglog.storage.reads.message_filter import MessageFilter
from seglog.storage.reads.offset_by_time import Boundary, offset_by_time
from seglog.storage.reads.open_queues import (
    CompactionLog,
    OpenBatchQueue,
    OpenPlainQueue,
    OpenQueue,
    OpenQueues,
    StoreLog,
)


class _LogReading:
    def __init__(self, queue: OpenQueue) -> None:
        self._of = queue

    def is_superseded(self, now: OpenQueue | None, least_min: int) -> bool:
        return now is not self._of or now.min_offset >= least_min

    def repairable(self, in_log: frozenset[int]) -> frozenset[int]:
        return in_log


class _PlainReading(_LogReading):
    def __init__(self, queue: OpenPlainQueue, ext_codes: ExtCodes) -> None:
        super().__init__(queue)
        self._queue = queue
        self._ext_codes = ext_codes

    def get(
        self, log: Log, queue_offset: int, max_count: int, wanted: MessageFilter | None, max_bytes: int
    ) -> GetResult:
        queue = self._queue
        codes = None
        if wanted is not None:
            codes = partial(self._ext_codes.resolve, queue.topic, queue.queue_id, log=log)
        return read_queue(queue, log, queue_offset, max_count, wanted, max_bytes, codes)

    def offset_by_time(self, log: StoreLog, timestamp_ms: int, boundary: Boundary) -> int:
        return offset_by_time(self._queue, log, timestamp_ms, boundary)

    def with_units(self) -> OpenPlainQueue:
        return self._queue

    def offer(self, reads: FastReads) -> None:
        reads.add(self._queue.topic, self._queue.queue_id, self._queue)


class _BatchReading(_LogReading):
    def __init__(self, queue: OpenBatchQueue) -> None:
        super().__init__(queue)
        self._queue = queue

    def get(
        self, log: Log, queue_offset: int, max_count: int, wanted: MessageFilter | None, max_bytes: int
    ) -> GetResult:
        return read_batch_queue(self._queue, log, queue_offset, max_count, wanted, max_bytes)

    def offset_by_time(self, _log: Log, timestamp_ms: int, boundary: Boundary) -> int:
        return batch_offset_by_time(self._queue, timestamp_ms, boundary)

    def with_units(self) -> OpenPlainQueue:
        name = f"{self._queue.topic}/{self._queue.queue_id}"
        raise InvalidArgumentError(f"{name} is a batch queue", help="read it with get")

    def offer(self, _reads: FastReads) -> None:
        """Does nothing: plain reads are of 20-byte units."""


class _CompactionReading:
    """Reads messages from the queue's own log, which retention of the commit log does not cut."""

    def __init__(self, log: CompactionLog | None) -> None:
        self._log = log

    def get(
        self, _log: Log, queue_offset: int, max_count: int, wanted: MessageFilter | None, max_bytes: int
    ) -> GetResult:
        units = None if self._log is None else self._log.units
        return read_compaction_queue(units, self._log, queue_offset, max_count, wanted, max_bytes)

    def is_superseded(self, _now: OpenQueue | None, _least_min: int) -> bool:
        return False

    def repairable(self, _in_log: frozenset[int]) -> frozenset[int]:
        return frozenset()

    def offer(self, _reads: FastReads) -> None:
        """Does nothing: plain reads are of the commit log."""


LogQueueReading: TypeAlias = _PlainReading | _BatchReading
"""The way to read a queue whose units lead into the commit log."""
QueueReading: TypeAlias = LogQueueReading | _CompactionReading


class Readings:
    """Chooses the way to read a queue of one store.

    Args:
        ext_codes: Resolves the tags codes of its queues that are in ConsumeQueueExt.
    """

    def __init__(self, ext_codes: ExtCodes) -> None:
        self._ext_codes = ext_codes

    def of(self, queues: OpenQueues, topic: str, queue_id: int) -> QueueReading | None:
        """Returns the way to read the messages of a queue; None for a queue that never had a message."""
        if topic in queues.kinds.compaction:
            return _CompactionReading(queues.compaction.get((topic, queue_id)))
        return self.in_log(queues, topic, queue_id)

    def in_log(self, queues: OpenQueues, topic: str, queue_id: int) -> LogQueueReading | None:
        """Returns the way to read a queue of any topic by its units in the commit log."""
        key = topic, queue_id
        plain = queues.plain.get(key)
        if plain is not None:
            return _PlainReading(plain, self._ext_codes)
        batch = queues.batch.get(key)
        return None if batch is None else _BatchReading(batch)
