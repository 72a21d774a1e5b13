"""What a consumer can be set to, checked before it is made: RocketMQ's numbers, and RocketMQ's bounds.

Source: ``DefaultMQPushConsumer.java``, ``DefaultMQPushConsumerImpl.java checkConfig``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypedDict

from seglog.arguments import MAX_I32, as_doing, as_enum, as_int, as_number, as_text, refusal
from seglog.client.allocation import AllocateAveragely, AllocationStrategy
from seglog.consumer.listener import ConsumeFrom
from seglog.remoting.subscription import ALL_TAGS, Subscription, parse_subscription
from seglog.storage.format.names import check_client_topic, check_group

DEFAULT_CONSUMER_GROUP: Final = "DEFAULT_CONSUMER"
FOR_EVER: Final = -1
_MIB: Final = 1 << 20
MIN_SUSPEND_MS: Final = 10
MAX_SUSPEND_MS: Final = 30_000
BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "threads": (1, 1_000),
    "max_span": (1, 65_535),
    "max_cached": (1, 65_535),
    "max_cached_bytes": (_MIB, 1_024 * _MIB),
    "pull_interval_ms": (0, 65_535),
    "pull_count": (1, 1_024),
    "pull_bytes": (1, MAX_I32),
    "max_reconsume_times": (FOR_EVER, MAX_I32),
    "suspend_ms": (MIN_SUSPEND_MS, MAX_SUSPEND_MS),
}


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """What all queues of a consumer share.

    Attributes:
        group: Who shares the queues and the offsets.
        subscriptions: What is wanted of each topic.
        consume_from: Where to begin without a committed offset.
        strategy: Which queues are whose.
        threads: Listeners that are at work at a time, at most.
        max_span: How far the messages of a queue may be apart that are cached; not looked at in order.
        max_cached: Messages of a queue that are cached, about; pulls wait while there are more.
        max_cached_bytes: Bytes of their bodies.
        pull_interval_ms: Between two pulls of a queue.
        pull_count: Messages of one pull at most.
        pull_bytes: Bytes of one pull, at most but for its first message; a broker of RocketMQ ignores it.
        suspend_ms: How long a queue waits after a failure, where its messages are consumed in order.
        max_reconsume_times: After how many further attempts a message is given up: it goes to the group's
            dead letters. ``FOR_EVER`` is never in order, and the broker's number of the group else.
    """

    group: str
    subscriptions: Mapping[str, Subscription]
    consume_from: ConsumeFrom = ConsumeFrom.LAST
    strategy: AllocationStrategy = field(default_factory=AllocateAveragely)
    threads: int = 20
    max_span: int = 2_000
    max_cached: int = 1_000
    max_cached_bytes: int = 100 * _MIB
    pull_interval_ms: int = 0
    pull_count: int = 32
    pull_bytes: int = 256 << 10
    suspend_ms: float = 1_000
    max_reconsume_times: int = FOR_EVER

    def __post_init__(self) -> None:
        """Checks all of it.

        Raises:
            InvalidArgumentError: A number is out of its bounds, or the group is RocketMQ's default.
            InvalidNameError: No group can be called so.
        """
        if check_group(self.group) == DEFAULT_CONSUMER_GROUP:
            raise refusal("group", self.group, "a name of the application's own", "RocketMQ refuses this one")
        if not self.subscriptions:
            raise refusal("subscription", self.subscriptions, "at least one topic")
        object.__setattr__(self, "consume_from", as_enum("consume_from", ConsumeFrom, self.consume_from))
        as_doing("strategy", self.strategy, ("allocate",), "an allocation strategy")
        for name, (low, high) in BOUNDS.items():
            if name != "suspend_ms":
                as_int(name, getattr(self, name), low, high)
            elif as_number(name, self.suspend_ms, low) > high:
                raise refusal(name, self.suspend_ms, f"a number in {low}..{high}")


class ConsumerOptions(TypedDict, total=False):
    """What consumers can be set to, see :class:`ConsumerSettings`."""

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


Wanted: TypeAlias = str | Mapping[str, str] | Mapping[str, Subscription] | Mapping[str, str | Subscription]
"""What a consumer subscribes to: a topic, or topics and what is wanted of each."""


def subscriptions_of(subscription: Wanted) -> dict[str, Subscription]:
    """Returns what is wanted of each topic.

    Args:
        subscription: A topic, or topics and what is wanted of each: ``*``, ``TagA || TagB``, or
            ``Subscription.by_sql("price > 5")``.

    Raises:
        InvalidNameError: No topic can be called so.
        InvalidArgumentError: That is no subscription, or names no tag.
    """
    topics: Mapping[str, str | Subscription]
    if isinstance(subscription, str):
        topics = {subscription: ALL_TAGS}
    elif isinstance(subscription, Mapping):
        topics = {**subscription}
    else:
        raise refusal(
            "subscription",
            subscription,
            "a topic, or a mapping of topics to what is wanted of each",
            'for all of several topics give {"orders": "*", "refunds": "*"}',
        )
    found: dict[str, Subscription] = {}
    for topic, wanted in topics.items():
        check_client_topic(topic)
        if isinstance(wanted, Subscription):
            found[topic] = wanted
        else:
            found[topic] = parse_subscription(as_text(f"the subscription of {topic}", wanted))
    return found
