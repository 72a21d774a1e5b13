"""The calls that all consumers share, for both faces: blocking calls, and awaited calls."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import ClassVar

from typing_extensions import override

from seglog.client.home import run_at_once
from seglog.closing import AsyncClosing, Closing
from seglog.consumer.member_parts import MemberParts
from seglog.other_names import LoopFace, PlainFace
from seglog.remoting.message_queue import MessageQueue


class Face(MemberParts, Closing, PlainFace):
    """A consumer whose calls return when they are done."""

    _is_awaited: ClassVar[bool] = False

    def start(self) -> None:
        """Joins the group and starts to consume, on virtual time while time is moved.

        It waits only in two cases: with a SQL92 subscription, for a broker's answer whether it accepts that;
        and when broadcasting, for the queues of its topics, since queues created later are consumed from
        their first message. After a failure it can be started again.

        Raises:
            ConsumerError: It was started or closed before, its client has another consumer of the group, or
                it has no listener yet.
            RemoteProtocolError: The broker of a topic refuses the subscription; the error has its reason.
            ClientClosedError: Its client was closed.
            InvalidArgumentError: An event loop runs the caller, where ``close()`` would wait for itself.
        """
        run_at_once(self._start())

    def position(self, queue: MessageQueue) -> int:
        """Returns the offset of a queue's first message that was not polled or given to a listener yet.

        Args:
            queue: One of :attr:`queues`.

        For a queue that was not pulled yet it is the offset at which the group continues, by the broker's
        answer.

        Raises:
            ConsumerError: It does not have the queue, or was closed.
            SeglogError: The broker refuses, or there is no answer.
        """
        return run_at_once(self._position(queue))

    def committed(self, queue: MessageQueue) -> int | None:
        """Returns the offset that the group has committed in a queue, None if there is none.

        It is the one that the broker has in memory. After a ``commit()`` that raised because the disk is full
        that is the offset of this commit, which a crash of the broker loses until a later commit is written.

        A RocketMQ broker before 5.0 answers 0 instead of none if the queue still has its first message in
        memory.

        Raises:
            ConsumerError: It was closed.
            SeglogError: The broker refuses, or there is no answer.
        """
        return run_at_once(self._committed(queue))

    def lag(self) -> Mapping[MessageQueue, int]:
        """Returns how many messages are stored in each of its queues behind those that are done.

        It asks the brokers. Messages that the subscription does not want are counted too, as by ``mqadmin``.

        Returns:
            For each of :attr:`queues`; empty before it has joined its group and got its share.

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


class AsyncFace(MemberParts, AsyncClosing, LoopFace):
    """A consumer whose calls are awaited."""

    _is_awaited: ClassVar[bool] = True

    async def start(self) -> None:
        """Joins the group and starts to consume; see :meth:`Face.start`."""
        await self._start()

    async def position(self, queue: MessageQueue) -> int:
        """Returns the first offset that was not given yet; see :meth:`Face.position`."""
        return await self._position(queue)

    async def committed(self, queue: MessageQueue) -> int | None:
        """Returns the committed offset of a queue; see :meth:`Face.committed`."""
        return await self._committed(queue)

    async def lag(self) -> Mapping[MessageQueue, int]:
        """Returns what is left of each queue; see :meth:`Face.lag`."""
        return await self._lag()

    @override
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it; one that was never started says so."""
        self._warn_if_unused(error)
        await super().__aexit__(kind, error, trace)
