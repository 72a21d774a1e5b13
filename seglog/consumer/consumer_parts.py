"""What the consumers of RocketMQ's two kinds, and both of their faces, are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Final, Unpack

from typing_extensions import override

from seglog.arguments import as_number, refusal
from seglog.client.connect import Target, client_for
from seglog.client.home import Flow, sleep, start, until
from seglog.consumer.brokers import Brokers
from seglog.consumer.counts import Counts
from seglog.consumer.group_member import GroupMember
from seglog.consumer.listener import Listener
from seglog.consumer.offset_store import BrokerOffsetStore
from seglog.consumer.pools.choice import pool_for
from seglog.consumer.service import Service
from seglog.consumer.settings import ConsumerOptions, ConsumerSettings, Wanted, subscriptions_of
from seglog.errors import ConsumerError
from seglog.remoting.message_queue import MessageQueue

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

    def _begin(self) -> None:
        if self._beginning is not None or self._is_closed:
            raise ConsumerError("a consumer can be started once")
        name = f"start of group {self.group}"
        self._beginning = start(self._home, self._member.begin(), name)

    def _begin_to_idle(self, timeout_s: float | None) -> int:
        """Starts it if that was not done; returns how many messages are done so far."""
        if self._is_closed:
            raise ConsumerError("a consumer that was closed consumes nothing")
        if timeout_s is not None:
            as_number("timeout_s", timeout_s)
        before = self.counts.delivered
        if self._beginning is None:
            self._begin()
        return before

    def _idle(self) -> Flow[None]:
        return start(self._home, self._wait_until_idle(), "a wait until idle")

    async def _wait_until_idle(self) -> None:
        while not self._member.is_idle:
            await sleep(self._home, IDLE_LOOK_MS)

    def _commit(self) -> Flow[None]:
        return start(self._home, self._member.commit(), "commit")

    def _begin_to_leave(self, timeout_s: float | None) -> Flow[None] | None:
        """Begins to close it; returns None where that was done before, or its home is over."""
        if timeout_s is not None:
            as_number("timeout_s", timeout_s)
        if self._is_closed:
            return None
        self._is_closed = True
        if self._home.why_over is not None:
            self._pool.close()
            if self._is_own:
                self._client.link.close()
            return None
        return start(self._home, self._leave(), "close of a consumer")

    async def _leave(self) -> None:
        if self._beginning is not None:
            await self._member.leave()
        self._pool.close()
        if self._is_own:
            await until(self._client.leave())
