"""What the consumers of RocketMQ's two kinds have in common as an application sees them."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import ClassVar, Final, Self, TypedDict, Unpack

from seglog.arguments import as_number, refusal
from seglog.client.allocation import AllocationStrategy
from seglog.client.client import Client
from seglog.client.connect import Target, client_for
from seglog.client.home import VirtualHome, sleep, start, wait_for
from seglog.consumer.brokers import Brokers
from seglog.consumer.counts import Counts
from seglog.consumer.group_member import GroupMember
from seglog.consumer.listener import ConsumeFrom, Listener
from seglog.consumer.listener_pool import InlinePool, ListenerPool, ThreadPool
from seglog.consumer.offset_store import BrokerOffsetStore
from seglog.consumer.service import Service
from seglog.consumer.settings import ConsumerSettings, Wanted, subscriptions_of
from seglog.errors import ConsumerError
from seglog.remoting.later import Deferred
from seglog.remoting.message_queue import MessageQueue

IDLE_LOOK_MS: Final = 5
"""How often it is looked whether a consumer on real time has become idle."""


class ConsumerOptions(TypedDict, total=False):
    """What consumers can be set to, see :class:`~seglog.consumer.settings.ConsumerSettings`."""

    consume_from: ConsumeFrom
    strategy: AllocationStrategy
    threads: int
    max_span: int
    max_cached: int
    max_cached_bytes: int
    pull_interval_ms: int
    pull_count: int
    pull_bytes: int
    suspend_ms: float
    max_reconsume_times: int


class Consumer:
    """One member of a consumer group; close it, or use it in a ``with`` statement.

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

    is_in_order: ClassVar[bool]

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
        self._client, self._is_own = client_for(target)
        self._client.check_free(group)
        is_virtual = isinstance(self._client.home, VirtualHome)
        home = self._client.home
        self._pool = InlinePool(home) if is_virtual else ThreadPool(settings.threads, f"seglog-{group}")
        offsets = BrokerOffsetStore(Brokers(self._client), group, settings.consume_from)
        service = self._service(self._client, settings, listener, self._pool)
        self._member = GroupMember(
            self._client, settings, offsets, service, locks=self.is_in_order, retries=True
        )
        self._beginning: Deferred[None] | None = None
        self._is_closed = False

    def _service(
        self, client: Client, settings: ConsumerSettings, listener: Listener, pool: ListenerPool
    ) -> Service:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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

    def start(self) -> None:
        """Starts to consume: in threads, or on virtual time while time is moved. It does not wait.

        Raises:
            ConsumerError: It was started or closed before.
        """
        if self._beginning is not None or self._is_closed:
            raise ConsumerError("a consumer can be started once")
        self._begin()

    def _begin(self) -> None:
        name = f"start of group {self._member.group}"
        self._beginning = start(self._client.home, self._member.begin(), name)

    def run_until_idle(self, timeout_s: float | None = None) -> int:
        """Consumes until all that can be consumed now is done and committed; starts if that was not done.

        On virtual time no time passes: what failed waits for ``advance``.

        Args:
            timeout_s: How long it may take on real time; None for as long as it takes.

        Returns:
            How many messages the listener was done with meanwhile.

        Raises:
            ConsumerError: It was closed.
            TimeoutError: It took longer.
        """
        if self._is_closed:
            raise ConsumerError("a consumer that was closed consumes nothing")
        if timeout_s is not None:
            as_number("timeout_s", timeout_s)
        before = self.counts.delivered
        if self._beginning is None:
            self._begin()
        home = self._client.home
        if isinstance(home, VirtualHome):
            home.run_due()
        else:
            wait_for(home, start(home, self._wait_until_idle(), "a wait until idle"), timeout_s)
        self.commit()
        return self.counts.delivered - before

    async def _wait_until_idle(self) -> None:
        while not self._member.is_idle:
            await sleep(self._client.home, IDLE_LOOK_MS)

    def commit(self) -> None:
        """Brings everything consumed to the brokers now; what a broker refuses is tried again later."""
        home = self._client.home
        wait_for(home, start(home, self._member.commit(), "commit"))

    def close(self, timeout_s: float | None = None) -> None:
        """Lets no message begin, waits for listeners at work, commits, and gives the queues back.

        A second call does nothing.

        Args:
            timeout_s: How long listeners may take that are at work; None for as long as it takes.

        Raises:
            TimeoutError: A listener is at work still. Its message is not committed, and comes again.
        """
        if timeout_s is not None:
            as_number("timeout_s", timeout_s)
        if self._is_closed:
            return
        self._is_closed = True
        home = self._client.home
        is_late = True
        try:
            if self._beginning is not None:
                wait_for(home, start(home, self._member.leave(), "close of a consumer"), timeout_s)
            is_late = False
        finally:
            self._pool.close()
            if self._is_own:
                with suppress(TimeoutError):  # one is on its way already
                    self._client.close(0 if is_late else timeout_s)
