"""Selects messages of a store, queue by queue, for an export."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from seglog.doctor.message.queue_messages import iter_queue
from seglog.doctor.tables.offset_table import GroupOffset
from seglog.errors import NotFoundError
from seglog.storage.format.index import MAX_TIMESTAMP_MS
from seglog.storage.format.names import LMQ_PREFIX
from seglog.storage.format.record import Message, is_placeholder
from seglog.storage.format.system_names import is_transit_topic
from seglog.storage.reads import MessageRow, inflated, row_of
from seglog.storage.store import MessageStore
from seglog.storage.writes import QueueInfo


@dataclass(frozen=True, slots=True)
class Selection:
    """The messages to export.

    Attributes:
        topics: Their topics; empty for all but RocketMQ's own.
        queue_id: Their queue; None for all.
        from_offset: Queue offset of the first.
        to_offset: Queue offset of the last; None for the end.
        begin_ms: Earliest store time.
        end_ms: Latest store time.
        tags: ``TagA || TagB``; None for all.
        key: One of their keys, or their unique key; None for all.
        lag_of: Only messages that this group has not consumed, in the topics where it has an offset. In their
            queues without one it has consumed nothing, as RocketMQ's ``consumerProgress`` counts.
        inflate: Whether zlib bodies are inflated.
    """

    topics: Sequence[str] = ()
    queue_id: int | None = None
    from_offset: int = 0
    to_offset: int | None = None
    begin_ms: int = 0
    end_ms: int = MAX_TIMESTAMP_MS
    tags: str | None = None
    key: str | None = None
    lag_of: str | None = None
    inflate: bool = False


def iter_rows(
    store: MessageStore,
    wanted: Selection,
    offsets: Sequence[GroupOffset],
    on_lost: Callable[[str, int, range, str], object],
    on_doubt: Callable[[], object] = lambda: None,
) -> Iterator[MessageRow]:
    """Yields the selected messages, by topic, queue and queue offset.

    Args:
        store: The store.
        wanted: The selection.
        offsets: The offsets of groups.
        on_lost: Called with topic, queue, queue offsets and reason for lost messages: for all that the
            selection covers by place and tag, because a lost message has neither time nor keys.
        on_doubt: Called if the queues may have lost more messages than are known.

    Raises:
        NotFoundError: The store has no such topic or queue, or the group has no offset in them.
    """
    queues = _queues(store, wanted)
    starts = {(one.topic, one.queue_id): one.queue_offset for one in offsets if one.group == wanted.lag_of}
    if wanted.lag_of is not None:
        consumed = {topic for topic, _queue_id in starts}
        queues = [queue for queue in queues if queue.topic in consumed]
        if not queues:
            raise NotFoundError(f"group {wanted.lag_of} has no offset in these topics")
    if any(store.recovery.doubt.concerns(queue.topic, queue.queue_id) for queue in queues):
        on_doubt()
    in_front: dict[tuple[str, int], list[range]] = {}
    for one in store.lost_in_front:
        in_front.setdefault((one.topic, one.queue_id), []).append(one.offsets)
    for queue in queues:
        start = max(wanted.from_offset, queue.min_offset, starts.get((queue.topic, queue.queue_id), 0))
        if wanted.begin_ms:
            start = max(start, store.offset_by_time(queue.topic, queue.queue_id, wanted.begin_ms))
        end = queue.max_offset if wanted.to_offset is None else min(queue.max_offset, wanted.to_offset + 1)
        key = queue.topic, queue.queue_id
        if not wanted.begin_ms:
            first = max(wanted.from_offset, starts.get(key, 0))
            for gone in in_front.get(key, ()):
                if told := range(max(first, gone.start), min(end, gone.stop)):
                    on_lost(*key, told, "lost")
        for message in iter_queue(store, *key, start, end, wanted.tags, partial(on_lost, *key)):
            if _is_wanted(message, wanted):
                row = row_of(message, message.queue_offset)
                yield inflated(row, message) if wanted.inflate else row


def _queues(store: MessageStore, wanted: Selection) -> list[QueueInfo]:
    found = [
        queue
        for queue in store.queues()
        if not queue.topic.startswith(LMQ_PREFIX)  # light queues hold messages of other topics
        and (queue.topic in wanted.topics if wanted.topics else not is_transit_topic(queue.topic))
        and wanted.queue_id in (None, queue.queue_id)
    ]
    missing = sorted(set(wanted.topics) - {queue.topic for queue in found})
    if missing or (wanted.queue_id is not None and not found):
        named = missing[0] if missing else f"number {wanted.queue_id}"
        raise NotFoundError(
            f"no queue {named} in {store.path}", help="`seglog inspect queues STORE` lists them"
        )
    return found


def _is_wanted(message: Message, wanted: Selection) -> bool:
    if is_placeholder(message.flag, message.body, message.properties_raw):
        return False  # a compaction dropped the message
    if not wanted.begin_ms <= message.store_timestamp_ms <= wanted.end_ms:
        return False
    return wanted.key is None or wanted.key in message.keys or wanted.key == message.unique_key
