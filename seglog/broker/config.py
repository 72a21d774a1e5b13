"""What a broker is called and how it is set, RocketMQ's defaults unless said."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Settings of one broker.

    Attributes:
        address: What routes name; also the store host of records.
        region_id: Stored with every message as MSG_REGION.
        is_trace_on: Stored with every message as TRACE_ON.
        auto_create_topics: Whether a send to an unknown topic creates it after the model of TBW102.
        auto_create_groups: Whether a group that is not there is created by its first use.
        default_topic_queue_nums: Queues of TBW102, the most that a send can create.
        max_message_size_bytes: Longest body, and longest batch with its properties.
        persist_interval_ms: How often changed offsets are saved.
        queue_lock_live_ms: How long a queue lock lives without renewal.
        strict_queue_lock: Whether a pull of a queue that another client of the group has locked is refused;
            RocketMQ leaves that to the clients.
        max_pull_count: Most messages of one pull; RocketMQ gives 32, but its clients ask for no more.
        max_pull_bytes: A pull ends with the message that reaches this, never before the first.
        retention_hours: How old messages become before their file of the log may go.
        retention_delete_hours: Hours of the day, local time, in which they go (``deleteWhen``).
        retention_policy: What happens to messages that somebody still needs: ``refuse`` keeps them, and the
            log behind them; ``park`` writes them to the side first; ``allow`` deletes them as RocketMQ does.
        retention_idle_days: Groups that committed nothing for so long need nothing; 0 counts every group.
        retention_check_ms: How often the disk is looked at, at most.
        disk_clean_percent: On a disk that is fuller, old files go at any hour.
        disk_force_percent: On a disk that is fuller, files go whatever their age.
        disk_refuse_percent: On a disk that is fuller, sends are refused, until ``disk_force_percent`` is
            reached again.
        hot_bytes: What the log may hold and still count as in memory; None takes 40 % of the machine's.
    """

    cluster_name: str = "DefaultCluster"
    broker_name: str = "broker-a"
    address: str = "127.0.0.1:10911"
    region_id: str = "DefaultRegion"
    is_trace_on: bool = True
    auto_create_topics: bool = True
    auto_create_groups: bool = True
    default_topic_queue_nums: int = 8
    max_message_size_bytes: int = 4 << 20
    persist_interval_ms: int = 5_000
    queue_lock_live_ms: int = 60_000
    strict_queue_lock: bool = False
    max_pull_count: int = 1_024
    max_pull_bytes: int = 4 << 20
    hot_bytes: int | None = None
    retention_hours: int = 72
    retention_delete_hours: Collection[int] = (4,)
    retention_policy: str = "refuse"
    retention_idle_days: int = 0
    retention_check_ms: int = 10_000
    disk_clean_percent: int = 75
    disk_force_percent: int = 85
    disk_refuse_percent: int = 90
