"""What the consumers of RocketMQ's two kinds, and both of their faces, are made of."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from inspect import Signature, cleandoc, signature
from pathlib import Path
from typing import ClassVar, Final, Self, Unpack

from typing_extensions import override

from seglog.arguments import as_number, refusal
from seglog.client.client import Client
from seglog.client.connect import Target, client_for
from seglog.client.dropped import watch
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
from seglog.consumer.offsets.first_offsets import FirstOffsets
from seglog.consumer.offsets.local_offset_store import LocalOffsetStore, local_offsets_path
from seglog.consumer.offsets.offset_store import BrokerOffsetStore, OffsetStore
from seglog.consumer.options import arguments_text, check_options, options_text, with_options
from seglog.consumer.pools.choice import pool_for
from seglog.consumer.services.service import Service
from seglog.consumer.settings import (
    ConsumerOptions,
    ConsumerSettings,
    Wanted,
    subscriptions_of,
    timestamp_ms_of,
)
from seglog.errors import ConsumerError, InvalidArgumentError
from seglog.logs import logger
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.files import RealFiles

FIRST_IDLE_LOOK_MS: Final = 0.5
IDLE_LOOK_MS: Final = 5.0
"""How often it is looked whether a consumer on real time has become idle, after ever longer pauses."""
DEFAULT_AGO_MS: Final = 30 * 60_000
"""``consumeTimestamp`` before the consumer is made."""
_log = logger(__name__)
_NOT_SAID: Final = "its brokers to say whether there is more"


class ConsumerParts(ABC):
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

    _is_awaited: ClassVar[bool]
    __signature__: ClassVar[Signature]

    @override
    def __init_subclass__(cls) -> None:
        """Shows the settings in the signature and the help of a class of consumers."""
        super().__init_subclass__()
        cls.__signature__ = with_options(signature(ConsumerParts.__init__))
        if cls.__doc__:
            own = cleandoc(cls.__doc__)
            if "\nArgs:" not in own:  # of a kind: its help has to say all, and has no other page
                own = f"{own}\n\n{arguments_text(ConsumerParts.__doc__ or '')}"
            cls.__doc__ = f"{own}\n\n{options_text()}\n"

    @property
    @abstractmethod
    def _service(self) -> type[Service]:
        """What gives messages to the listener; a class says that of its kind."""

    def __new__(cls, *args: object, **options: object) -> Self:
        """Makes one; what is wrong with the call names the class that was called.

        Raises:
            TypeError: An argument is missing, or there is one too many.
        """
        check_options(cls.__name__, options.keys() - signature(ConsumerParts.__init__).parameters.keys())
        try:
            cls.__signature__.bind(*args, **options)
        except TypeError as error:
            raise TypeError(f"{cls.__name__}(): {error}") from None
        return super().__new__(cls)

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
        self._client, self._is_own = client_for(
            target, in_loop=self._is_awaited, keeps_its_name=settings.is_broadcasting
        )
        self._client.check_free(group)
        self._home = self._client.home
        name = f"seglog-{group}"
        pool = pool_for(self._home, listener, settings.threads, name, in_loop=self._is_awaited)
        service = self._service(self._client, settings, listener, pool)
        self._member = GroupMember(self._client, settings, _offsets_of(self._client, settings), service)
        self._wait: Wait = await_for if self._is_awaited else wait_here
        self._beginning: Flow[None] | None = None
        self._is_closed = False
        self._close_lock = threading.Lock()  # a forked child does not take it
        self._leaving: Flow[None] | None = None
        self._has_left = False
        self._end_if_dropped = watch(self, self._client) if isinstance(target, str) else None

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
        self._refuse_in_loop()
        if member.is_filtered:
            check_may_wait(home, is_awaited=self._is_awaited)
        self._client.claim(member)
        try:
            if member.is_filtered:
                refusal = await self._wait(home, start(home, member.refusal(), "a check of subscriptions"))
                if refusal is not None:
                    raise refusal
            self._beginning = start(home, member.begin(), f"start of group {self.group}")
            self._keep()
        finally:
            if self._beginning is None:
                self._client.release(member)

    def _warn_if_unused(self, error: BaseException | None) -> None:
        """Says at the end of a block that nothing was consumed there, unless an error ends it."""
        if self._beginning is None and not self._is_closed and error is None:
            _log.warning(
                "the %s of group %s was not started in its with block, and has consumed nothing: call"
                " start(), or run_until_idle()",
                type(self).__name__,
                self.group,
            )

    def _keep(self) -> None:
        """Has its client not end with it: once started it goes on, as Java's does."""
        if self._end_if_dropped is not None:
            self._end_if_dropped.detach()

    def _refuse_in_loop(self) -> None:
        """Refuses what could not be closed where it was started."""
        if self._is_awaited or self._home.loop is None:
            return
        from seglog.remoting.later import running_loop  # with it comes asyncio

        if running_loop() is not None:
            raise InvalidArgumentError(
                f"a {type(self).__name__} is not run in an event loop: its close() would wait for itself",
                help="use AsyncPushConsumer or AsyncOrderlyConsumer, or have a thread start and close it",
            )

    async def _consume_until_idle(self, timeout_s: float | None) -> int:
        self._check_open()
        if timeout_s is not None:
            as_number("timeout_s", timeout_s)
        self._member.refuse_from_inside("run_until_idle()", is_bounded=False)
        self._refuse_in_loop()
        check_may_wait(self._home, is_awaited=self._is_awaited)
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
            await sleep(self._home, pause_ms)
            pause_ms = min(2 * pause_ms, IDLE_LOOK_MS)
        return False

    def _check_open(self) -> None:
        if self._is_closed:
            raise ConsumerError("a consumer that was closed consumes nothing")
        self._client.check_open()

    async def _commit_what_is_done(self) -> None:
        self._check_open()
        await self._commit()

    async def _commit(self) -> None:
        check_may_wait(self._home, is_awaited=self._is_awaited)
        await self._wait(self._home, start(self._home, self._member.commit(), "commit"))

    async def _end(self, timeout_s: float | None) -> None:
        if timeout_s is not None:
            as_number("timeout_s", timeout_s)
        home, client = self._home, self._client
        if home.why_over is not None:
            self._end_without_home()
            return
        is_first = not self._is_closed
        if not (is_first or self._has_to_be_waited_for()):
            return
        if is_first:
            self._member.refuse_from_inside("close()", is_bounded=timeout_s is not None)
        check_may_wait(home, is_awaited=self._is_awaited)
        leaving = self._begin_to_leave()
        try:
            await wait_to_leave(self._wait, home, leaving, [self._member], timeout_s)
        finally:
            self._has_left = True
            if self._is_own and is_first:
                with suppress(TimeoutError):  # there is an error already
                    limit_s = None if leaving.is_done else 0
                    await client.end(limit_s, self._wait, is_awaited=self._is_awaited)

    def _end_without_home(self) -> None:
        self._keep()
        if not self._is_closed:
            self._is_closed = True
            self._member.end_listeners()
            if self._is_own:
                self._client.link.close()

    def _has_to_be_waited_for(self) -> bool:
        """Returns whether another call is still at the end of it, for which a listener does not wait."""
        try:
            self._member.refuse_from_inside("close()", is_bounded=False)
        except ConsumerError:
            return False
        return not self._has_left

    def _begin_to_leave(self) -> Flow[None]:
        self._keep()
        with self._close_lock:
            if self._leaving is None:
                self._is_closed = True  # before a wait until idle finds its queues given back
                self._leaving = start(self._home, self._leave(), "close of a consumer")
            return self._leaving

    async def _leave(self) -> None:
        if self._beginning is not None:
            await self._member.leave()
        if self._is_own:
            await until(self._client.leave())


def _offsets_of(client: Client, settings: ConsumerSettings) -> OffsetStore:
    """Returns where a consumer has its offsets."""
    timestamp_ms = timestamp_ms_of(settings.consume_timestamp)
    if timestamp_ms is None:
        timestamp_ms = client.clock.now_ms() - DEFAULT_AGO_MS
    brokers = Brokers(client)
    first = FirstOffsets(brokers, settings.consume_from, timestamp_ms)
    if not settings.is_broadcasting:
        return BrokerOffsetStore(brokers, settings.group, first)
    folder = (
        Path.home() / ".rocketmq_offsets" if settings.offset_folder is None else Path(settings.offset_folder)
    )
    path = local_offsets_path(folder, client.client_id, settings.group)
    return LocalOffsetStore(RealFiles(), path, first)
