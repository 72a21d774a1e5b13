"""LitePullConsumer: the application polls for messages.

    with LitePullConsumer(broker, "billing", {"orders": "paid || refunded"}) as consumer:
        for order in consumer:          # for ever; each is committed once the loop goes on to the next
            bill(order)

    consumer.assign([queue])            # or: these queues, and not a share of the group's
    consumer.seek(queue, "begin")
    for order in consumer.poll(1.0):    # what is there, within a second
        bill(order)
    consumer.commit()

Polled messages are done once the application polls again or commits, so a commit never covers a message that
is still being processed. Java's client counts a message as consumed when ``poll`` returns it, and loses it if
the application crashes then.

Source: ``DefaultLitePullConsumer.java``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Self, Unpack, overload

from typing_extensions import override

from seglog.client.connect import Target
from seglog.client.home import run_at_once
from seglog.consumer.faces import AsyncFace, Face
from seglog.consumer.listener import M
from seglog.consumer.lite.lite_member import Place
from seglog.consumer.lite.lite_parts import POLL_S, LiteParts
from seglog.consumer.payloads import DecodedMessage, P
from seglog.consumer.settings import LiteOptions, Wanted
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription import ALL_TAGS, Subscription
from seglog.storage.format.record import Message


class LitePullConsumer(LiteParts[M], Face):
    """A consumer that the application polls; close it, or use it in a ``with`` statement.

    It shares the queues of its topics with the group (``subscribe``), or has assigned queues (``assign``).
    Only one thread at a time may poll it or be in its ``for`` loop: polled messages are done once any thread
    polls or commits.
    """

    if TYPE_CHECKING:  # of a constructor of the class itself alone checkers take which class a message has

        @overload
        def __init__(
            self: LitePullConsumer[Message],
            target: Target,
            group: str,
            subscription: Wanted | None = None,
            *,
            decode: None = None,
            **options: Unpack[LiteOptions],
        ) -> None: ...
        @overload
        def __init__(
            self: LitePullConsumer[DecodedMessage[P]],
            target: Target,
            group: str,
            subscription: Wanted | None = None,
            *,
            decode: Callable[[bytes], P],
            **options: Unpack[LiteOptions],
        ) -> None: ...
        def __init__(self, *given: object, **options: object) -> None: ...

    def subscribe(self, topic: str, wanted: str | Subscription = ALL_TAGS) -> None:
        """Subscribes to a topic and shares its queues with the group; a second call changes the filter.

        Args:
            topic: The topic.
            wanted: ``*``, ``TagA || TagB``, or ``Subscription.by_sql("price > 5")``. Messages pulled with an
                older filter are still returned.

        Raises:
            InvalidNameError: The topic's name is not valid.
            InvalidArgumentError: It names no tag.
            ConsumerError: It was closed, or has its queues by :meth:`assign`.
        """
        run_at_once(self._subscribe(topic, wanted))

    def unsubscribe(self, topic: str) -> None:
        """Ends the subscription to a topic.

        Messages polled from its queues are committed by the next :meth:`commit`, or when the next poll marks
        them as done. Without either call the next owner of the queues gets them again.

        Raises:
            ConsumerError: It was closed.
        """
        run_at_once(self._unsubscribe(topic))

    def queues_of(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns the readable queues of a topic, for :meth:`assign`: Java's ``fetchMessageQueues``.

        The name server is asked each time. The consumer need not be started, or subscribe to the topic.

        Returns:
            In order; at least one.

        Raises:
            RemoteProtocolError: The topic does not exist, or has no readable queue.
            InvalidNameError: The topic's name is not valid.
            ConsumerError: It was closed.
            SeglogError: There is no answer.
        """
        return run_at_once(self._queues_of(topic))

    def assign(self, queues: Collection[MessageQueue]) -> None:
        """Assigns exactly these queues, without regard to other members; a later call replaces them.

        It continues at the group's committed offsets. No queue is shared, and other members are not told. The
        queues are assigned when this call returns; the call starts the consumer if needed. Messages polled
        from queues that it gives up are committed as after :meth:`unsubscribe`.

        Raises:
            ConsumerError: A queue does not exist; the consumer was closed, or has its queues by
            :meth:`subscribe`. As :meth:`start`, where that was not done.
        """
        run_at_once(self._assign(queues))

    def poll(self, timeout_s: float = POLL_S, count: int | None = None) -> list[M]:
        """Returns the next messages of one queue, and marks those of the last poll as done.

        Each has the original body of its producer; a body that cannot be inflated is returned as stored, with
        the reason in ``body_error``. On virtual time a poll does due work and does not wait: time passes only
        in ``advance``.

        Args:
            timeout_s: The longest wait for messages.
            count: The most messages; ``pull_count`` by default.

        Returns:
            The messages in order; empty after the timeout, or if another thread has closed the consumer.

        Raises:
            ConsumerError: It was closed before, or another thread polls it now.
            ClientClosedError: Its client was closed.
            As :meth:`start`, where that was not done.
        """
        return run_at_once(self._poll(timeout_s, count))

    def seek(self, queue: MessageQueue, place: Place) -> int:
        """Sets the position in a queue; messages that were pulled before are dropped.

        The place is committed with the next commit, as in Java.

        Args:
            queue: One of :attr:`assignment`.
            place: An offset of the queue, ``"begin"``, ``"end"``, or the time when the first message was
                stored, as a datetime.

        Returns:
            The offset.

        Raises:
            ConsumerError: It does not have the queue, the queue has no such offset, or it was closed.
            SeglogError: The broker refuses, or there is no answer.
        """
        return run_at_once(self._seek(queue, place))

    def pause(self, queues: Collection[MessageQueue]) -> None:
        """Pauses some queues until :meth:`resume`; a queue that is assigned again is not paused.

        Raises:
            ConsumerError: It does not have one of them, or it was closed.
        """
        run_at_once(self._pause(queues, is_paused=True))

    def resume(self, queues: Collection[MessageQueue]) -> None:
        """Polls some queues again after :meth:`pause`.

        Raises:
            ConsumerError: It does not have one of them, or it was closed.
        """
        run_at_once(self._pause(queues, is_paused=False))

    def commit(self) -> None:
        """Commits all polled messages, those of the last poll too.

        If one broker refuses, the commits to other brokers are still made; the timed commits try again.

        Raises:
            CommitError: A broker refuses, or does not answer; its ``is_retryable`` says whether to try again.
            FencedError: The uncommitted messages are of queues that another member has now, which gets them
                again.
            ConsumerError: It was closed, or another thread polls it now.
            ClientClosedError: Its client was closed, or its broker in this process.
            SeglogError: The offsets cannot be written, where a call waits for that: those of a broadcasting
                consumer, and those of a broker in this process with SYNC durability.
        """
        run_at_once(self._commit_polled())

    def __iter__(self) -> Self:
        """Returns itself: a ``for`` loop gets each message as it arrives.

        A message is done once the loop takes the next one. The message at which the loop is left is not done:
        it is not committed, and is first in the next loop or poll, unless ``commit()`` is called.
        """
        self._open_loop()
        return self

    def __next__(self) -> M:
        """Returns the next message, and waits for it; the one before is done.

        Raises:
            StopIteration: The consumer was closed; or, on virtual time, no further message is available
            without time passing. As :meth:`poll`.
        """
        found = run_at_once(self._next_of_loop())
        if found is None:
            raise StopIteration
        return found

    @override
    def close(self, timeout_s: float | None = None) -> None:
        """Commits what is done and releases the queues; the messages of the last poll are delivered again.

        If these are finished too, call :meth:`commit` before. A second call waits for the first, then does
        nothing. A poll that waits in another thread returns an empty list.

        Args:
            timeout_s: The longest wait for brokers; None for no limit.

        Raises:
            TimeoutError: They took longer.
            SeglogError: The last offsets cannot be written, as by :meth:`commit`. The consumer is closed: it
                has left the group, and these messages are delivered again after a restart of the broker.
            InvalidArgumentError: An event loop runs the caller, which would wait for itself.
        """
        run_at_once(self._end(timeout_s))


class AsyncLitePullConsumer(LiteParts[M], AsyncFace):
    """A :class:`LitePullConsumer` whose calls are awaited; it is made in the event loop where it is used."""

    if TYPE_CHECKING:  # of a constructor of the class itself alone checkers take which class a message has

        @overload
        def __init__(
            self: AsyncLitePullConsumer[Message],
            target: Target,
            group: str,
            subscription: Wanted | None = None,
            *,
            decode: None = None,
            **options: Unpack[LiteOptions],
        ) -> None: ...
        @overload
        def __init__(
            self: AsyncLitePullConsumer[DecodedMessage[P]],
            target: Target,
            group: str,
            subscription: Wanted | None = None,
            *,
            decode: Callable[[bytes], P],
            **options: Unpack[LiteOptions],
        ) -> None: ...
        def __init__(self, *given: object, **options: object) -> None: ...

    async def subscribe(self, topic: str, wanted: str | Subscription = ALL_TAGS) -> None:
        """Shares the queues of a topic with the group; see :meth:`LitePullConsumer.subscribe`."""
        await self._subscribe(topic, wanted)

    async def unsubscribe(self, topic: str) -> None:
        """Gives up the queues of a topic; see :meth:`LitePullConsumer.unsubscribe`."""
        await self._unsubscribe(topic)

    async def queues_of(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns the queues of a topic that can be read; see :meth:`LitePullConsumer.queues_of`."""
        return await self._queues_of(topic)

    async def assign(self, queues: Collection[MessageQueue]) -> None:
        """Assigns exactly these queues; see :meth:`LitePullConsumer.assign`."""
        await self._assign(queues)

    async def poll(self, timeout_s: float = POLL_S, count: int | None = None) -> list[M]:
        """Returns the next messages; those of the last poll are done. See :meth:`LitePullConsumer.poll`."""
        return await self._poll(timeout_s, count)

    async def seek(self, queue: MessageQueue, place: Place) -> int:
        """Sets the position in a queue; see :meth:`LitePullConsumer.seek`."""
        return await self._seek(queue, place)

    async def pause(self, queues: Collection[MessageQueue]) -> None:
        """Pauses some queues; see :meth:`LitePullConsumer.pause`."""
        await self._pause(queues, is_paused=True)

    async def resume(self, queues: Collection[MessageQueue]) -> None:
        """Resumes some queues; see :meth:`LitePullConsumer.resume`."""
        await self._pause(queues, is_paused=False)

    async def commit(self) -> None:
        """Commits all polled messages; see :meth:`LitePullConsumer.commit`."""
        await self._commit_polled()

    def __aiter__(self) -> Self:
        """Returns itself, for ``async for``; see :meth:`LitePullConsumer.__iter__`."""
        self._open_loop()
        return self

    async def __anext__(self) -> M:
        """Returns the next message; the one before is done. See :meth:`LitePullConsumer.__next__`."""
        found = await self._next_of_loop()
        if found is None:
            raise StopAsyncIteration
        return found

    @override
    async def close(self, timeout_s: float | None = None) -> None:
        """Ends it; see :meth:`LitePullConsumer.close`."""
        await self._end(timeout_s)
