"""The rules of reading a compaction queue from its own log.

As :mod:`seglog.storage.reads.batch_get`, but a read from an offset before the first message or in a gap
starts at the next message, and the result for offsets far behind the end is RocketMQ's. RocketMQ leaves
filtering to the client here; this module applies a given filter.

Source: ``store/.../kv/CompactionLog.java getMessage``.
"""

from __future__ import annotations

from seglog.storage.format.get_status import GetStatus
from seglog.storage.reads.batch_get import collect
from seglog.storage.reads.get import GetResult, RecordSource
from seglog.storage.reads.message_filter import MessageFilter
from seglog.storage.reads.open_queues import BatchUnitSource


def read_compaction_queue(
    queue: BatchUnitSource | None,
    log: RecordSource | None,
    queue_offset: int,
    max_count: int,
    wanted: MessageFilter | None,
    max_bytes: int,
) -> GetResult:
    """Reads messages of one compaction queue.

    Args:
        queue: Its units; None if it has no log yet.
        log: Its log.
        queue_offset: First queue offset to read.
        max_count: Messages at most, 1 or more.
        wanted: The filter; None for all messages.
        max_bytes: Stored bytes at most; the first message is always returned whole.
    """
    if queue is None or log is None:
        return GetResult(GetStatus.NO_MATCHED_LOGIC_QUEUE, 0, 0, 0)
    low, high = queue.min_offset, queue.max_offset
    if high == 0:
        return GetResult(GetStatus.NO_MESSAGE_IN_QUEUE, 0, low, high)
    if queue_offset == high:
        return GetResult(GetStatus.OFFSET_OVERFLOW_ONE, high, low, high)
    if queue_offset > high:
        return GetResult(GetStatus.OFFSET_OVERFLOW_BADLY, high if low else 0, low, high)
    return collect(queue, log, queue_offset, max_count, wanted, max_bytes, (low, high), is_sparse=True)
