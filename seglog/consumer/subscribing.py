"""Changes of the subscriptions of a consumer with a listener while it runs.

A change is sent to the brokers with a heartbeat at once, and applies to the pulls of its queues; the queues
of a new topic are shared with the next rebalance, within a second.

Source: ``DefaultMQPushConsumerImpl.java subscribe, unsubscribe``.
"""

from __future__ import annotations

from seglog.arguments import as_text
from seglog.client.home import run_at_once, start
from seglog.consumer.consumer_parts import ConsumerParts
from seglog.consumer.listener import M
from seglog.consumer.settings import subscriptions_of
from seglog.errors import ConsumerError
from seglog.remoting.subscription import ALL_TAGS, Subscription
from seglog.storage.format.names import check_client_topic


class Changes(ConsumerParts[M]):
    """The common part of both faces."""

    async def _subscribe(self, topic: str, wanted: str | Subscription) -> None:
        self._check_open()
        found = subscriptions_of({as_text("topic", topic): wanted})[topic]
        if self._listeners and topic not in self._listeners:
            raise ConsumerError(
                f"the consumer of group {self.group} has no listener for topic {topic}: there are those of"
                f" {', '.join(self._listeners)}",
                help=f'register one before start(), @consumer.on("{topic}"), or make the consumer with one'
                " listener for all topics",
            )
        self._check_may_wait()
        await self._ask(self._member.subscribe(topic, found), f"subscription to {topic}")

    async def _unsubscribe(self, topic: str) -> None:
        self._check_open()
        known = check_client_topic(topic)
        self._check_may_wait()
        steps = self._member.unsubscribe(known)
        await self._wait(self._home, start(self._home, steps, f"end of the subscription to {topic}"))


class Subscribing(Changes[M]):
    """A consumer whose subscriptions can be changed."""

    def subscribe(self, topic: str, wanted: str | Subscription = ALL_TAGS) -> None:
        """Subscribes to a topic, or changes its filter.

        All members of a group must subscribe alike: change each of them. Messages pulled before are still
        delivered.

        Args:
            topic: The topic.
            wanted: ``*``, ``TagA || TagB``, or ``Subscription.by_sql("price > 5")``.

        Raises:
            InvalidNameError: The topic's name is not valid.
            InvalidArgumentError: It names no tag.
            RemoteProtocolError: The broker of the topic refuses the subscription; the error has its reason.
            ConsumerError: It was closed, or has listeners by topic, and none for this topic.
        """
        run_at_once(self._subscribe(topic, wanted))

    def unsubscribe(self, topic: str) -> None:
        """Ends the subscription to a topic: commits what listeners have done, then releases its queues.

        Raises:
            InvalidNameError: The topic's name is not valid.
            ConsumerError: It was closed.
        """
        run_at_once(self._unsubscribe(topic))


class AsyncSubscribing(Changes[M]):
    """A consumer whose subscriptions can be changed; the calls are awaited."""

    async def subscribe(self, topic: str, wanted: str | Subscription = ALL_TAGS) -> None:
        """Subscribes to a topic, or changes its filter; see :meth:`Subscribing.subscribe`."""
        await self._subscribe(topic, wanted)

    async def unsubscribe(self, topic: str) -> None:
        """Ends the subscription to a topic; see :meth:`Subscribing.unsubscribe`."""
        await self._unsubscribe(topic)
