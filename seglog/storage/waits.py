"""The calls of a store with which threads and tasks wait for messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from seglog.arguments import MAX_I64, as_int, as_mapping, as_text, as_timeout_ms, refusal
from seglog.storage.format.names import MAX_QUEUE_ID
from seglog.storage.store_base import StoreBase


class Waits(StoreBase):
    """Waits for the queues of an open store to grow."""

    def wait_for(self, topic: str, queue_id: int, queue_offset: int, timeout_ms: float) -> bool:
        """Waits until the queue has a message at ``queue_offset``; returns whether it has."""
        queue = as_text("topic", topic), as_int("queue_id", queue_id, useful_to=MAX_QUEUE_ID)
        return self.wait_for_any({queue: queue_offset}, timeout_ms)

    def wait_for_any(self, queues: Mapping[tuple[str, int], int], timeout_ms: float) -> bool:
        """Waits until one of many queues has a message at its offset; returns whether one has.

        Args:
            queues: The queue offset to wait for, by topic and queue.
            timeout_ms: The longest wait.
        """
        self._check_open()
        timeout_ms = as_timeout_ms("timeout_ms", timeout_ms)
        return self._core.wait_for_any(_checked_queues(queues), timeout_ms)

    async def wait_for_any_async(self, queues: Mapping[tuple[str, int], int], timeout_ms: float) -> bool:
        """Waits as :meth:`wait_for_any` does; for a store opened for reading a thread polls meanwhile."""
        self._check_open()
        timeout_ms = as_timeout_ms("timeout_ms", timeout_ms)
        return await self._core.wait_for_any_async(_checked_queues(queues), timeout_ms)

    async def wait_for_async(self, topic: str, queue_id: int, queue_offset: int, timeout_ms: float) -> bool:
        """Waits until the queue has a message at ``queue_offset``; returns whether it has."""
        queue = as_text("topic", topic), as_int("queue_id", queue_id, useful_to=MAX_QUEUE_ID)
        return await self.wait_for_any_async({queue: queue_offset}, timeout_ms)

    def listen(self, topic: str, queue_id: int, wake: Callable[[], None]) -> None:
        """Calls ``wake`` after every put to a queue, until :meth:`unlisten`; also when the store closes.

        Args:
            topic: The topic.
            queue_id: The queue.
            wake: Called by the thread that puts, before its call returns; must be quick and must not raise.
                The message can be read already.

        Raises:
            ReadOnlyError: The store was opened for reading, so it is not informed about puts.
        """
        if not callable(wake):
            raise refusal("wake", wake, "a function")
        topic, queue_id = as_text("topic", topic), as_int("queue_id", queue_id, useful_to=MAX_QUEUE_ID)
        self._core.listen(topic, queue_id, wake)

    def unlisten(self, topic: str, queue_id: int, wake: Callable[[], None]) -> None:
        """Ends the calls that :meth:`listen` began with the same ``wake``; one may still be under way."""
        self._core.unlisten(topic, queue_id, wake)


def _checked_queues(queues: Mapping[tuple[str, int], int]) -> Mapping[tuple[str, int], int]:
    """Returns the offsets to wait for in queues.

    Raises:
        InvalidArgumentError: A topic, queue or offset is of another type.
    """
    found: dict[tuple[str, int], int] = {}
    for key, queue_offset in as_mapping("queues", queues).items():
        try:
            topic, queue_id = key
        except (TypeError, ValueError):
            raise refusal("queues", key, "a topic and a queue id as each key") from None
        queue = as_text("topic", topic), as_int("queue_id", queue_id, useful_to=MAX_QUEUE_ID)
        found[queue] = as_int("queue_offset", queue_offset, useful_to=MAX_I64)
    return found
