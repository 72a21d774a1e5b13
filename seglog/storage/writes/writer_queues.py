"""The queues of a store that is open for writing, including new queues without a message.

Truth: none; queues are derived from the commit log. Readers see only queues that had a message: the files of
a queue are created before its first append, and that append enters it in the table once its unit is written.
"""

from __future__ import annotations

from seglog.storage.compaction.queue import CompactionQueue
from seglog.storage.directory.broker_topics import TopicKinds
from seglog.storage.format.names import MAX_TOPIC_BYTES, SCHEDULE_TOPIC
from seglog.storage.overlay import BatchQueueState, QueueState
from seglog.storage.queues.batch_queue import BatchQueue
from seglog.storage.queues.consume_queue import ConsumeQueue
from seglog.storage.queues.queue_opening import QueueOpening
from seglog.storage.queues.queue_table import QueueKey, QueueTable
from seglog.storage.survey.store_survey import Survey

WriterQueue = ConsumeQueue | BatchQueue


class WriterQueues(QueueTable[ConsumeQueue, BatchQueue, CompactionQueue]):
    """Queues by topic and number; changed under the append lock only, but for :meth:`make`.

    Args:
        opening: Opens queues.
        found: The survey of the opening; None for a new store.

    Attributes:
        new: Queues with files but without a message; entered under the grow lock.
        special_topics: Topics whose records are not appended as those of plain queues are.
    """

    __slots__ = ("_opening", "new", "special_topics")

    def __init__(self, opening: QueueOpening, found: Survey | None) -> None:
        super().__init__(TopicKinds() if found is None else found.kinds)
        self._opening = opening
        self.new: dict[QueueKey, WriterQueue] = {}
        self.special_topics = self.kinds.special
        if found is not None:
            self.plain = {key: opening.queue(state) for key, state in found.queues.items()}
            self.batch = {key: opening.batch_queue(state) for key, state in found.batch_queues.items()}

    def known(self, key: QueueKey) -> WriterQueue | None:
        """Returns a queue, with or without a message."""
        return self.plain.get(key) or self.batch.get(key) or self.new.get(key)

    def make(self, key: QueueKey) -> WriterQueue:
        """Returns a new queue, without a message and without a file."""
        queue: WriterQueue
        if key[0] in self.kinds.batch:
            queue = self._opening.batch_queue(BatchQueueState.empty(*key))
        else:
            queue = self._opening.queue(QueueState.empty(*key))
        self.new[key] = queue
        return queue

    def is_usual(self, topic: str) -> bool:
        """Returns whether the fast path may append records of a topic: it has no rules of its own."""
        return topic not in self.special_topics and topic != SCHEDULE_TOPIC and len(topic) <= MAX_TOPIC_BYTES

    def set_kinds(self, kinds: TopicKinds) -> None:
        """Sets the topics that are not plain."""
        self.kinds = kinds
        self.special_topics = kinds.special

    def drop(self, topic: str) -> list[WriterQueue]:
        """Removes all queues of a topic from the tables; returns those that had a message."""
        dropped = [queue for queue in self if queue.topic == topic]
        for table in (self.plain, self.batch, self.new):
            for key in [key for key in table if key[0] == topic]:
                del table[key]
        self.set_kinds(TopicKinds(self.kinds.batch - {topic}, self.kinds.compaction))
        return dropped
