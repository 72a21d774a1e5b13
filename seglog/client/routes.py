"""Routes: the queues of topics and the addresses of brokers, from a name server, cached for a while.

For a topic that does not exist a producer uses the route of TBW102, with at most the number of queues that it
would create: the first send creates the topic at the broker.

A route outlives its name server: where that does not answer, or knows the topic no more, the last route is
used until another one comes. A name server that has just started, or has lost its broker for a moment, knows
no topic, while the broker takes messages. Only a refusal by the broker itself says that a route is wrong.

Source: ``MQClientInstance.java updateTopicRouteInfoFromNameServer, topicRouteData2TopicPublishInfo,
findBrokerAddressInSubscribe``.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from seglog.client.home.at_once import run_at_once
from seglog.client.links.asking import Ask, answer_of, in_flow
from seglog.client.links.link import Link
from seglog.clock import Clock
from seglog.errors import ProtocolError, RemoteProtocolError, SeglogError
from seglog.remoting.bodies import TopicRouteBody
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, expect_body
from seglog.remoting.headers import GetRouteInfoHeader
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.topics import MAX_QUEUES, PERM_READ, PERM_WRITE
from seglog.storage.format.system_names import AUTO_CREATE_TOPIC

REFRESH_MS: Final = 30_000
"""``pollNameServerInterval``."""
AGAIN_MS: Final = 1_000
"""How long the last route is used before a name server that had none is asked again."""
NEW_TOPIC_QUEUE_NUMS: Final = 4
"""``defaultTopicQueueNums`` of a producer."""
MASTER: Final = 0
"""Id of the master, which takes writes."""


@dataclass(frozen=True, slots=True)
class _Known:
    route: TopicRouteBody
    fresh_until_ms: float
    to_publish: tuple[MessageQueue, ...]
    to_read: tuple[MessageQueue, ...]
    is_wrong: bool = False
    """Whether a broker has answered that it has no such topic."""


class Routes:
    """Routes of topics, for all producers and consumers of a client. Any thread may call it.

    Args:
        link: Sends the requests.
        clock: Its monotonic time ages the cache.
    """

    def __init__(self, link: Link, clock: Clock) -> None:
        self._link = link
        self._ask = in_flow(link)
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._addresses: dict[str, Mapping[int, str]] = {}

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics whose routes are known."""
        return tuple(self._known)

    def brokers(self) -> Mapping[str, Mapping[int, str]]:
        """Returns the addresses of all brokers that any route names, by name and broker id."""
        with self._lock:
            return dict(self._addresses)

    def address_of(self, broker_name: str, broker_id: int = MASTER) -> str | None:
        """Returns the address of a broker, None if no route has it; its master's for a missing slave."""
        addresses = self._addresses.get(broker_name)
        if not addresses:
            return None
        return addresses.get(broker_id) or addresses.get(MASTER) or next(iter(addresses.values()))

    def fresh_to_publish(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns the writable queues from the cache; none if nothing fresh is known."""
        known = self._known.get(topic)  # inline: this runs for every send
        if known is None or self._clock.monotonic_ms() >= known.fresh_until_ms:
            return ()
        return known.to_publish

    def to_read(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns the readable queues, in RocketMQ's order; none for an unknown topic.

        If nothing fresh is known the calling thread sends a request, and waits for the answer.
        """
        if self._fresh(topic) is None and not run_at_once(self.refresh(topic, self._link.invoke)):
            return ()
        return self.known_to_read(topic)

    def known_to_read(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns the same from the cache, of any age."""
        known = self._known.get(topic)
        return () if known is None else known.to_read

    def known_to_publish(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns the writable queues from the cache, of any age; none for a topic that does not exist."""
        known = self._known.get(topic)
        return () if known is None else known.to_publish

    async def refresh(self, topic: str, ask: Ask | None = None) -> bool:
        """Requests a route; returns whether the topic has one. If not, the last route stays.

        Args:
            topic: The topic.
            ask: Sends the request; None for a flow, which waits on its home.

        Raises:
            SeglogError: There is no answer, or a refusal; the cached route stays.
        """
        answer = await answer_of((ask or self._ask)(_request(topic), None, None))
        return self._learn(topic, answer) is not None

    async def ask_to_publish(
        self, topic: str, new_topic_queue_nums: int = NEW_TOPIC_QUEUE_NUMS, ask: Ask | None = None
    ) -> tuple[MessageQueue, ...]:
        """Returns the queues that messages can be sent to, those of a future topic included.

        They are those of the last route if no name server has another one now.

        Args:
            topic: The topic.
            new_topic_queue_nums: Queues of a topic that does not exist yet, at most.
            ask: As for :meth:`refresh`.

        Raises:
            RemoteProtocolError: There is none: the topic does not exist and cannot be created, or is not
                writable.
            SeglogError: There is no answer.
        """
        if self._fresh(topic) is None and not await self._is_usable(topic, ask):
            asked = (ask or self._ask)(_request(AUTO_CREATE_TOPIC), None, None)
            model = _route_of(await answer_of(asked))
            return self._checked(topic, self._of_model(model, topic, new_topic_queue_nums))
        return self._checked(topic, self.known_to_publish(topic))

    async def _is_usable(self, topic: str, ask: Ask | None) -> bool:
        """Requests a route; returns whether there is one to send by, be it the last one."""
        try:
            if await self.refresh(topic, ask):
                return True
        except SeglogError:
            if not self._keeps(topic):
                raise
            return True
        return self._keeps(topic)

    def _keeps(self, topic: str) -> bool:
        """Returns whether the last route of a topic can be used for a while longer, and notes that."""
        with self._lock:
            known = self._known.get(topic)
            if known is None or known.is_wrong:
                return False
            self._known[topic] = replace(known, fresh_until_ms=self._clock.monotonic_ms() + AGAIN_MS)
            return True

    def doubt(self, topic: str, code: int) -> None:
        """Has the next call request a route.

        Args:
            topic: The topic.
            code: By which a broker has refused a message. A broker that has no such topic proves that the
                last route is wrong; it is not used again.
        """
        with self._lock:
            known = self._known.get(topic)
            if known is not None:
                is_wrong = known.is_wrong or code == ResponseCode.TOPIC_NOT_EXIST
                self._known[topic] = replace(known, fresh_until_ms=-math.inf, is_wrong=is_wrong)

    def _fresh(self, topic: str) -> _Known | None:
        known = self._known.get(topic)
        return known if known is not None and self._clock.monotonic_ms() < known.fresh_until_ms else None

    def _learn(self, topic: str, answer: Response) -> _Known | None:
        """Caches a route; returns None if the name server has none."""
        route = _route_of(answer)
        if route is None:
            return None
        fresh_until_ms = self._clock.monotonic_ms() + REFRESH_MS
        known = _Known(route, fresh_until_ms, _writable(route, topic), _readable(route, topic))
        with self._lock:
            self._known[topic] = known
            self._note_brokers(route)
        return known

    def _checked(self, topic: str, queues: tuple[MessageQueue, ...]) -> tuple[MessageQueue, ...]:
        if queues:
            return queues
        raise RemoteProtocolError(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic {topic} has no queue to write to",
            help="check the topic's name, and give it queues to write to and the permission (perm 6) with"
            " `mqadmin updateTopic`; one that is not there a broker makes with autoCreateTopicEnable=true",
        )

    def _of_model(
        self, model: TopicRouteBody | None, topic: str, most_queues: int
    ) -> tuple[MessageQueue, ...]:
        if model is None:
            return ()
        with self._lock:
            self._note_brokers(model)
        return _writable(model, topic, most_queues)

    def _note_brokers(self, route: TopicRouteBody) -> None:
        for broker in route.brokers:
            self._addresses[broker.broker_name] = dict(broker.broker_addresses)


def _request(topic: str) -> Request:
    return Request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoHeader(topic))


def _route_of(answer: Response) -> TopicRouteBody | None:
    if answer.code is ResponseCode.TOPIC_NOT_EXIST:
        return None
    route = expect_body(answer, TopicRouteBody)
    for queue in route.queues:
        if max(queue.read_queue_nums, queue.write_queue_nums) > MAX_QUEUES:
            raise ProtocolError(
                f"a route names {queue.read_queue_nums} queues to read and {queue.write_queue_nums} to write "
                f"at broker {queue.broker_name}: a topic has {MAX_QUEUES} at most",
            )
    return route


def _writable(route: TopicRouteBody, topic: str, limit: int | None = None) -> tuple[MessageQueue, ...]:
    return tuple(
        MessageQueue(topic, queue.broker_name, queue_id)
        for queue in sorted(route.queues, key=lambda queue: queue.broker_name)
        if queue.perm & PERM_WRITE
        for queue_id in range(queue.write_queue_nums if limit is None else min(limit, queue.write_queue_nums))
    )


def _readable(route: TopicRouteBody, topic: str) -> tuple[MessageQueue, ...]:
    return tuple(
        sorted(
            MessageQueue(topic, queue.broker_name, queue_id)
            for queue in route.queues
            if queue.perm & PERM_READ
            for queue_id in range(queue.read_queue_nums)
        )
    )
