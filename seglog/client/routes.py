"""Which queues a topic has, asked from the broker and kept for a while.

A producer's route for a topic that does not exist is that of TBW102 with at most the queues that the
producer would create: the broker makes the topic with the first send.

Source: ``MQClientInstance.java updateTopicRouteInfoFromNameServer, topicRouteData2TopicPublishInfo``.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

from seglog.client.links.link import Link
from seglog.clock import Clock
from seglog.errors import RemoteProtocolError
from seglog.remoting.bodies import TopicRouteBody
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, expect_body
from seglog.remoting.headers import GetRouteInfoHeader
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.topics import PERM_READ, PERM_WRITE
from seglog.storage.format.system_names import AUTO_CREATE_TOPIC

REFRESH_MS: Final = 30_000
"""``pollNameServerInterval``."""
NEW_TOPIC_QUEUE_NUMS: Final = 4
"""``defaultTopicQueueNums`` of a producer."""


@dataclass(frozen=True, slots=True)
class _Known:
    route: TopicRouteBody | None
    fresh_until_ms: float
    to_publish: tuple[MessageQueue, ...]
    to_read: tuple[MessageQueue, ...]


class Routes:
    """Routes of topics. Any thread may call it.

    Args:
        link: Whom to ask.
        clock: Its monotonic time ages what is known.
        new_topic_queue_nums: Queues of topics that do not exist yet, at most.
    """

    def __init__(self, link: Link, clock: Clock, new_topic_queue_nums: int = NEW_TOPIC_QUEUE_NUMS) -> None:
        self._link = link
        self._clock = clock
        self._new_topic_queue_nums = new_topic_queue_nums
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}

    def to_publish(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns the queues that messages can be sent to, those of a future topic included.

        Raises:
            RemoteProtocolError: There is none: no such topic and none can be made, or it is not writable.
        """
        queues = self._get(topic).to_publish
        if queues:
            return queues
        raise RemoteProtocolError(ResponseCode.TOPIC_NOT_EXIST, f"topic {topic} has no queue to write to")

    def to_read(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns the queues that can be read, in RocketMQ's order; none for an unknown topic."""
        return self._get(topic).to_read

    def forget(self, topic: str) -> None:
        """Makes the next call ask again: the broker has answered that the route is wrong."""
        with self._lock:
            self._known.pop(topic, None)

    def _get(self, topic: str) -> _Known:
        known = self._known.get(topic)
        if known is None or self._clock.monotonic_ms() >= known.fresh_until_ms:
            known = self._ask(topic)
            with self._lock:
                self._known[topic] = known
        return known

    def _ask(self, topic: str) -> _Known:
        route = self._fetch(topic)
        if route is not None:
            fresh_until_ms = self._clock.monotonic_ms() + REFRESH_MS
            return _Known(route, fresh_until_ms, _writable(route, topic), _readable(route, topic))
        # Nothing is kept of a topic that does not exist: it may with the next send.
        model = self._fetch(AUTO_CREATE_TOPIC)
        queues = () if model is None else _writable(model, topic, self._new_topic_queue_nums)
        return _Known(None, 0.0, queues, ())

    def _fetch(self, topic: str) -> TopicRouteBody | None:
        response = self._link.invoke(Request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoHeader(topic)))
        if response.code is ResponseCode.TOPIC_NOT_EXIST:
            return None
        return expect_body(response, TopicRouteBody)


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
