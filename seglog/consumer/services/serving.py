"""What a member of a group needs of what its messages go to: a listener, or an application that polls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Protocol

from seglog.consumer.process_queue import ProcessQueue
from seglog.remoting.heartbeat import ConsumedDirectlyBody
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record import Message


class Serving(Protocol):
    """Takes the messages of a member's queues; its flows run on the client's home.

    Attributes:
        IS_IN_ORDER: Whether messages of a queue are given one after another, under a lock of the queue.
        IS_POLLED: Whether they are given when the application asks, and not by a call of it.
    """

    IS_IN_ORDER: ClassVar[bool]
    IS_POLLED: ClassVar[bool]

    async def keep_serving(self, held: ProcessQueue) -> None:
        """Serves a queue until it is dropped and nothing of it is to be waited for."""

    async def keep_expiring(self, queues: Callable[[], Iterable[ProcessQueue]]) -> None:
        """Has messages tried again that are not come back with in time."""

    async def consume_directly(self, message: Message, queue: MessageQueue) -> ConsumedDirectlyBody:
        """Gives a message that people have picked, of a queue.

        Raises:
            SeglogError: There is no listener.
        """

    def refuse_from_inside(self, call: str, *, is_bounded: bool) -> None:
        """Refuses a call of a listener that would wait for that listener; any thread may call it.

        Args:
            call: What was called, for the error.
            is_bounded: Whether the caller waits for a time only, and leaves the listener to itself then.

        Raises:
            ConsumerError: The listener is what calls.
        """

    def end(self) -> bool:
        """Gives nothing any more; returns whether what is at work was cancelled."""
