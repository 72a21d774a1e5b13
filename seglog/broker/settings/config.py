"""The names and options of a broker, with RocketMQ's defaults unless noted."""

from __future__ import annotations

import enum
from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Final

from seglog.arguments import as_choice, as_enum, as_flag, as_int, as_text, as_unicode, refusal
from seglog.broker.settings.releases import NEWEST_RELEASE, RELEASES, ReleaseRules
from seglog.remoting.topics import MAX_QUEUES, PERM_READ_WRITE
from seglog.storage.format.names import MAX_TOPIC_BYTES
from seglog.storage.format.system_names import REPLY_SUFFIX

DEFAULT_ADDRESS: Final = "127.0.0.1:10911"
"""The address of a broker that was given none; no server elsewhere serves it."""
_LAST_HOUR: Final = 23
_MOST_REGION_BYTES: Final = 255
"""Longest region in bytes: it is stored with each message, whose properties have 32,767 bytes in all."""


class GuardPolicy(enum.Enum):
    """The fate of messages that a group still needs."""

    REFUSE = "refuse"
    """They are kept, and so is everything after them."""
    PARK = "park"
    """They are copied to a side file first."""
    ALLOW = "allow"
    """They are deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """Settings of one broker.

    Attributes:
        cluster_name: Stored with every message as CLUSTER; also the name of a topic.
        broker_name: What routes and queue locks name; also the name of a topic.
        address: What routes name; also the store host of records.
        region_id: Stored with every message as MSG_REGION.
        is_trace_on: Stored with every message as TRACE_ON.
        broker_permission: 4 read, 2 write; without 4 every pull is refused, without 2 what comes
            back from consumers and sends to topics of order.
        auto_create_topics: Whether a send to an unknown topic creates it after the model of TBW102.
        auto_create_groups: Whether a group that does not exist is created by its first use.
        default_topic_queue_nums: Queues of TBW102, the most that a send can create; at most 16,384.
        max_message_size_bytes: Longest body, and longest batch with its properties.
        persist_interval_ms: How often changed offsets are saved.
        queue_lock_live_ms: How long a queue lock lives without renewal.
        strict_queue_lock: Whether a pull of a queue that another client of the group has locked is refused;
            RocketMQ leaves that to the clients.
        delay_levels: How long messages of each delay level wait, from level 1 on (``messageDelayLevel``).
        max_pull_count: Most messages of one pull (``maxTransferCountOnMessageInMemory``). A pull that asks
            for less gets less.
        max_pull_bytes: A pull ends before the message that would exceed this, never before the first
            (``maxTransferBytesOnMessageInMemory``).
        hot_bytes: What the log may hold and still count as in memory; None takes 40 % of the machine's.
        max_cold_pull_count: As ``max_pull_count``, of what is not hot.
        max_cold_pull_bytes: As ``max_pull_bytes``, of what is not hot.
        long_polling_enable: Whether a pull may be held as long as its client asks.
        short_polling_ms: How long it is held otherwise.
        lite_pull_message_enable: Whether LITE_PULL_MESSAGE is answered.
        reject_pull_consumer_enable: Whether clients that pull by themselves are turned away, unless they are
            in a group that consumes passively.
        enable_property_filter: Whether messages are filtered by SQL92 expressions.
        retention_hours: How old messages become before their file of the log may go; a full disk lets it go
            sooner. None keeps every file, also on a full disk, which refuses sends.
        retention_delete_hours: Hours of the day, local time, in which they go (``deleteWhen``).
        retention_policy: What happens to messages that a group still needs: ``refuse`` keeps them, and the
            log after them; ``park`` writes them to the side first; ``allow`` deletes them as RocketMQ does.
        retention_idle_days: Groups without a commit for longer than this are ignored; 0 counts every group.
        retention_check_ms: How often the disk is looked at, at most.
        disk_clean_percent: On a disk that is fuller, old files go at any hour.
        disk_force_percent: On a disk that is fuller, files go at any age, as far as the policy lets
            them: what no group reads counts as needed until it is old.
        disk_refuse_percent: On a disk that is fuller, sends are refused, until ``disk_force_percent`` is
            reached again.
        compatible_with: The release of RocketMQ whose behaviour the broker has, where releases differ.
    """

    cluster_name: str = "DefaultCluster"
    broker_name: str = "broker-a"
    address: str = DEFAULT_ADDRESS
    region_id: str = "DefaultRegion"
    is_trace_on: bool = True
    broker_permission: int = PERM_READ_WRITE
    auto_create_topics: bool = True
    auto_create_groups: bool = True
    default_topic_queue_nums: int = 8
    max_message_size_bytes: int = 4 << 20
    persist_interval_ms: int = 5_000
    queue_lock_live_ms: int = 60_000
    strict_queue_lock: bool = False
    delay_levels: str = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
    max_pull_count: int = 32
    max_pull_bytes: int = 256 << 10
    hot_bytes: int | None = None
    max_cold_pull_count: int = 8
    max_cold_pull_bytes: int = 64 << 10
    long_polling_enable: bool = True
    short_polling_ms: int = 1_000
    lite_pull_message_enable: bool = True
    reject_pull_consumer_enable: bool = False
    enable_property_filter: bool = False
    retention_hours: int | None = None
    retention_delete_hours: Collection[int] = (4,)
    retention_policy: str = "refuse"
    retention_idle_days: int = 0
    retention_check_ms: int = 10_000
    disk_clean_percent: int = 75
    disk_force_percent: int = 85
    disk_refuse_percent: int = 90
    compatible_with: str = NEWEST_RELEASE

    def __post_init__(self) -> None:
        """Checks the settings.

        Raises:
            InvalidArgumentError: One is of another type, negative, or none of its choices; it is named.
        """
        for field in fields(self):
            value = getattr(self, field.name)
            match field.type:
                case "str":
                    as_text(field.name, value)
                case "bool":
                    as_flag(field.name, value)
                case "int":
                    as_int(field.name, value, 0)
                case _:
                    continue
        for name in ("hot_bytes", "retention_hours"):
            if getattr(self, name) is not None:
                as_int(name, getattr(self, name), 0)
        hours: object = self.retention_delete_hours
        if isinstance(hours, str) or not isinstance(hours, Collection):
            raise refusal("retention_delete_hours", hours, "several hours")
        for hour in self.retention_delete_hours:
            as_int("retention_delete_hours", hour, 0, _LAST_HOUR)
        _check_name("cluster_name", self.cluster_name, MAX_TOPIC_BYTES - len(REPLY_SUFFIX))
        _check_name("broker_name", self.broker_name, MAX_TOPIC_BYTES)
        _check_name("region_id", self.region_id, _MOST_REGION_BYTES)
        as_int("default_topic_queue_nums", self.default_topic_queue_nums, 0, MAX_QUEUES)
        as_enum("retention_policy", GuardPolicy, self.retention_policy)
        as_choice("compatible_with", RELEASES, self.compatible_with)

    @property
    def release(self) -> ReleaseRules:
        """What the release does that the broker is compatible with."""
        return RELEASES[self.compatible_with]


def _check_name(name: str, value: str, most_bytes: int) -> None:
    """Checks what is stored with messages, and shown by tools; cluster and broker name folders as well.

    Raises:
        InvalidArgumentError: It is empty or too long, or has a character that is none to be seen, or that
            leads out of a folder.
    """
    as_unicode(name, value)
    is_plain = bool(value.strip()) and value.isprintable() and "/" not in value
    if not is_plain or value in {".", ".."} or len(value.encode()) > most_bytes:
        raise refusal(name, value, f"1 to {most_bytes} bytes of printable characters, without /")
