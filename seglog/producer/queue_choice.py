"""Chooses the queue of a message.

Source: ``SelectMessageQueueByHash.java``, ``TopicPublishInfo.java selectOneMessageQueue``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from seglog.errors import InvalidArgumentError
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record import java_string_hash


def by_key(queues: Sequence[MessageQueue], key: str) -> MessageQueue:
    """Returns the queue of all messages with this key, the same that Java's producer chooses."""
    return queues[abs(java_string_hash(key)) % len(queues)]


def by_id(queues: Sequence[MessageQueue], queue_id: int) -> MessageQueue:
    """Returns the queue with this number.

    Raises:
        InvalidArgumentError: The topic has none.
    """
    if 0 <= queue_id < len(queues) and queues[queue_id].queue_id == queue_id:
        return queues[queue_id]
    for queue in queues:
        if queue.queue_id == queue_id:
            return queue
    raise InvalidArgumentError(
        f"topic {queues[0].topic} has no queue {queue_id} to write to", help="use one of its queues, from 0"
    )


class RoundRobin:
    """One queue after another. Any thread may call it.

    Args:
        start: The first queue's index, so that not every producer begins with the first queue.
    """

    def __init__(self, start: int) -> None:
        self._turns = itertools.count(start)

    def next(self, queues: Sequence[MessageQueue]) -> MessageQueue:
        """Returns the queue whose turn it is."""
        return queues[next(self._turns) % len(queues)]
