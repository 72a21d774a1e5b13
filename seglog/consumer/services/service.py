"""The common base of the services, which give messages of queues to the listener."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import ClassVar, Final

from seglog.client.client import Client
from seglog.client.home import rest, until
from seglog.client.links import level_of
from seglog.client.tracing import Tracer
from seglog.consumer.cached_queue import CachedQueue
from seglog.consumer.hands.batches import hand_batches
from seglog.consumer.hands.failures import Failures
from seglog.consumer.hands.form import Form
from seglog.consumer.hands.handed import Handed, as_given, named
from seglog.consumer.hands.one_by_one import hand
from seglog.consumer.hands.traces import ListenerTraces
from seglog.consumer.payloads import decoded
from seglog.consumer.pools.pool import ListenerPool
from seglog.consumer.process_queue import ProcessQueue
from seglog.consumer.reports.direct import consume_directly
from seglog.consumer.send_back import ENDLESS, SendBack
from seglog.consumer.settings import FOR_EVER, ConsumerSettings
from seglog.consumer.shares.words import in_words
from seglog.errors import ConsumerError, RemoteProtocolError, SeglogError
from seglog.forked import abandon_in_children
from seglog.logs import logger
from seglog.remoting.codes import ResponseCode
from seglog.remoting.heartbeat import ConsumedDirectlyBody
from seglog.remoting.later import CancelledError
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record import Message
from seglog.storage.format.record import properties as props

AGAIN_MS: Final = 5_000
"""Pause of a failed message that could not be sent back."""
_WAY_OUT: Final = "begin it in a thread or a task for which the listener does not wait"
_WAY_OUT_OF_A_THREAD: Final = (
    "begin it in a thread for which the listener does not wait; or give close() a timeout_s: "
    "then the message of this listener is not committed, and comes again"
)
_AUTO: Final = "its context says auto_commit, as it does unless the listener sets it to False"
RESUBMIT_MS: Final = 5_000
"""Pause before messages are handed over again that could not be: ``submitConsumeRequestLater``."""
_log = logger(__name__)


class Service(ABC):
    """Serves the queues of one consumer; its flows run on the client's home.

    Attributes:
        IS_IN_ORDER: Whether messages of a queue are given one after another.

    Args:
        client: Its home and clock are used.
        settings: The settings of the consumer.
        listener: The application's.
        pool: Calls it.
    """

    IS_IN_ORDER: ClassVar[bool]
    IS_POLLED: ClassVar[bool] = False

    def __init__(
        self,
        client: Client,
        settings: ConsumerSettings,
        listener: Callable[..., object],
        pool: ListenerPool,
    ) -> None:
        self._client = client
        self._settings = settings
        self.tracer = Tracer(client, settings.group, "CONSUME") if settings.trace else None
        decode = settings.decode
        self._form = Form.of(
            listener,
            settings.group,
            client.clock,
            settings.batch_size,
            is_in_order=self.IS_IN_ORDER,
            traces=None
            if self.tracer is None
            else ListenerTraces(self.tracer, settings.group, client.clock, settings.consume_timeout_ms),
            read=as_given if decode is None else partial(decoded, decode=decode),
        )
        self._hand = hand if self._form.is_plain else hand_batches
        self._pool = pool
        self._has_warned = self._is_forked = False
        abandon_in_children(self, Service._abandon)
        self._failures = Failures()
        is_endless = settings.max_reconsume_times == FOR_EVER
        self._most = ENDLESS if is_endless else settings.max_reconsume_times
        self._send_back = SendBack(client, settings.group, None if is_endless else self._most)

    @abstractmethod
    async def keep_serving(self, held: ProcessQueue) -> None:
        """Serves a queue until it is dropped and running listeners have ended."""

    async def run(self, held: ProcessQueue, cache: CachedQueue, handed: Handed) -> Handed:
        """Calls the listener with messages of a queue, in its pool; returns their results.

        Args:
            held: The queue.
            cache: The cache that they are of; once the queue has another one, no more of them begin.
            handed: The messages.

        Raises:
            CancelledError: The pool was closed before their turn.
        """
        handed.failures, handed.cache = self._failures, cache
        held.in_hand.append(handed)
        held.progress.ring()
        try:
            while not await self._has_run(held, cache, handed):
                await rest(self._client.home, RESUBMIT_MS, held.ending)
        finally:
            held.in_hand.remove(handed)
        held.note_handed(handed)
        if handed.acks is not None:
            level = logging.DEBUG if self._has_warned else logging.WARNING
            self._has_warned = True
            text = "a listener of group %s returned %s, which is taken for a success: %s"
            _log.log(level, text, self._settings.group, handed.acks, _AUTO)
        return handed

    async def _has_run(self, held: ProcessQueue, cache: CachedQueue, handed: Handed) -> bool:
        """Returns whether messages were handed over; errors outside of the listener fail them too."""
        try:
            await until(self._pool.run(partial(self.hand, held, cache, handed)))
        except CancelledError:
            raise
        except Exception as error:  # otherwise the queue would never be served again
            if self._is_forked:
                raise
            if not handed.is_begun:  # for example if no more threads can be started
                level = self._client.troubles.seldom(f"hands of {held.queue}")
                text = "messages of %s wait for %d ms: %s"
                _log.log(level, text, in_words([held.queue]), RESUBMIT_MS, error)
                return held.is_dropped
            handed.give_up(error)
        return True

    async def hand(self, held: ProcessQueue, cache: CachedQueue, handed: Handed) -> None:
        """Calls the listener with messages, see :mod:`seglog.consumer.hands`.

        A child process that the listener forks gets no further message; it ends when the listener ends.
        """
        await self._hand(self._form, handed, held.queue, self._may_go_on(held, cache))
        if self._is_forked and handed.failed:
            raise handed.error or SystemExit(1)  # the exception was logged

    @abstractmethod
    def _may_go_on(self, held: ProcessQueue, cache: CachedQueue) -> Callable[[], bool]:
        """Returns a function that is asked before each call whether the listener may be called again.

        In a forked child it returns False.
        """

    def _abandon(self) -> None:
        """Stops calls of the listener, in a forked child."""
        self._is_forked = True

    async def keep_expiring(  # noqa: B027 - in order nothing is to be done
        self, queues: Callable[[], Iterable[ProcessQueue]]
    ) -> None:
        """Retries messages that the listener takes too long for; an orderly service waits instead."""

    def refuse_from_inside(self, call: str, *, is_bounded: bool) -> None:
        """Refuses a call of the listener that would wait for the listener; any thread may call it.

        Args:
            call: What was called, for the error.
            is_bounded: Whether the caller waits with a timeout, and then leaves the listener to itself.

        Raises:
            ConsumerError: The caller is the listener.
        """
        pool = self._pool
        if pool.is_here() and not (is_bounded and pool.LEAVES_ALONE):
            raise ConsumerError(
                f"{call} was called by a listener of group {self._settings.group}, and would wait for it",
                help=_WAY_OUT_OF_A_THREAD if pool.LEAVES_ALONE else _WAY_OUT,
            )

    def end(self) -> bool:
        """Stops calls of the listener; see ``ListenerPool.close``."""
        if self.tracer is not None:
            self.tracer.close()
        return self._pool.close()

    async def _has_ended_as_it_is(self, held: ProcessQueue, message: Message) -> bool:
        """Sends a message without room for retry properties to the dead letters; returns whether it could."""
        try:
            await self._send_back.end_as_it_is(message)
        except SeglogError as error:
            attempt = named(self._settings.group, held.queue, message)
            _log.log(level_of(error), "not taken by the dead letters: %s: %s", attempt, error)
            return False
        self.warn_of_end(held, message)
        return True

    def warn_of_too_long(
        self, held: ProcessQueue, message: Message, error: SeglogError, *, is_said: bool
    ) -> None:
        """Logs that no broker can retry a message, since a copy of it would be too long."""
        has_end = self._most != ENDLESS
        _log.log(
            logging.DEBUG if is_said else logging.WARNING,
            "cannot be given back, for its copy would be longer than a message may be (its properties take"
            " %d of %d bytes, and a retry has more): %s: %s; this member tries it again every %d s, %s, and"
            " commits nothing behind it in its queue meanwhile: have the listener accept it, and send fewer"
            " properties",
            len(message.properties_raw),
            props.MAX_PROPERTIES_BYTES,
            named(self._settings.group, held.queue, message),
            error,
            AGAIN_MS // 1_000,
            f"until its attempt {self._most + 1} and then gives it up" if has_end else "for ever",
        )

    def warn_of_end(self, held: ProcessQueue, message: Message) -> None:
        """Logs that a message was given up after its last attempt, so that the group can find it."""
        attempt = named(self._settings.group, held.queue, message)
        _log.warning("given up, and sent to the dead letters after its last attempt: %s", attempt)

    async def consume_directly(self, message: Message, queue: MessageQueue) -> ConsumedDirectlyBody:
        """Gives a message chosen by an operator to the listener."""
        return await until(self._pool.run(partial(consume_directly, self._form, message, queue)))


def is_too_long(error: SeglogError) -> bool:
    """Returns whether a broker will never take a message, because it is too long."""
    return isinstance(error, RemoteProtocolError) and error.code is ResponseCode.MESSAGE_ILLEGAL
