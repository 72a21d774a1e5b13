"""What gives the messages of queues to the listener."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from functools import partial
from typing import ClassVar, Final

from seglog.client.client import Client
from seglog.client.home import until
from seglog.consumer.handing import named
from seglog.consumer.listener import Listener, is_awaited
from seglog.consumer.pools.pool import ListenerPool
from seglog.consumer.process_queue import ProcessQueue
from seglog.consumer.reports.direct import consume_directly
from seglog.consumer.send_back import ENDLESS, SendBack
from seglog.consumer.settings import FOR_EVER, ConsumerSettings
from seglog.errors import ConsumerError
from seglog.remoting.heartbeat import ConsumedDirectlyBody
from seglog.storage.format.record import Message

_WAY_OUT: Final = "begin it in a thread or a task for which the listener does not wait"
_WAY_OUT_OF_A_THREAD: Final = (
    "begin it in a thread for which the listener does not wait; or give close() a timeout_s: "
    "then the message of this listener is not committed, and comes again"
)
_log = logging.getLogger(__name__)


class Service(ABC):
    """Serves the queues of one consumer; its flows run on the client's home.

    Attributes:
        IS_IN_ORDER: Whether messages of a queue are given one after another.

    Args:
        client: Whose home and clock.
        settings: Of the consumer.
        listener: The application's.
        pool: Where it is called.
    """

    IS_IN_ORDER: ClassVar[bool]

    def __init__(
        self, client: Client, settings: ConsumerSettings, listener: Listener, pool: ListenerPool
    ) -> None:
        self._client = client
        self._settings = settings
        self._listener = listener
        self._is_async = is_awaited(listener)
        self._pool = pool
        is_endless = settings.max_reconsume_times == FOR_EVER
        self._most = ENDLESS if is_endless else settings.max_reconsume_times
        self._send_back = SendBack(client, settings.group, None if is_endless else self._most)

    @abstractmethod
    async def keep_serving(self, held: ProcessQueue) -> None:
        """Serves a queue until it is dropped and the listener has ended with what it was at."""

    def refuse_from_inside(self, call: str, *, is_bounded: bool) -> None:
        """Refuses a call of the listener that would wait for the listener; any thread may call it.

        Args:
            call: What was called, for the error.
            is_bounded: Whether the caller waits for a time only, and leaves the listener to itself then.

        Raises:
            ConsumerError: The listener is what calls.
        """
        pool = self._pool
        if pool.is_here() and not (is_bounded and pool.LEAVES_ALONE):
            raise ConsumerError(
                f"{call} was called by a listener of group {self._settings.group}, and would wait for it",
                help=_WAY_OUT_OF_A_THREAD if pool.LEAVES_ALONE else _WAY_OUT,
            )

    def warn_of_end(self, held: ProcessQueue, message: Message) -> None:
        """Logs that a message was sent away after its last attempt, which a group must be able to find."""
        attempt = named(self._settings.group, held.queue, message)
        _log.warning("given up, and sent to the dead letters after its last attempt: %s", attempt)

    async def consume_directly(self, message: Message) -> ConsumedDirectlyBody:
        """Gives a message to the listener that people have picked."""
        call = partial(
            consume_directly,
            self._listener,
            message,
            self._client.clock,
            is_async=self._is_async,
            is_in_order=self.IS_IN_ORDER,
        )
        return await until(self._pool.run(call))
