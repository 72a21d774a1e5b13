"""What the consumers of RocketMQ's two kinds that call a listener, and both of their faces, are made of."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final, Unpack

from seglog.arguments import as_number, refusal
from seglog.client.connect import Target, client_for
from seglog.client.home import VirtualHome, sleep, start
from seglog.consumer.group_member import GroupMember
from seglog.consumer.listener import Listener
from seglog.consumer.member_parts import MemberParts, offsets_of
from seglog.consumer.pools.choice import pool_for
from seglog.consumer.services.service import Service
from seglog.consumer.settings import ConsumerOptions, ConsumerSettings, Wanted, subscriptions_of

FIRST_IDLE_LOOK_MS: Final = 0.5
IDLE_LOOK_MS: Final = 5.0
"""How often it is looked whether a consumer on real time has become idle, after ever longer pauses."""
_NOT_SAID: Final = "its brokers to say whether there is more"


class ConsumerParts(MemberParts):
    """One member of a consumer group, of whichever kind and face.

    Args:
        target: A broker in this process, the address of a name server, or a Client that is shared.
        group: Who shares the queues and the offsets.
        subscription: A topic, or topics and what is wanted of each: ``*``, ``TagA || TagB``, or
            ``Subscription.by_sql("price > 5")``.
        listener: Called with each message. One that returns nothing is done with it; to get it again it
            raises, or returns ``Consume.RECONSUME_LATER``. It may be ``async def``.
        options: Settings, see :class:`~seglog.consumer.settings.ConsumerSettings`.

    Raises:
        InvalidNameError: No group can be called so.
        InvalidArgumentError: A subscription names no tag, or a setting is out of its bounds.
        ConsumerError: The client has a consumer of the group already.
        InvalidArgumentError: Or no event loop runs where one is made whose calls are awaited.
    """

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
        settings = ConsumerSettings(group, subscriptions_of(subscription), **options)
        client, is_own = client_for(target, in_loop=self._is_awaited, keeps_its_name=settings.is_broadcasting)
        client.check_free(group)
        pool = pool_for(client.home, listener, settings.threads, f"seglog-{group}", in_loop=self._is_awaited)
        service = self._service(client, settings, listener, pool)
        member = GroupMember(client, settings, offsets_of(client, settings), service)
        self._set_up(target, client, member, is_own=is_own)

    @property
    def is_idle(self) -> bool:
        """Whether all that was stored of its share when it last pulled is done, or waits after a failure."""
        return self._member.is_idle

    async def _consume_until_idle(self, timeout_s: float | None) -> int:
        self._check_open()
        if timeout_s is not None:
            as_number("timeout_s", timeout_s)
        self._member.refuse_from_inside("run_until_idle()", is_bounded=False)
        self._refuse_in_loop()
        self._check_may_wait()
        before = self.counts.delivered
        if self._beginning is None:
            await self._start()
        home = self._home
        if isinstance(home, VirtualHome):
            start(home, self._member.look(), "a look at what is stored")
            home.run_due()
        else:
            idle = start(home, self._wait_until_idle(), "a wait until idle")
            try:
                if not await self._wait(home, idle, timeout_s):
                    self._check_open()
            except TimeoutError as error:
                why = "; ".join(self._member.why_busy()) or _NOT_SAID
                raise TimeoutError(f"{error}: it waits for {why}") from error
            finally:
                home.post(idle.stop)
        await self._commit()
        return self.counts.delivered - before

    async def _wait_until_idle(self) -> bool:
        """Returns whether it has become idle: one that is closed gives its queues back undone."""
        await self._member.look()
        pause_ms = FIRST_IDLE_LOOK_MS
        while not (self._is_closed or self._client.is_closed):
            if self._member.is_idle:
                return True
            self._client.check_live()
            await sleep(self._home, pause_ms)
            pause_ms = min(2 * pause_ms, IDLE_LOOK_MS)
        return False
