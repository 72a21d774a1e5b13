"""Hands messages to an application that polls; they are done when it polls again or commits.

So a commit never covers a message that the application is still processing, and after a crash it gets it
again. Java's client counts a message as consumed when ``poll`` returns it.

Source: ``DefaultLitePullConsumerImpl.java poll``.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, NamedTuple

from seglog.client.client import Client
from seglog.client.home import Bell
from seglog.client.tracing import Tracer
from seglog.consumer.cached_queue import CachedQueue
from seglog.consumer.hands.handed import as_given
from seglog.consumer.hands.one_by_one import is_gone
from seglog.consumer.hands.traces import ListenerTraces
from seglog.consumer.listener import Consume
from seglog.consumer.payloads import decoded_or_not
from seglog.consumer.process_queue import ProcessQueue
from seglog.consumer.settings import ConsumerSettings
from seglog.errors import BodyError, ConsumerError
from seglog.remoting.heartbeat import ConsumedDirectlyBody
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record import Message


class Given(NamedTuple):
    """Messages of one queue that were given to the application.

    Attributes:
        held: The queue.
        cache: The cache that they are of; after a seek the queue has another one.
        messages: As they were pulled.
    """

    held: ProcessQueue
    cache: CachedQueue
    messages: tuple[Message, ...]


class Handing:
    """The queues of one consumer, from which an application takes messages in turn.

    Its flows run on the client's home; the calls that take and end messages run in the polling thread of the
    application, one at a time.

    Args:
        client: Its home and clock are used.
        settings: The settings of the consumer.

    Attributes:
        ready: Rung when messages may be available.
    """

    IS_IN_ORDER: ClassVar[bool] = False
    IS_POLLED: ClassVar[bool] = True

    def __init__(self, client: Client, settings: ConsumerSettings) -> None:
        self._room_from = max(0, settings.max_cached - settings.pull_count)
        self._clock = client.clock
        self._lock = threading.Lock()
        self._turns: deque[ProcessQueue] = deque()
        self._given: list[Given] = []
        self._at: Given | None = None
        self._ahead: deque[Given] = deque()
        self._lost: set[MessageQueue] = set()
        self._decode = settings.decode
        self._tracer = Tracer(client, settings.group, "CONSUME") if settings.trace else None
        self._traces: ListenerTraces | None = None
        if self._tracer is not None:
            self._traces = ListenerTraces(
                self._tracer, settings.group, client.clock, settings.consume_timeout_ms
            )
        self.ready = Bell(client.home)

    async def keep_serving(self, held: ProcessQueue) -> None:
        """Offers a queue until it is dropped; then its next owner gets unfinished messages again."""
        with self._lock:
            self._turns.append(held)
        try:
            while not held.is_dropped:
                await held.work.wait()
                self.ready.ring()
        finally:
            with self._lock:
                self._turns.remove(held)
                if held.is_by_hand and held.is_ahead and not held.is_given_up:
                    self._lost.add(held.queue)

    async def keep_expiring(self, queues: Callable[[], Iterable[ProcessQueue]]) -> None:
        """Returns at once: an application may process polled messages for as long as it likes."""

    async def consume_directly(self, message: Message, queue: MessageQueue) -> ConsumedDirectlyBody:
        """Refuses a message chosen by an operator: there is no listener, as in Java's consumer.

        Raises:
            ConsumerError: Always.
        """
        raise ConsumerError(f"message {message.message_id} of {queue} is not consumed: there is no listener")

    def refuse_from_inside(self, call: str, *, is_bounded: bool) -> None:
        """Refuses nothing: there is no listener."""

    def end(self) -> bool:
        """Wakes waiting polls; no running work could be cancelled."""
        self.ready.ring()
        if self._tracer is not None:
            self._tracer.close()
        return False

    def take(self, count: int) -> list[Message]:
        """Takes the next messages of the queue whose turn it is; messages whose TTL has passed are skipped.

        Args:
            count: At most.

        Returns:
            With the bodies that producers gave; one that cannot be inflated is as it is stored, and says so
            in ``body_error``. Empty where none waits.
        """
        with self._lock:
            given = self._next(count)
        if given is None:
            return []
        try:
            messages = [self._readable(message) for message in given.messages]
        except BaseException:  # such as Ctrl-C while it decodes: they were not given
            with self._lock:
                self._put_back(given)
            raise
        with self._lock:
            self._given.append(given)
        self._trace(messages)
        return messages

    def next_of_loop(self, count: int) -> Message | None:
        """Ends the polled messages and the loop's current one, and takes the next one; None if none waits.

        Args:
            count: The number of messages taken from a queue at a time, to be given one by one.
        """
        self.end_given()
        with self._lock:
            at = self._next_ahead(count)
        if at is None:
            return None
        try:
            message = self._readable(at.messages[0])
        except BaseException:  # as in take()
            with self._lock:
                self._ahead.appendleft(at)
            raise
        self._at = at
        self._trace([message])
        return message

    def _next_ahead(self, count: int) -> Given | None:
        """Returns the next message for a loop, from those taken for it."""
        while True:
            while self._ahead and not self._is_offered(self._ahead[0]):
                self._put_back(self._ahead.popleft())
            if self._ahead:
                at = self._ahead.popleft()
                if not self._not_gone(at.held, at.messages):  # its TTL has passed since it was taken
                    continue
                return at
            given = self._next(count)
            if given is None:
                return None
            self._ahead.extend(given._replace(messages=(message,)) for message in given.messages)

    def first_ahead(self, held: ProcessQueue) -> int | None:
        """Returns the offset of the next message of a queue that was taken for a loop and not given yet."""
        with self._lock:
            found = (one.messages[0] for one in self._ahead if one.held is held and one.cache is held.cache)
            return next((message.queue_offset for message in found), None)

    def end_loop(self) -> None:
        """Returns the message at which a loop was left, and those after it, to the waiting messages."""
        if self._at is None and not self._ahead:
            return  # no loop was left; only the thread of the call changes these
        with self._lock:
            left = [*self._ahead] if self._at is None else [self._at, *self._ahead]
            if self._at is not None and self._at.held in self._turns:
                self._turns.remove(self._at.held)
                self._turns.appendleft(self._at.held)
            self._at = None
            self._ahead.clear()
            for given in left:
                self._put_back(given)

    def end_given(self) -> None:
        """Marks the messages that the application has as done."""
        self._end_at()
        if not self._given:
            return  # only the thread of the call adds some
        with self._lock:
            done, self._given = self._given, []
        for given in done:
            self._end(given)

    def take_lost(self) -> set[MessageQueue]:
        """Returns lost queues with processed messages, except queues that the consumer has again.

        These messages can no longer be committed; only queues since the last call are returned.
        """
        with self._lock:
            lost, self._lost = self._lost, set()
            return lost - {held.queue for held in self._turns}

    def _end_at(self) -> None:
        at, self._at = self._at, None
        if at is not None:
            self._end(at)

    def _end(self, given: Given) -> None:
        held, cache, messages = given
        held.counts.delivered += len(messages)
        cache.remove(messages)
        if held.is_dropped and not held.is_given_up:
            with self._lock:
                self._lost.add(held.queue)
        if cache.counts().messages <= self._room_from:  # else each message would wake the pulling flow
            held.pulls.ring()
        held.progress.ring()

    def _put_back(self, given: Given) -> None:
        given.cache.put_back(given.messages)
        given.held.work.ring()

    def _is_offered(self, given: Given) -> bool:
        held = given.held
        return not (held.is_dropped or held.is_paused or held.cache is not given.cache)

    def _next(self, count: int) -> Given | None:
        for _ in range(len(self._turns)):
            held = self._turns[0]
            self._turns.rotate(-1)
            while messages := () if held.is_dropped or held.is_paused else held.cache.take(count):
                wanted = self._not_gone(held, messages)
                if wanted:
                    held.consumed_ms = self._clock.now_ms()
                    return Given(held, held.cache, wanted)
        return None

    def _not_gone(self, held: ProcessQueue, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Returns the messages whose TTL has not passed; the others are done."""
        gone = [message for message in messages if is_gone(self._clock, message)]
        if not gone:
            return messages
        held.cache.remove(gone)
        held.counts.expired += len(gone)
        held.progress.ring()
        return tuple(message for message in messages if message not in gone)

    def _trace(self, messages: Sequence[Message]) -> None:
        """Traces polled messages as given and as successful, both at once, as in Java."""
        if self._traces is not None:
            before = self._traces.before(messages)
            self._traces.after(before, len(messages), 0, Consume.SUCCESS, has_raised=False)

    def _readable(self, message: Message) -> Message:
        if self._decode is not None:
            return decoded_or_not(message, self._decode)
        try:
            return as_given(message)
        except BodyError:
            return message
