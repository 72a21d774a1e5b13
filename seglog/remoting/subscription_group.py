"""Settings of a consumer group, as clients and brokers hand them to each other.

Source: ``SubscriptionGroupConfig.java``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
