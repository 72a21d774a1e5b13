"""What any reader of a queue of an open store sees of it, whether a writer or a reader serves it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from seglog.storage.directory.known_topics import TopicKinds
from seglog.storage.queues.queue_table import QueueKey
from seglog.storage.reads.batch_get import BatchUnitSource
from seglog.storage.reads.get import Queue, RecordSource
from seglog.storage.reads.sequential_reads import PlainQueue
from seglog.storage.scan.message_counts import QueueEnds


class OpenQueue(QueueEnds, Protocol):
    """What is known of any queue of an open store."""

    @property
    def max_phy_offset(self) -> int:
        """Where the record of the last unit ends, -1 before the first."""


class OpenPlainQueue(OpenQueue, Queue, PlainQueue, Protocol):
    """A queue of 20-byte units."""


class OpenBatchQueue(OpenQueue, BatchUnitSource, Protocol):
    """A queue of 46-byte units."""


class CompactionLog(RecordSource, Protocol):
    """The log of a queue of a compaction topic."""

    @property
    def units(self) -> BatchUnitSource:
        """Where its messages lie."""


class OpenQueues(Protocol):
    """The queues of one side of a store, see :class:`seglog.storage.queues.queue_table.QueueTable`."""

    @property
    def plain(self) -> Mapping[QueueKey, OpenPlainQueue]:
        """Queues of 20-byte units."""

    @property
    def batch(self) -> Mapping[QueueKey, OpenBatchQueue]:
        """Queues of 46-byte units."""

    @property
    def compaction(self) -> Mapping[QueueKey, CompactionLog]:
        """Logs of compaction topics."""

    @property
    def kinds(self) -> TopicKinds:
        """Which topics are not plain, or not only."""

    def find(self, topic: str, queue_id: int) -> OpenPlainQueue | OpenBatchQueue | None:
        """Returns a queue that had a message."""

    def __iter__(self) -> Iterator[OpenPlainQueue | OpenBatchQueue]:
        """Yields the plain and the batch queues."""
