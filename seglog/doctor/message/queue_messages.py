"""The messages of one queue, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from seglog.storage.format.record import Message
from seglog.storage.store import MessageStore

_AT_A_TIME: Final = 256


def iter_queue(
    store: MessageStore,
    topic: str,
    queue_id: int,
    start: int,
    end: int,
    tags: str | None = None,
    on_lost: Callable[[range, str], object] | None = None,
) -> Iterator[Message]:
    """Yields the messages of queue offsets ``[start, end)``; lost messages are left out.

    Args:
        store: The store.
        topic: Topic of the queue.
        queue_id: Queue id.
        start: First queue offset.
        end: Queue offset after the last one.
        tags: ``TagA || TagB``; None for all.
        on_lost: Called with queue offsets that are left out, and the reason: ``lost`` or ``repairable``.

    Raises:
        CorruptError: A record cannot be decoded.
    """
    while start < end:
        result = store.get(topic, queue_id, start, min(_AT_A_TIME, end - start), tags)
        if on_lost is not None:
            told = [(one, "lost") for one in result.lost] + [(one, "repairable") for one in result.repairable]
            for offsets, why in sorted(told, key=lambda one: one[0].start):
                if offsets.start < end:
                    on_lost(range(offsets.start, min(offsets.stop, end)), why)
        for message in result:
            if message.queue_offset >= end:
                return
            yield message
        if result.next_offset <= start:
            return
        start = result.next_offset


def iter_from(store: MessageStore, topic: str, queue_id: int, start: int) -> Iterator[Message]:
    """Yields the messages of a queue from a queue offset to its end."""
    first = max(start, store.min_offset(topic, queue_id))
    return iter_queue(store, topic, queue_id, first, store.max_offset(topic, queue_id))
