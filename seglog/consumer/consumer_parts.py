"""The common base of consumers with a listener: of both kinds, orderly and concurrent, and both faces."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Generic, Unpack

from typing_extensions import override

from seglog.arguments import as_number, as_text, refusal
from seglog.client.client import Client
from seglog.client.connect import Target, client_for
from seglog.client.home import VirtualHome, sleep, start
from seglog.consumer.group_member import GroupMember
from seglog.consumer.hands.by_topic import On, called_as_one
from seglog.consumer.listener import Listener, M, check_context
from seglog.consumer.member_parts import MemberParts, offsets_of, outcome_of
from seglog.consumer.pools.choice import pool_for
from seglog.consumer.services.service import Service
from seglog.consumer.settings import ConsumerOptions, ConsumerSettings, Wanted, subscriptions_of
from seglog.errors import ConsumerError, SeglogError
from seglog.remoting.subscription import ALL_TAGS, Subscription

FIRST_IDLE_LOOK_MS: Final = 0.5
IDLE_LOOK_MS: Final = 5.0
"""Pauses between checks whether a consumer on real time is idle; they grow."""
_LISTENER: Final = "a function that takes a message"
_OR_BOTH: Final = 'or leave both away, and register one for each topic: @consumer.on("orders")'
_NOT_SAID: Final = "its brokers to say whether there is more"


class ConsumerParts(MemberParts, Generic[M]):
    """One member of a consumer group, of any kind and face.

    Args:
        target: A broker in this process, the address of a name server, or a Client that is shared.
        group: Who shares the queues and the offsets.
        subscription: A topic, or topics and what is wanted of each: ``*``, ``TagA || TagB``, or
            ``Subscription.by_sql("price > 5")``. None, with no listener: each topic has its own by ``on()``.
        listener: Called with each message. If it returns None the message is done; to get it again it raises,
            or returns ``Consume.RECONSUME_LATER``. It may be ``async def``.
        decode: Makes of a body what the message has as ``value``: ``json.loads``, say. Where it raises, the
            message has failed as if the listener had. None for messages without ``value``.
        options: Settings, see :class:`~seglog.consumer.settings.ConsumerSettings`.

    Raises:
        InvalidNameError: The group's name is not valid.
        InvalidArgumentError: A subscription names no tag, a setting is out of its bounds, or the listener is
            annotated with the context of the other kind of consumer.
        ConsumerError: The client has a consumer of the group already.
        InvalidArgumentError: Or no event loop runs, for a consumer with awaited calls.
    """

    @property
    @abstractmethod
    def _service(self) -> type[Service]:
        """The service that gives messages to the listener, which each kind of consumer sets."""

    def __init__(
        self,
        target: Target,
        group: str,
        subscription: Wanted | None = None,
        listener: Callable[..., object] | None = None,
        *,
        decode: Callable[[bytes], object] | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        """Makes the consumer; the help of its class explains each argument and each setting."""
        if listener is None and subscription is not None:
            raise refusal("listener", listener, _LISTENER, _OR_BOTH)
        if listener is not None and not callable(listener):
            raise refusal("listener", listener, _LISTENER)
        if listener is not None and subscription is None:
            raise refusal(
                "subscription", subscription, "a topic, or topics and what is wanted of each", _OR_BOTH
            )
        if listener is not None:
            check_context(listener, is_in_order=self._service.IS_IN_ORDER)
        wanted = {} if subscription is None else subscriptions_of(subscription)
        settings = ConsumerSettings(group, wanted, decode=decode, **options)
        client, is_own = client_for(target, in_loop=self._is_awaited, keeps_its_name=settings.is_broadcasting)
        client.check_free(group)
        self._settings, self._has_one = settings, listener is not None
        self._listeners: dict[str, Listener[M]] = {}
        one = called_as_one(self._listeners) if listener is None else listener
        self._set_up(target, client, self._member_with(client, one), is_own=is_own)

    def _member_with(self, client: Client, listener: Callable[..., object]) -> GroupMember:
        """Returns a member of the group that has not joined yet."""
        settings, in_loop = self._settings, self._is_awaited
        pool = pool_for(client.home, listener, settings.threads, f"seglog-{settings.group}", in_loop=in_loop)
        service = self._service(client, settings, listener, pool)
        return GroupMember(client, settings, offsets_of(client, settings), service)

    def on(self, topic: str, tags: str | Subscription = ALL_TAGS) -> On[Any, M]:
        """Subscribes to a topic, and returns the decorator that registers the listener for it.

        One consumer may have plain and ``async def`` functions; each is called like a single listener, and
        the decorator returns it unchanged. A retried message is passed to the listener of the topic that it
        was sent to.

            consumer = PushConsumer("127.0.0.1:9876", "billing")

            @consumer.on("orders", tags="paid || refunded")
            def bill(order): ...

        Args:
            topic: The topic.
            tags: ``*``, ``TagA || TagB``, or ``Subscription.by_sql("price > 5")``.

        Raises:
            ConsumerError: It was made with a listener, was started or closed, or has a listener for the
                topic.
            InvalidNameError: The topic's name is not valid.
            InvalidArgumentError: ``topic`` is not a topic, or ``tags`` names no tag.
        """
        if callable(topic):
            raise refusal("topic", topic, 'the name of a topic: @consumer.on("orders")')
        if not isinstance(tags, str | Subscription):
            raise refusal("tags", tags, 'text such as "*" or "paid || refunded", or a Subscription')
        wanted = subscriptions_of({as_text("topic", topic): tags})
        self._check_may_listen(topic)

        def register(listener: Listener[M]) -> None:
            check_context(listener, is_in_order=self._service.IS_IN_ORDER)
            self._check_may_listen(topic)
            listeners = {**self._listeners, topic: listener}
            self._settings = replace(self._settings, subscriptions={**self._member.subscriptions, **wanted})
            member = self._member_with(self._client, called_as_one(listeners))
            member.suspend(is_suspended=self._member.is_suspended)
            self._member, self._listeners = member, listeners

        return On(register)

    def _check_may_listen(self, topic: str) -> None:
        self._check_open()
        who = f"the consumer of group {self.group}"
        if self._has_one:
            raise ConsumerError(
                f"{who} was made with a listener, which gets the messages of all its topics",
                help="make it without subscription and listener, and register one for each topic",
            )
        if self._beginning is not None:
            raise ConsumerError(
                f"{who} was started, and takes no listener for topic {topic} any more",
                help="register all listeners before start()",
            )
        if topic in self._listeners:
            raise ConsumerError(
                f"{who} has a listener for topic {topic} already",
                help="have one function call the other, or give the second one a group of its own",
            )

    @override
    async def _start(self, until_ms: float | None = None) -> None:
        if not (self._has_one or self._listeners or self._is_closed):
            raise ConsumerError(
                f"the consumer of group {self.group} has no listener",
                help='register one for each topic: @consumer.on("orders"), or make it with one',
            )
        await super()._start(until_ms)

    @property
    def is_idle(self) -> bool:
        """Whether all messages stored in its share at the last pull are done, or wait after a failure."""
        return self._member.is_idle

    async def _consume_until_idle(self, timeout_s: float | None) -> int:
        self._check_open()
        if timeout_s is not None:
            timeout_s = as_number("timeout_s", timeout_s)
        self._member.refuse_from_inside("run_until_idle()", is_bounded=False)
        self._refuse_in_loop()
        self._check_may_wait()
        before = self.counts.delivered
        if self._beginning is None:
            await self._start()
        home = self._home
        if isinstance(home, VirtualHome):
            look = start(home, outcome_of(self._member.look()), "a look at what is stored")
            home.run_due()
            outcome: bool | SeglogError | None = look.result() if look.is_done else None
        else:
            idle = start(home, outcome_of(self._wait_until_idle()), "a wait until idle")
            try:
                outcome = await self._wait(home, idle, timeout_s)
                if outcome is False:
                    self._check_open()
            except TimeoutError as error:
                why = "; ".join(self._member.why_busy()) or _NOT_SAID
                raise TimeoutError(f"{error}: it waits for {why}") from error
            finally:
                home.post(idle.stop)
        if isinstance(outcome, SeglogError):
            raise outcome
        await self._commit()
        return self.counts.delivered - before

    async def _wait_until_idle(self) -> bool:
        """Returns whether it became idle; False after a close, which releases queues unfinished."""
        await self._member.look()
        pause_ms = FIRST_IDLE_LOOK_MS
        while not (self._is_closed or self._client.is_closed):
            if self._member.is_idle:
                return True
            self._client.check_live()
            await sleep(self._home, pause_ms)
            pause_ms = min(2 * pause_ms, IDLE_LOOK_MS)
        return False
