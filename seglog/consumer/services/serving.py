"""The interface between a member and the receiver of its messages: a listener, or a polling application."""

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
        IS_POLLED: Whether the application polls for them, instead of being called.
    """

    IS_IN_ORDER: ClassVar[bool]
    IS_POLLED: ClassVar[bool]

    async def keep_serving(self, held: ProcessQueue) -> None:
        """Serves a queue until it is dropped and nothing must be waited for."""

    async def keep_expiring(self, queues: Callable[[], Iterable[ProcessQueue]]) -> None:
        """Retries messages that take too long."""

    async def consume_directly(self, message: Message, queue: MessageQueue) -> ConsumedDirectlyBody:
        """Gives a message chosen by an operator to the listener.

        Raises:
            SeglogError: There is no listener.
        """

    def refuse_from_inside(self, call: str, *, is_bounded: bool) -> None:
        """Refuses a call of a listener that would wait for that listener; any thread may call it.

        Args:
            call: What was called, for the error.
            is_bounded: Whether the caller waits with a timeout, and then leaves the listener to itself.

        Raises:
            ConsumerError: The caller is the listener.
        """

    def end(self) -> bool:
        """Stops giving messages; returns whether running work was cancelled."""
