"""The two faces of a consumer with a listener: blocking calls, and awaited calls.

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

    A plain listener is called in threads of the consumer, an ``async def`` listener in the event loop of the
    thread that the clients of the process share. On virtual time both run while time is moved.

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
        """Consumes and commits all messages that are available now; starts the consumer if needed.

        These are the messages of its share that brokers acknowledged before the call. It asks the brokers for
        the ends of their queues. It waits for their answers, for the queues of a new topic, and for queue
        locks of other members: a member that died keeps its locks for a minute. On virtual time no time
        passes: failed messages and sleeping listeners wait for ``advance``.

        Args:
            timeout_s: Longest duration in real time; None for no limit.

        Returns:
            The number of messages that the listener finished meanwhile.

        Raises:
            ConsumerError: It was closed, before or meanwhile; or its own listener calls this, and would wait
                for itself.
            ClientClosedError: Its client was closed, before or meanwhile.
            TimeoutError: It took longer; the error names what it waits for.
            CommitError: A broker did not take the offsets at the end, as for :meth:`commit`.
            FencedError: Another member has begun in a queue meanwhile, likewise.
            As :meth:`start`, if it was not started before.
        """
        return run_at_once(self._consume_until_idle(timeout_s))

    def commit(self) -> None:
        """Commits the offsets of consumed messages now.

        They are on the disk when it returns, if the broker is in this process and its durability is SYNC.

        If one broker refuses, the commits to other brokers are still made; the next timed commit tries again,
        and logs failures.

        Raises:
            CommitError: A broker refuses, or does not answer; its ``is_retryable`` says whether to try again.
            FencedError: The uncommitted offsets are of queues that another member has, or may have, by now.
            ConsumerError: It was closed; closing has committed all consumed messages.
            ClientClosedError: Its client was closed.
            SeglogError: The offsets cannot be written, where a call waits for that: those of a broadcasting
                consumer, and those of a broker in this process with SYNC durability.
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

        A second call waits for the first one, up to its own timeout, except in a listener; after that it does
        nothing. A listener of this consumer that closes it would wait for itself, and is refused: close it
        from another thread or task, and do not wait there. A plain listener may give a ``timeout_s``; then
        the consumer is closed, as by Java's ``shutdown()`` in a listener.

        After a close that timed out no listener starts any more, and all is committed except the messages of
        running listeners. In an orderly consumer such a message is still committed, and its lock released, if
        its listener ends within a minute and the client is still open, as the consumer's own client is.
        Otherwise, and always in a concurrent consumer, it is delivered again.

        Args:
            timeout_s: Longest wait for running listeners; None for no limit.

        Raises:
            TimeoutError: A listener is still running; the error names its messages. A listener in a thread is
                left to itself; an ``async def`` listener is cancelled, and its message is delivered again.
            SeglogError: The last offsets cannot be written, as by :meth:`commit`. The consumer is closed: it
                has left the group, and these messages are delivered again after a restart of the broker.
            ConsumerError: A listener calls it that it would wait for. The consumer stays open and continues.
            InvalidArgumentError: An event loop runs the caller, which would wait for itself. The consumer
                stays open.
        """
        run_at_once(self._end(timeout_s))


class AsyncConsumer(ConsumerParts[M], AsyncFace):
    """One member of a consumer group; its calls are awaited. Close it, or use it in ``async with``.

    It has the calls and settings of a :class:`Consumer`. It is made and used in one event loop. A client that
    it makes itself runs in that loop, and so do ``async def`` listeners, as tasks; a plain listener is called
    in threads of the consumer. On virtual time both run while time is moved.

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
        """Consumes all available messages; see :meth:`Consumer.run_until_idle`."""
        return await self._consume_until_idle(timeout_s)

    async def commit(self) -> None:
        """Commits the offsets of consumed messages now; see :meth:`Consumer.commit`."""
        await self._commit_what_is_done()

    async def suspend(self) -> None:
        """Pulls nothing more until :meth:`resume`; see :meth:`Consumer.suspend`."""
        self._member.suspend(is_suspended=True)

    async def resume(self) -> None:
        """Pulls again after :meth:`suspend`."""
        self._member.suspend(is_suspended=False)

    @override
    async def close(self, timeout_s: float | None = None) -> None:
        """Closes it as :meth:`Consumer.close` does; cancelling the calling task ends the wait early."""
        await self._end(timeout_s)
