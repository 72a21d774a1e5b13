"""Both faces of a consumer: calls that return when they are done, and calls that are awaited.

Members of a group may have either face, in one process or in many.
"""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar, Final

from typing_extensions import override

from seglog.client.home import VirtualHome, await_for, wait_for
from seglog.client.member import late_error
from seglog.closing import AsyncClosing, Closing
from seglog.consumer.consumer_parts import ConsumerParts

CANCELLED_S: Final = 1.0
"""How long a listener that was cancelled may take to end."""


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
        """Starts to consume, on virtual time while time is moved. It does not wait.

        Raises:
            ConsumerError: It was started or closed before.
        """
        self._begin()

    def run_until_idle(self, timeout_s: float | None = None) -> int:
        """Consumes until all that can be consumed now is done and committed; starts if that was not done.

        On virtual time no time passes: what failed, or sleeps, waits for ``advance``.

        Args:
            timeout_s: How long it may take on real time; None for as long as it takes.

        Returns:
            How many messages the listener was done with meanwhile.

        Raises:
            ConsumerError: It was closed.
            TimeoutError: It took longer.
        """
        before = self._begin_to_idle(timeout_s)
        home = self._home
        if isinstance(home, VirtualHome):
            home.run_due()
        else:
            idle = self._idle()
            try:
                wait_for(home, idle, timeout_s)
            finally:
                home.post(idle.stop)
        self.commit()
        return self.counts.delivered - before

    def commit(self) -> None:
        """Brings everything consumed to the brokers now; what a broker refuses is tried again later."""
        wait_for(self._home, self._commit())

    @override
    def close(self, timeout_s: float | None = None) -> None:
        """Lets no message begin, waits for listeners at work, commits, and gives the queues back.

        A second call does nothing.

        Args:
            timeout_s: How long listeners may take that are at work; None for as long as it takes.

        Raises:
            TimeoutError: A listener is at work still, and the error says at what. Its message is not
                committed, and comes again. A listener in a thread is left to itself; one that is
                ``async def`` is cancelled.
        """
        leaving = self._begin_to_leave(timeout_s)
        if leaving is None:
            return
        try:
            wait_for(self._home, leaving, timeout_s)
        except TimeoutError as error:
            raise late_error(error, [self._member]) from error
        finally:
            with suppress(TimeoutError):  # there is an error already
                if self._pool.close():
                    wait_for(self._home, leaving, CANCELLED_S)
            if self._is_own:
                with suppress(TimeoutError):
                    self._client.close(None if leaving.is_done else 0)


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
        self._begin()

    async def run_until_idle(self, timeout_s: float | None = None) -> int:
        """Consumes all that can be consumed now; see :meth:`Consumer.run_until_idle`."""
        before = self._begin_to_idle(timeout_s)
        home = self._home
        if isinstance(home, VirtualHome):
            home.run_due()
        else:
            idle = self._idle()
            try:
                await await_for(home, idle, timeout_s)
            finally:
                home.post(idle.stop)
        await self.commit()
        return self.counts.delivered - before

    async def commit(self) -> None:
        """Brings everything consumed to the brokers now; see :meth:`Consumer.commit`."""
        await await_for(self._home, self._commit())

    @override
    async def close(self, timeout_s: float | None = None) -> None:
        """Ends it as :meth:`Consumer.close` does; a task that is cancelled meanwhile cuts it short."""
        leaving = self._begin_to_leave(timeout_s)
        if leaving is None:
            return
        try:
            await await_for(self._home, leaving, timeout_s)
        except TimeoutError as error:
            raise late_error(error, [self._member]) from error
        finally:
            with suppress(TimeoutError):  # there is an error already
                if self._pool.close():
                    await await_for(self._home, leaving, CANCELLED_S)
            if self._is_own:
                with suppress(TimeoutError):
                    await self._client.aclose(None if leaving.is_done else 0)
