"""The queues of an open store, by kind.

Truth: none; queues are derived from the commit log. A table belongs to one writer or reader, which changes it
under a lock of its own. Any thread may look up a queue without a lock: a queue is entered when its messages
can be served, and a lookup is one operation of a dict.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from seglog.storage.directory.broker_topics import TopicKinds

QueueKey = tuple[str, int]
P = TypeVar("P")
B = TypeVar("B")
C = TypeVar("C")


class QueueTable(Generic[P, B, C]):
    """Queues by topic and number.

    Attributes:
        plain: Queues of 20-byte units.
        batch: Queues of 46-byte units.
        compaction: Logs of compaction topics, beside their plain queues.
        kinds: The topics that have batch queues or compaction logs.
    """

    __slots__ = ("batch", "compaction", "kinds", "plain")

    def __init__(self, kinds: TopicKinds) -> None:
        self.plain: dict[QueueKey, P] = {}
        self.batch: dict[QueueKey, B] = {}
        self.compaction: dict[QueueKey, C] = {}
        self.kinds = kinds

    def find(self, topic: str, queue_id: int) -> P | B | None:
        """Returns a queue that had a message."""
        key = topic, queue_id
        return self.plain.get(key) or self.batch.get(key)

    def __iter__(self) -> Iterator[P | B]:
        """Yields the plain and the batch queues, as they are now."""
        return iter([*self.plain.values(), *self.batch.values()])
