"""Both faces of a consumer: calls that return when they are done, and calls that are awaited.

Members of a group may have either face, in one process or in many.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import ClassVar

from typing_extensions import override

from seglog.client.home import run_at_once
from seglog.closing import AsyncClosing, Closing
from seglog.consumer.consumer_parts import ConsumerParts
from seglog.remoting.message_queue import MessageQueue


class Consumer(ConsumerParts, Closing):
    """One member of a consumer group; close it, or use it in a ``with`` statement.

    A plain listener is called in threads of the consumer, one that is ``async def`` in the event loop of the
    thread that clients of the process share. On virtual time both run while time is moved.

    Args:
        target: A broker in this process, the address of a name server, or a Client that is shared.
        group: Who shares the queues and the offsets.
        subscription: A topic, or topics and what is wanted of each: ``*``, ``TagA || TagB``, or
            ``Subscription.by_sql("price > 5")``.
        listener: Called with each message, see :data:`~seglog.consumer.listener.Listener`.
        options: Settings, see :class:`~seglog.consumer.settings.ConsumerSettings`.

    Raises:
        InvalidNameError: No group can be called so.
        InvalidArgumentError: A subscription names no tag, or a setting is out of its bounds.
        ConsumerError: The client has a consumer of the group already.
    """

    _is_awaited: ClassVar[bool] = False

    def start(self) -> None:
        """Starts to consume, on virtual time while time is moved.

        It waits for nothing, but where a subscription is by SQL92: a broker is asked whether it serves that.
        What fails can be started again.

        Raises:
            ConsumerError: It was started or closed before, or its client has another consumer of the group.
            RemoteProtocolError: The broker of a topic refuses the subscription, and says why.
            ClientClosedError: Its client was closed.
            InvalidArgumentError: An event loop runs the caller, where ``close()`` would wait for itself.
        """
        run_at_once(self._start())

    def run_until_idle(self, timeout_s: float | None = None) -> int:
        """Consumes until all that can be consumed now is done and committed; starts if that was not done.

        That is all of its share that brokers have acknowledged before the call. The brokers are asked what
        there is, and it waits for their answers, for a topic that is new since, and for a queue that another
        member has locked still: one that died keeps its locks for a minute. On virtual time no time passes:
        what failed, or sleeps, waits for ``advance``.

        Args:
            timeout_s: How long it may take on real time; None for as long as it takes.

        Returns:
            How many messages the listener was done with meanwhile.

        Raises:
            ConsumerError: It was closed, before or meanwhile, or a listener of its own calls this, which
                would wait for itself.
            ClientClosedError: Its client was closed, before or meanwhile.
            TimeoutError: It took longer; the error says what it waits for.
            As :meth:`start`, where that was not done.
        """
        return run_at_once(self._consume_until_idle(timeout_s))

    def commit(self) -> None:
        """Brings everything consumed to the brokers now; what a broker refuses is tried again later.

        Raises:
            ConsumerError: It was closed, which has committed all that was done.
            ClientClosedError: Its client was closed.
        """
        run_at_once(self._commit_what_is_done())

    def suspend(self) -> None:
        """Pulls nothing more until :meth:`resume`; what was pulled, or is on its way, is consumed."""
        self._member.suspend(is_suspended=True)

    def resume(self) -> None:
        """Pulls again after :meth:`suspend`."""
        self._member.suspend(is_suspended=False)

    def position(self, queue: MessageQueue) -> int | None:
        """Returns the offset of the first message of a queue that no listener was given yet.

        Args:
            queue: One of :attr:`queues`.

        Returns:
            None before the offset is known that the group goes on from.

        Raises:
            ConsumerError: It does not have the queue, or was closed.
        """
        return self._position(queue)

    def committed(self, queue: MessageQueue) -> int | None:
        """Returns the offset that the group has committed in a queue, None where there is none.

        Raises:
            ConsumerError: It was closed.
            SeglogError: The broker refuses, or there is no answer.
        """
        return run_at_once(self._committed(queue))

    def lag(self) -> Mapping[MessageQueue, int]:
        """Returns how many messages are stored in each of its queues behind those that are done.

        Those that its subscription does not want are counted too, as ``mqadmin`` does.

        Raises:
            ConsumerError: It was closed.
            SeglogError: A broker refuses, or there is no answer.
        """
        return run_at_once(self._lag())

    @override
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it; one that was never started says so."""
        self._warn_if_unused(error)
        super().__exit__(kind, error, trace)

    @override
    def close(self, timeout_s: float | None = None) -> None:
        """Lets no message begin, waits for listeners at work, commits, and gives the queues back.

        A second call waits, for its own time, as long as the first one does, but in a listener; after that it
        does nothing. A listener of this consumer that closes it would wait for itself, and is refused: it has
        another thread or task do that, and does not wait for it. A plain one may give a ``timeout_s``, and
        has then what Java's ``shutdown()`` in a listener has: the consumer is closed.

        After a close that took too long nothing more begins, and all is committed but what listeners are at.
        In order such a message is still committed, and its lock given back, where its listener ends within a
        minute and the client lives: one of its own does. Until then, and always where messages are consumed
        side by side, it comes again.

        Args:
            timeout_s: How long listeners may take that are at work; None for as long as it takes.

        Raises:
            TimeoutError: A listener is at work still, and the error says at what. One in a thread is left to
                itself; one that is ``async def`` is cancelled, and its message comes again.
            ConsumerError: A listener calls it that it would wait for. The consumer is open, and goes on.
            InvalidArgumentError: An event loop runs the caller, which would wait for itself. Likewise.
        """
        run_at_once(self._end(timeout_s))


class AsyncConsumer(ConsumerParts, AsyncClosing):
    """One member of a consumer group; its calls are awaited. Close it, or use it in ``async with``.

    It has the calls and settings of a :class:`Consumer`. It is made and used in one event loop, where its
    client lives if it has made it, and where a listener that is ``async def`` is a task; a plain one is
    called in threads of the consumer. On virtual time both run while time is moved.

    Args:
        target: A broker in this process, the address of a name server, or a Client that is shared.
        group: Who shares the queues and the offsets.
        subscription: A topic, or topics and what is wanted of each: ``*``, ``TagA || TagB``, or
            ``Subscription.by_sql("price > 5")``.
        listener: Called with each message, see :data:`~seglog.consumer.listener.Listener`.
        options: Settings, see :class:`~seglog.consumer.settings.ConsumerSettings`.

    Raises:
        InvalidNameError: No group can be called so.
        InvalidArgumentError: A subscription names no tag, or a setting is out of its bounds.
        ConsumerError: The client has a consumer of the group already.
    """

    _is_awaited: ClassVar[bool] = True

    async def start(self) -> None:
        """Starts to consume; see :meth:`Consumer.start`."""
        await self._start()

    async def run_until_idle(self, timeout_s: float | None = None) -> int:
        """Consumes all that can be consumed now; see :meth:`Consumer.run_until_idle`."""
        return await self._consume_until_idle(timeout_s)

    async def commit(self) -> None:
        """Brings everything consumed to the brokers now; see :meth:`Consumer.commit`."""
        await self._commit_what_is_done()

    async def suspend(self) -> None:
        """Pulls nothing more until :meth:`resume`; see :meth:`Consumer.suspend`."""
        self._member.suspend(is_suspended=True)

    async def resume(self) -> None:
        """Pulls again after :meth:`suspend`."""
        self._member.suspend(is_suspended=False)

    async def position(self, queue: MessageQueue) -> int | None:
        """Returns the first offset that was not given yet; see :meth:`Consumer.position`."""
        return self._position(queue)

    async def committed(self, queue: MessageQueue) -> int | None:
        """Returns the committed offset of a queue; see :meth:`Consumer.committed`."""
        return await self._committed(queue)

    async def lag(self) -> Mapping[MessageQueue, int]:
        """Returns what is left of each queue; see :meth:`Consumer.lag`."""
        return await self._lag()

    @override
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it; one that was never started says so."""
        self._warn_if_unused(error)
        await super().__aexit__(kind, error, trace)

    @override
    async def close(self, timeout_s: float | None = None) -> None:
        """Ends it as :meth:`Consumer.close` does; a task that is cancelled meanwhile cuts it short."""
        await self._end(timeout_s)
