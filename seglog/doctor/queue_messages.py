"""The messages of one queue, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from seglog.storage.format.message import Message
from seglog.storage.store import MessageStore

_AT_A_TIME: Final = 256


def iter_queue(
    store: MessageStore, topic: str, queue_id: int, start: int, end: int, tags: str | None = None
) -> Iterator[Message]:
    """Yields the messages of queue offsets ``[start, end)``; what the log lost is passed over.

    Raises:
        CorruptError: A record cannot be taken apart.
    """
    while start < end:
        result = store.get(topic, queue_id, start, min(_AT_A_TIME, end - start), tags)
        for message in result:
            if message.queue_offset >= end:
                return
            yield message
        if result.next_offset <= start:
            return
        start = result.next_offset
