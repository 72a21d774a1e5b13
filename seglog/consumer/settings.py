"""The settings of a consumer, checked before it is made: RocketMQ's defaults and bounds.

Source: ``DefaultMQPushConsumer.java``, ``DefaultMQPushConsumerImpl.java checkConfig``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from inspect import iscoroutinefunction
from os import PathLike
from typing import Final, Literal, NamedTuple, TypeAlias, TypedDict, get_args

from seglog.arguments import (
    MAX_I32,
    as_choice,
    as_doing,
    as_enum,
    as_flag,
    as_int,
    as_number,
    as_text,
    as_unicode,
    refusal,
)
from seglog.consumer.listener import ALSO_LAST, ConsumeFrom
from seglog.logs import logger
from seglog.remoting.allocation import AllocateAveragely, AllocationStrategy
from seglog.remoting.heartbeat import MessageModel
from seglog.remoting.subscription import ALL_TAGS, Subscription, parse_subscription, probably_meant
from seglog.storage.format.names import check_client_topic, check_group

DEFAULT_CONSUMER_GROUP: Final = "DEFAULT_CONSUMER"
FOR_EVER: Final = -1
MOST_IN_ALL: Final = 10_000
"""``pullThresholdForAll`` of Java's ``DefaultLitePullConsumer``."""
_MIB: Final = 1 << 20
_log = logger(__name__)
_OFFSET_RESET: Final = {"earliest": ConsumeFrom.FIRST, "latest": ConsumeFrom.LAST}
"""``auto.offset.reset``."""
OffsetIllegal: TypeAlias = Literal["drop", "freeze"]
_FROM_1970: Final = "a time from 1970 on"
_TIMESTAMP: Final = re.compile(r"[0-9]{14}")
MIN_SUSPEND_MS: Final = 10
MAX_SUSPEND_MS: Final = 30_000
BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "threads": (1, 1_000),
    "max_span": (1, 65_535),
    "max_cached": (1, 65_535),
    "max_cached_bytes": (_MIB, 1_024 * _MIB),
    "max_cached_topic": (1, 6_553_500),
    "max_cached_topic_bytes": (_MIB, 102_400 * _MIB),
    "max_cached_all": (1, MAX_I32),
    "pull_interval_ms": (0, 65_535),
    "pull_count": (1, 1_024),
    "pull_bytes": (1, MAX_I32),
    "batch_size": (1, 1_024),
    "consume_timeout_ms": (1, MAX_I32),
    "max_reconsume_times": (FOR_EVER, MAX_I32),
    "suspend_ms": (MIN_SUSPEND_MS, MAX_SUSPEND_MS),
    "commit_interval_ms": (1_000, MAX_I32),
}
_MAY_BE_NONE: Final = frozenset({"max_cached_topic", "max_cached_topic_bytes", "max_cached_all"})
"""Java says -1 for none."""


class CacheBounds(NamedTuple):
    """Approximate bounds on the cache of a queue; pulls wait while one is exceeded.

    Attributes:
        messages: Most messages.
        size_bytes: Most bytes of bodies.
    """

    messages: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """The settings of a consumer.

    Attributes:
        group: Who shares the queues and the offsets.
        subscriptions: What is wanted of each topic.
        consume_from: Where to begin without a committed offset.
        consume_timestamp: The store time for ``ConsumeFrom.TIMESTAMP``: a datetime, or "yyyyMMddHHmmss" in
            this machine's zone as Java takes it; None for half an hour before the consumer is made.
        message_model: Whether members share the queues, or each consumes all of them (broadcasting): then a
            client keeps its offsets itself, and what fails side by side is dropped.
        offset_folder: Where clients that broadcast keep them; None for ``~/.rocketmq_offsets``, Java's.
        strategy: Allocates the queues to the members.
        threads: Most listeners that run at a time.
        max_span: How far the messages of a queue may be apart that are cached; not looked at in order.
        max_cached: Messages of a queue that are cached, about; pulls wait while there are more.
        max_cached_bytes: Bytes of their bodies.
        max_cached_topic: Messages in place of ``max_cached``, shared evenly by all queues that the consumer
            has; None for no such bound.
        max_cached_topic_bytes: Bytes in place of ``max_cached_bytes``, likewise, and at least a MiB a queue.
        max_cached_all: Messages of all queues that wait to be polled, about; None for no such bound.
        pull_interval_ms: The time between two pulls of a queue.
        pull_count: Messages of one pull at most.
        pull_bytes: Bytes of one pull, at most but for its first message; a broker of RocketMQ ignores it.
        suspend_ms: How long a queue waits after a failure, where its messages are consumed in order.
        max_reconsume_times: The number of further attempts after which a message goes to the group's
            dead letters. ``FOR_EVER`` is never in order, and the broker's number of the group else.
        batch_size: Messages that the listener is given at a time, at most. Above 1 it is given a tuple of
            them, even where that holds one.
        consume_timeout_ms: A message that the listener is at for longer, and that its queue waits for, is
            given back to its broker, and its queue goes on. That is looked at as often. Not in order.
        offset_illegal: What is done where the group's offset is out of its queue. ``freeze``: the queue goes
            on at once where its broker says, and commits that; ``drop``: after 10 s, as up to RocketMQ 5.1.
        auto_commit: Whether what is done is committed from time to time and at the end; else ``commit()``
            alone commits.
        commit_interval_ms: The time between two of these commits.
        trace: Whether RocketMQ's trace topic is to hear of each call of the listener, or of what was polled:
            ``mqadmin queryMsgTraceById`` shows that. It is sent in the background.
        decode: Makes the ``value`` of a message of its body; None for messages without one.
    """

    group: str
    subscriptions: Mapping[str, Subscription]
    consume_from: ConsumeFrom = ConsumeFrom.LAST
    consume_timestamp: datetime | str | None = None
    message_model: MessageModel = MessageModel.CLUSTERING
    offset_folder: str | PathLike[str] | None = None
    strategy: AllocationStrategy = field(default_factory=AllocateAveragely)
    threads: int = 20
    max_span: int = 2_000
    max_cached: int = 1_000
    max_cached_bytes: int = 100 * _MIB
    max_cached_topic: int | None = None
    max_cached_topic_bytes: int | None = None
    max_cached_all: int | None = None
    pull_interval_ms: int = 0
    pull_count: int = 32
    pull_bytes: int = 256 << 10
    suspend_ms: float = 1_000
    max_reconsume_times: int = FOR_EVER
    batch_size: int = 1
    consume_timeout_ms: int = 900_000
    offset_illegal: OffsetIllegal = "freeze"
    auto_commit: bool = True
    commit_interval_ms: int = 5_000
    trace: bool = False
    decode: Callable[[bytes], object] | None = None

    def __post_init__(self) -> None:
        """Checks all of it.

        Raises:
            InvalidArgumentError: A number is out of its bounds, or the group is RocketMQ's default.
            InvalidNameError: The group's name is not valid.
        """
        if check_group(self.group) == DEFAULT_CONSUMER_GROUP:
            raise refusal("group", self.group, "a name of the application's own", "RocketMQ refuses this one")
        if (near := _OFFSET_RESET.get(str(self.consume_from))) is not None:
            expected = " or ".join(f"ConsumeFrom.{member.name}" for member in ConsumeFrom)
            advice = f"what Kafka calls {self.consume_from} is ConsumeFrom.{near.name}"
            raise refusal("consume_from", self.consume_from, expected, advice)
        named = ConsumeFrom.__members__.get(str(self.consume_from), self.consume_from)
        if str(named) in ALSO_LAST:
            _log.warning(
                "consume_from=%r of group %s is a deprecated name, with which RocketMQ begins at the end too:"
                " say ConsumeFrom.LAST, or ConsumeFrom.FIRST for the oldest message",
                named,
                self.group,
            )
            named = ConsumeFrom.LAST
        object.__setattr__(self, "consume_from", as_enum("consume_from", ConsumeFrom, named))
        timestamp_ms_of(self.consume_timestamp)
        object.__setattr__(self, "message_model", as_enum("message_model", MessageModel, self.message_model))
        if not isinstance(self.offset_folder, str | PathLike | None):
            raise refusal("offset_folder", self.offset_folder, "a path")
        as_doing("strategy", self.strategy, ("allocate",), "an allocation strategy")
        as_choice("offset_illegal", get_args(OffsetIllegal), self.offset_illegal)
        as_flag("auto_commit", self.auto_commit)
        as_flag("trace", self.trace)
        _check_decode(self.decode)
        for name, (low, high) in BOUNDS.items():
            if name in _MAY_BE_NONE and getattr(self, name) is None:
                continue
            if name != "suspend_ms":
                as_int(name, getattr(self, name), low, high)
            elif as_number(name, self.suspend_ms, low) > high:
                raise refusal(name, self.suspend_ms, f"a number in {low}..{high}")

    @property
    def is_broadcasting(self) -> bool:
        """Whether each member consumes all queues, and keeps its offsets itself."""
        return self.message_model is MessageModel.BROADCASTING

    def bounds_of(self, queue_count: int) -> CacheBounds:
        """Returns the cache bounds of each queue, for a consumer with this many queues.

        Source: ``RebalancePushImpl.java messageQueueChanged``.
        """
        messages, size_bytes, count = self.max_cached, self.max_cached_bytes, max(1, queue_count)
        if self.max_cached_topic is not None:
            messages = max(1, self.max_cached_topic // count)
        if self.max_cached_topic_bytes is not None:
            size_bytes = max(_MIB, self.max_cached_topic_bytes // count)
        return CacheBounds(messages, size_bytes)


def _check_decode(decode: object) -> None:
    if decode is not None and (not callable(decode) or iscoroutinefunction(decode)):
        raise refusal("decode", decode, "a plain function that takes bytes, such as json.loads")


def timestamp_ms_of(consume_timestamp: datetime | str | None) -> int | None:
    """Returns the store time that a consumer begins at; None where none is given.

    Raises:
        InvalidArgumentError: It is not a time.
    """
    if consume_timestamp is None:
        return None
    found = consume_timestamp
    if isinstance(found, str) and _TIMESTAMP.fullmatch(found):
        with suppress(ValueError):  # such as a 13th month
            found = datetime.strptime(found, "%Y%m%d%H%M%S")  # noqa: DTZ007 - of this machine's zone, as Java's
    if not isinstance(found, datetime):
        expected = 'a datetime, or a text of 14 digits, "yyyyMMddHHmmss"'
        raise refusal("consume_timestamp", consume_timestamp, expected)
    try:
        timestamp_ms = int(found.timestamp() * 1000)
    except (ValueError, OverflowError, OSError) as error:
        raise refusal("consume_timestamp", consume_timestamp, _FROM_1970) from error
    if timestamp_ms < 0:  # a broker takes none of these
        raise refusal("consume_timestamp", consume_timestamp, _FROM_1970)
    return timestamp_ms


class ConsumerOptions(TypedDict, total=False):
    """What consumers can be set to, see :class:`ConsumerSettings`."""

    consume_from: ConsumeFrom
    consume_timestamp: datetime | str | None
    message_model: MessageModel
    offset_folder: str | PathLike[str] | None
    strategy: AllocationStrategy
    threads: int
    max_span: int
    max_cached: int
    max_cached_bytes: int
    max_cached_topic: int | None
    max_cached_topic_bytes: int | None
    pull_interval_ms: int
    pull_count: int
    pull_bytes: int
    suspend_ms: float
    max_reconsume_times: int
    batch_size: int
    consume_timeout_ms: int
    offset_illegal: OffsetIllegal
    commit_interval_ms: int
    trace: bool


class LiteOptions(TypedDict, total=False):
    """What consumers can be set to that are polled, see :class:`ConsumerSettings`."""

    consume_from: ConsumeFrom
    consume_timestamp: datetime | str | None
    message_model: MessageModel
    offset_folder: str | PathLike[str] | None
    strategy: AllocationStrategy
    max_span: int
    max_cached: int
    max_cached_bytes: int
    max_cached_all: int | None
    pull_count: int
    pull_bytes: int
    auto_commit: bool
    commit_interval_ms: int
    trace: bool


_SEPARATORS: Final = frozenset("\x01\x02")
"""What is between the properties of a message, one of which is its tag."""

Wanted: TypeAlias = str | Mapping[str, str] | Mapping[str, Subscription] | Mapping[str, str | Subscription]
"""What a consumer subscribes to: a topic, or topics and what is wanted of each."""


def subscriptions_of(subscription: Wanted) -> dict[str, Subscription]:
    """Returns what is wanted of each topic.

    Args:
        subscription: A topic, or topics and what is wanted of each: ``*``, ``TagA || TagB``, or
            ``Subscription.by_sql("price > 5")``.

    Raises:
        InvalidNameError: The topic's name is not valid.
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
    if not topics:
        raise refusal("subscription", subscription, "at least one topic")
    found: dict[str, Subscription] = {}
    for topic, wanted in topics.items():
        check_client_topic(topic)
        name = f"the subscription of {topic}"
        one = wanted if isinstance(wanted, Subscription) else parse_subscription(as_text(name, wanted))
        as_unicode(name, one.expression)
        if one.tags is not None and _SEPARATORS.intersection(one.expression):
            raise refusal(name, one.expression, "tags, none of which can hold 0x01 or 0x02")
        if one.tags is not None and (meant := probably_meant(one.expression)) is not None:
            _log.warning(
                "the subscription of %s names the tag %r; a message has one tag, and || is between those of"
                " which any will do: was %r meant?",
                topic,
                one.expression,
                meant,
            )
        found[topic] = one
    return found
