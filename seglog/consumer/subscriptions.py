"""What a member subscribes to, while it runs: topics, what is wanted of each, and since when.

Brokers take the newest version that members of a group say; a change is a new version.

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
        client: Whose clock and routes.
        settings: Of the consumer, with what it subscribes to first.
        has_retries: Whether the brokers bring messages again that have failed.

    Attributes:
        wanted: Of each topic, the group's retry topic included.
        version: When they were changed last, in milliseconds of the wall clock.
    """

    def __init__(self, client: Client, settings: ConsumerSettings, *, has_retries: bool) -> None:
        self._client = client
        self._group = settings.group
        self.wanted = dict(settings.subscriptions)
        if has_retries and not settings.is_broadcasting:  # a client that broadcasts retries nothing
            self.wanted[f"{RETRY_PREFIX}{settings.group}"] = Subscription("*", None)
        self.version = client.clock.now_ms()

    def set(self, topic: str, wanted: Subscription) -> None:
        """Subscribes to a topic, or to something else of it."""
        self.wanted[topic] = wanted
        self._change()

    def remove(self, topic: str) -> None:
        """Subscribes to a topic no more."""
        if self.wanted.pop(topic, None) is not None:
            self._change()

    def _change(self) -> None:
        self.version = max(self.version + 1, self._client.clock.now_ms())

    @property
    def is_filtered(self) -> bool:
        """Whether there is one that brokers may refuse: one by another language than tags."""
        return any(not is_tag_type(wanted.expression_type) for wanted in self.wanted.values())

    def in_heartbeat(self) -> tuple[SubscriptionData, ...]:
        """Returns them as heartbeats say them."""
        return tuple(wanted.in_heartbeat(topic, self.version) for topic, wanted in self.wanted.items())

    async def refusal(self) -> RemoteProtocolError | None:
        """Returns what a broker has against one of them, before it is consumed; None where all are served."""
        for topic, wanted in tuple(self.wanted.items()):
            found = await self.refusal_of(topic, wanted)
            if found is not None:
                return found
        return None

    async def refusal_of(self, topic: str, wanted: Subscription) -> RemoteProtocolError | None:
        """Returns what a broker has against one, None where it is served or names tags.

        A broker that does not answer is not waited for: pulls that fail are tried again.
        """
        if is_tag_type(wanted.expression_type):
            return None
        said = wanted.in_heartbeat(topic, self.version)
        try:
            return await Brokers(self._client).refusal_of(self._group, said)
        except SeglogError as error:
            _log.log(level_of(error), "the subscription to topic %s is not checked: %s", topic, error)
            return None
