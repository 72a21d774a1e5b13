"""Both faces of a consumer: calls that return when they are done, and calls that are awaited.

Members of a group may have either face, in one process or in many.
"""

from __future__ import annotations

from typing_extensions import override

from seglog.client.home import run_at_once
from seglog.consumer.consumer_parts import ConsumerParts
from seglog.consumer.faces import AsyncFace, Face
from seglog.consumer.listener import M


class Consumer(ConsumerParts[M], Face):
    """One member of a consumer group; close it, or use it in a ``with`` statement.

    A plain listener is called in threads of the consumer, one that is ``async def`` in the event loop of the
    thread that clients of the process share. On virtual time both run while time is moved.

    Args:
        target: A broker in this process, the address of a name server, or a Client that is shared.
        group: Who shares the queues and the offsets.
        subscription: A topic, or topics and what is wanted of each: ``*``, ``TagA || TagB``, or
            ``Subscription.by_sql("price > 5")``. None, with no listener: each topic has its own by ``on()``.
        listener: Called with each message, see :data:`~seglog.consumer.listener.Listener`.
        decode: Makes of a body what the message has as ``value``: ``json.loads``, say. Where it raises, the
            message has failed as if the listener had. None for messages without ``value``.
        options: Settings, see :class:`~seglog.consumer.settings.ConsumerSettings`.

    Raises:
        InvalidNameError: The group's name is not valid.
        InvalidArgumentError: A subscription names no tag, a setting is out of its bounds, or the listener is
            annotated with the context of the other kind of consumer.
        ConsumerError: The client has a consumer of the group already.
    """

    def run_until_idle(self, timeout_s: float | None = None) -> int:
        """Consumes and commits all that is available now; starts the consumer if needed.

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
            CommitError: A broker did not take the offsets in the end, as for :meth:`commit`.
            As :meth:`start`, where that was not done.
        """
        return run_at_once(self._consume_until_idle(timeout_s))

    def commit(self) -> None:
        """Commits the offsets of consumed messages now.

        Whichever of them does not take it, the others are told; it is tried again with the next commit that
        is due by time, which says in the log what fails.

        Raises:
            CommitError: A broker refuses, or does not answer; its ``is_retryable`` says whether to try again.
            FencedError: What is not committed is of queues that another member has, or may have, since.
            ConsumerError: It was closed, which has committed all that was done.
            ClientClosedError: Its client was closed.
            SeglogError: The file cannot be written in which one that broadcasts has its offsets.
        """
        run_at_once(self._commit_what_is_done())

    def suspend(self) -> None:
        """Stops pulling until :meth:`resume`; messages that were pulled are still consumed."""
        self._member.suspend(is_suspended=True)

    def resume(self) -> None:
        """Pulls again after :meth:`suspend`."""
        self._member.suspend(is_suspended=False)

    @override
    def close(self, timeout_s: float | None = None) -> None:
        """Starts no further listener, waits for those that run, commits, and releases the queues.

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


class AsyncConsumer(ConsumerParts[M], AsyncFace):
    """One member of a consumer group; its calls are awaited. Close it, or use it in ``async with``.

    It has the calls and settings of a :class:`Consumer`. It is made and used in one event loop, where its
    client lives if it has made it, and where a listener that is ``async def`` is a task; a plain one is
    called in threads of the consumer. On virtual time both run while time is moved.

    Args:
        target: A broker in this process, the address of a name server, or a Client that is shared.
        group: Who shares the queues and the offsets.
        subscription: A topic, or topics and what is wanted of each: ``*``, ``TagA || TagB``, or
            ``Subscription.by_sql("price > 5")``. None, with no listener: each topic has its own by ``on()``.
        listener: Called with each message, see :data:`~seglog.consumer.listener.Listener`.
        decode: Makes of a body what the message has as ``value``: ``json.loads``, say. Where it raises, the
            message has failed as if the listener had. None for messages without ``value``.
        options: Settings, see :class:`~seglog.consumer.settings.ConsumerSettings`.

    Raises:
        InvalidNameError: The group's name is not valid.
        InvalidArgumentError: A subscription names no tag, a setting is out of its bounds, or the listener is
            annotated with the context of the other kind of consumer.
        ConsumerError: The client has a consumer of the group already.
    """

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

    @override
    async def close(self, timeout_s: float | None = None) -> None:
        """Ends it as :meth:`Consumer.close` does; a task that is cancelled meanwhile cuts it short."""
        await self._end(timeout_s)
