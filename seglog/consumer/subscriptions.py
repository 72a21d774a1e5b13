"""The subscriptions of a member while it runs: topics, the filter of each, and the version.

Brokers use the newest version of all members of a group; each change makes a new version.

Source: ``RebalanceImpl.java subscriptionInner``, ``DefaultMQPushConsumerImpl.java copySubscription``.
"""

from __future__ import annotations

from seglog.client.client import Client
from seglog.client.links import level_of
from seglog.consumer.brokers import Brokers
from seglog.consumer.settings import ConsumerSettings
from seglog.errors import RemoteProtocolError, SeglogError
from seglog.logs import logger
from seglog.remoting.subscription import Subscription, SubscriptionData, is_tag_type
from seglog.storage.format.names import RETRY_PREFIX

_log = logger(__name__)


class Subscriptions:
    """The subscriptions of one member; changed on the client's home.

    Args:
        client: Its clock and routes are used.
        settings: The settings of the consumer, with its first subscriptions.
        has_retries: Whether brokers retry failed messages.

    Attributes:
        wanted: The subscription of each topic, including the group's retry topic.
        version: The time of the last change, in milliseconds of the wall clock.
    """

    def __init__(self, client: Client, settings: ConsumerSettings, *, has_retries: bool) -> None:
        self._client = client
        self._group = settings.group
        self.wanted = dict(settings.subscriptions)
        if has_retries and not settings.is_broadcasting:  # a client that broadcasts retries nothing
            self.wanted[f"{RETRY_PREFIX}{settings.group}"] = Subscription("*", None)
        self.version = client.clock.now_ms()

    def set(self, topic: str, wanted: Subscription) -> None:
        """Subscribes to a topic, or changes its filter."""
        self.wanted[topic] = wanted
        self._change()

    def remove(self, topic: str) -> None:
        """Ends the subscription to a topic."""
        if self.wanted.pop(topic, None) is not None:
            self._change()

    def _change(self) -> None:
        self.version = max(self.version + 1, self._client.clock.now_ms())

    @property
    def is_filtered(self) -> bool:
        """Whether brokers may refuse one of them: one in another language than tags."""
        return any(not is_tag_type(wanted.expression_type) for wanted in self.wanted.values())

    def in_heartbeat(self) -> tuple[SubscriptionData, ...]:
        """Returns them in the form of heartbeats."""
        return tuple(wanted.in_heartbeat(topic, self.version) for topic, wanted in self.wanted.items())

    async def refusal(self) -> RemoteProtocolError | None:
        """Returns a broker's refusal of one of them, before it is consumed; None if all are accepted."""
        for topic, wanted in tuple(self.wanted.items()):
            found = await self.refusal_of(topic, wanted)
            if found is not None:
                return found
        return None

    async def refusal_of(self, topic: str, wanted: Subscription) -> RemoteProtocolError | None:
        """Returns a broker's refusal of one, None if it is accepted or names tags.

        It does not wait for a broker that does not answer: failed pulls are tried again.
        """
        if is_tag_type(wanted.expression_type):
            return None
        said = wanted.in_heartbeat(topic, self.version)
        try:
            return await Brokers(self._client).refusal_of(self._group, said)
        except SeglogError as error:
            _log.log(level_of(error), "the subscription to topic %s is not checked: %s", topic, error)
            return None
