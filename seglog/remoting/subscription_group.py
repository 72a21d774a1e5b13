"""Settings of a consumer group, as clients and brokers hand them to each other.

:data:`GROUP_FIELDS` is the one place that states what their members are called in JSON and what they hold. By
it go bodies and the file ``subscriptionGroup.json``, each read as leniently as its other side needs.

Source: ``SubscriptionGroupConfig.java``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from seglog.remoting.command import TypedBody
from seglog.storage.format.config import ConfigValue


def _customized() -> ConfigValue:
    """Returns the policy of a group that names none."""
    return {"type": "CUSTOMIZED"}


@dataclass(frozen=True, slots=True)
class SubscriptionGroup(TypedBody):
    """Settings of one group; body of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP.

    Attributes:
        is_consume_enabled: Whether its clients may pull.
        is_from_min_enabled: Kept for RocketMQ, which looks at it no more.
        is_broadcast_enabled: Whether its clients may each get everything.
        is_orderly: Whether its messages are consumed in order with POP.
        retry_queue_nums: Queues of its retry topic; 0 sends nothing back.
        retry_max_times: Deliveries after the first before a message is a dead letter.
        retry_policy: Such as ``{"type": "CUSTOMIZED"}``.
        slow_broker_id: Which broker id serves it while it is slow (``whichBrokerWhenConsumeSlowly``).
        is_notified: Whether its clients are notified when one comes or goes.
        attributes: Such as ``{"priority.factor": "0"}``.
        unknown: Fields that this version does not know; written back as they were.
    """

    name: str
    is_consume_enabled: bool = True
    is_from_min_enabled: bool = True
    is_broadcast_enabled: bool = True
    is_orderly: bool = False
    retry_queue_nums: int = 1
    retry_max_times: int = 16
    retry_policy: ConfigValue = field(default_factory=_customized)
    broker_id: int = 0
    slow_broker_id: int = 1
    is_notified: bool = True
    sys_flag: int = 0
    consume_timeout_minutes: int = 15
    attributes: Mapping[str | int, ConfigValue] = field(default_factory=dict)
    unknown: Mapping[str | int, ConfigValue] = field(default_factory=dict)


class GroupFieldKind(enum.Enum):
    """What a member of a group's settings holds."""

    TEXT = enum.auto()
    FLAG = enum.auto()
    INT32 = enum.auto()
    INT64 = enum.auto()
    ANY = enum.auto()
    OBJECT = enum.auto()


class GroupField(NamedTuple):
    """A member of a group's settings: its name in JSON, the attribute here, and what it holds."""

    name: str
    attribute: str
    kind: GroupFieldKind


GROUP_FIELDS: Final = (
    GroupField("attributes", "attributes", GroupFieldKind.OBJECT),
    GroupField("brokerId", "broker_id", GroupFieldKind.INT64),
    GroupField("consumeBroadcastEnable", "is_broadcast_enabled", GroupFieldKind.FLAG),
    GroupField("consumeEnable", "is_consume_enabled", GroupFieldKind.FLAG),
    GroupField("consumeFromMinEnable", "is_from_min_enabled", GroupFieldKind.FLAG),
    GroupField("consumeMessageOrderly", "is_orderly", GroupFieldKind.FLAG),
    GroupField("consumeTimeoutMinute", "consume_timeout_minutes", GroupFieldKind.INT32),
    GroupField("groupName", "name", GroupFieldKind.TEXT),
    GroupField("groupRetryPolicy", "retry_policy", GroupFieldKind.ANY),
    GroupField("groupSysFlag", "sys_flag", GroupFieldKind.INT32),
    GroupField("notifyConsumerIdsChangedEnable", "is_notified", GroupFieldKind.FLAG),
    GroupField("retryMaxTimes", "retry_max_times", GroupFieldKind.INT32),
    GroupField("retryQueueNums", "retry_queue_nums", GroupFieldKind.INT32),
    GroupField("whichBrokerWhenConsumeSlowly", "slow_broker_id", GroupFieldKind.INT64),
)
"""By name, as they are written; ``unknown`` holds all others."""
GROUP_FIELD_NAMES: Final = frozenset(field.name for field in GROUP_FIELDS)
