"""What the consumers of RocketMQ's two kinds, and both of their faces, are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from inspect import Signature, cleandoc, signature
from typing import ClassVar, Final, Unpack

from typing_extensions import override

from seglog.arguments import as_number, refusal
from seglog.client.connect import Target, client_for
from seglog.client.home import (
    Flow,
    VirtualHome,
    Wait,
    await_for,
    check_may_wait,
    sleep,
    start,
    until,
    wait_here,
)
from seglog.client.member import wait_to_leave
from seglog.consumer.brokers import Brokers
from seglog.consumer.counts import Counts
from seglog.consumer.group_member import GroupMember
from seglog.consumer.listener import Listener
from seglog.consumer.offset_store import BrokerOffsetStore
from seglog.consumer.options import check_options, options_text, with_options
from seglog.consumer.pools.choice import pool_for
from seglog.consumer.service import Service
from seglog.consumer.settings import ConsumerOptions, ConsumerSettings, Wanted, subscriptions_of
from seglog.errors import ConsumerError
from seglog.remoting.message_queue import MessageQueue

CANCELLED_S: Final = 1.0
"""How long a listener that was cancelled may take to end."""
IDLE_LOOK_MS: Final = 5
"""How often it is looked whether a consumer on real time has become idle."""


class ConsumerParts(ABC):
    """One member of a consumer group, of whichever kind and face.

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
        InvalidArgumentError: Or no event loop runs where one is made whose calls are awaited.
    """

    _is_awaited: ClassVar[bool]
    __signature__: ClassVar[Signature]

    @override
    def __init_subclass__(cls) -> None:
        """Shows the settings in the signature and the help of a class of consumers."""
        super().__init_subclass__()
        cls.__signature__ = with_options(signature(ConsumerParts.__init__))
        if cls.__doc__:
            cls.__doc__ = f"{cleandoc(cls.__doc__)}\n\n{options_text()}\n"

    @property
    @abstractmethod
    def _service(self) -> type[Service]:
        """What gives messages to the listener; a class says that of its kind."""

    def __init__(
        self,
        target: Target,
        group: str,
        subscription: Wanted,
        listener: Listener,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        if not callable(listener):
            raise refusal("listener", listener, "a function that takes a message")
        check_options(type(self).__name__, options)
        settings = ConsumerSettings(group, subscriptions_of(subscription), **options)
        self._client, self._is_own = client_for(target, in_loop=self._is_awaited)
        self._client.check_free(group)
        self._home = self._client.home
        self._pool = pool_for(
            self._home, listener, settings.threads, f"seglog-{group}", in_loop=self._is_awaited
        )
        offsets = BrokerOffsetStore(Brokers(self._client), group, settings.consume_from)
        service = self._service(self._client, settings, listener, self._pool)
        self._member = GroupMember(
            self._client, settings, offsets, service, locks=service.IS_IN_ORDER, retries=True
        )
        self._wait: Wait = await_for if self._is_awaited else wait_here
        self._beginning: Flow[None] | None = None
        self._is_closed = False

    @override
    def __repr__(self) -> str:
        state = " closed" if self._is_closed else f" with {len(self.queues)} queues"
        return f"<{type(self).__name__} {self.group} of client {self.client_id}{state}>"

    @property
    def client_id(self) -> str:
        """What its client is called, which is its name in the group."""
        return self._client.client_id

    @property
    def group(self) -> str:
        """Who shares the queues and the offsets with it."""
        return self._member.group

    @property
    def queues(self) -> tuple[MessageQueue, ...]:
        """The queues that it has, in order."""
        return self._member.queues

    @property
    def counts(self) -> Counts:
        """What it has done since it was made."""
        return self._member.counts

    @property
    def is_idle(self) -> bool:
        """Whether all that was stored of its share when it last pulled is done, or waits after a failure."""
        return self._member.is_idle

    async def _start(self) -> None:
        if self._beginning is not None or self._is_closed:
            raise ConsumerError("a consumer can be started once")
        home, member = self._home, self._member
        if member.is_filtered:
            check_may_wait(home, is_awaited=self._is_awaited)
        self._client.claim(member)
        try:
            if member.is_filtered:
                refusal = await self._wait(home, start(home, member.refusal(), "a check of subscriptions"))
                if refusal is not None:
                    raise refusal
            self._beginning = start(home, member.begin(), f"start of group {self.group}")
        finally:
            if self._beginning is None:
                self._client.release(member)

    async def _consume_until_idle(self, timeout_s: float | None) -> int:
        if self._is_closed:
            raise ConsumerError("a consumer that was closed consumes nothing")
        if timeout_s is not None:
            as_number("timeout_s", timeout_s)
        self._member.refuse_from_inside("run_until_idle()", is_bounded=False)
        check_may_wait(self._home, is_awaited=self._is_awaited)
        before = self.counts.delivered
        if self._beginning is None:
            await self._start()
        home = self._home
        if isinstance(home, VirtualHome):
            home.run_due()
        else:
            idle = start(home, self._wait_until_idle(), "a wait until idle")
            try:
                await self._wait(home, idle, timeout_s)
            except TimeoutError as error:
                why = "; ".join(self._member.why_busy()) or "nothing any more"
                raise TimeoutError(f"{error}: it waits for {why}") from error
            finally:
                home.post(idle.stop)
        await self._commit()
        return self.counts.delivered - before

    async def _wait_until_idle(self) -> None:
        while not self._member.is_idle:
            await sleep(self._home, IDLE_LOOK_MS)

    async def _commit(self) -> None:
        check_may_wait(self._home, is_awaited=self._is_awaited)
        await self._wait(self._home, start(self._home, self._member.commit(), "commit"))

    async def _end(self, timeout_s: float | None) -> None:
        if timeout_s is not None:
            as_number("timeout_s", timeout_s)
        if self._is_closed:
            return
        home, client = self._home, self._client
        if home.why_over is not None:
            self._is_closed = True
            self._pool.close()
            if self._is_own:
                client.link.close()
            return
        self._member.refuse_from_inside("close()", is_bounded=timeout_s is not None)
        check_may_wait(home, is_awaited=self._is_awaited)
        self._is_closed = True
        leaving = start(home, self._leave(), "close of a consumer")
        try:
            await wait_to_leave(self._wait, home, leaving, [self._member], timeout_s)
        finally:
            with suppress(TimeoutError):  # there is an error already
                if self._pool.close():
                    await self._wait(home, leaving, CANCELLED_S)
            if self._is_own:
                with suppress(TimeoutError):
                    await client.end(None if leaving.is_done else 0, self._wait, is_awaited=self._is_awaited)

    async def _leave(self) -> None:
        if self._beginning is not None:
            await self._member.leave()
        self._pool.close()
        if self._is_own:
            await until(self._client.leave())
