"""System topics and groups: names that RocketMQ and its broker keep for themselves, stated once.

Each list answers another question. A broker refuses to create or delete a system topic, but producers send
to some of them; it refuses messages for six of them, and creates some groups itself. An export leaves out
the topics that messages only pass through. An account of deliveries counts the topics that producers send to.

Source: ``TopicValidator.java SYSTEM_TOPIC_SET, NOT_ALLOWED_SEND_TOPIC_SET``, ``MixAll.java``,
``SubscriptionGroupManager.java init``.
"""

from __future__ import annotations

from typing import Final

from seglog.storage.format.names import (
    DLQ_PREFIX,
    HALF_TOPIC,
    LMQ_PREFIX,
    OP_TOPIC,
    PARK_PREFIX,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    SYSTEM_PREFIX,
)

TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
AUTO_CREATE_TOPIC: Final = "TBW102"
"""Model of topics created by a send; must be routable for that."""
BENCHMARK_TOPIC: Final = "BenchmarkTest"
CHECK_MAX_TOPIC: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
OFFSET_MOVED_TOPIC: Final = "OFFSET_MOVED_EVENT"
SELF_TEST_TOPIC: Final = "SELF_TEST_TOPIC"
TIMER_TOPIC: Final = "rmq_sys_wheel_timer"
HEARTBEAT_SYNC_TOPIC: Final = "DefaultHeartBeatSyncerTopic"
"""What proxies tell each other of their clients (``ProxyConfig.java heartbeatSyncerTopicName``)."""
REPLY_SUFFIX: Final = "_REPLY_TOPIC"
"""Behind the cluster's name: answers to requests, which a broker hands on and no group consumes."""

NOT_ALLOWED_TO_SEND: Final = frozenset(
    (SCHEDULE_TOPIC, HALF_TOPIC, OP_TOPIC, CHECK_MAX_TOPIC, SELF_TEST_TOPIC, OFFSET_MOVED_TOPIC)
)
SYSTEM_TOPICS: Final = NOT_ALLOWED_TO_SEND | {
    *(AUTO_CREATE_TOPIC, BENCHMARK_TOPIC, TRACE_TOPIC, "CHECKPOINT_TOPIC")
}
"""Besides those of :data:`SYSTEM_PREFIX`, and those named after cluster and broker."""
TRANSIT_TOPICS: Final = (SCHEDULE_TOPIC, HALF_TOPIC, OP_TOPIC)
"""Of which each message was, or will be, put into another topic; so are those of :data:`SYSTEM_PREFIX`."""
SYSTEM_PREFIXES: Final = (SYSTEM_PREFIX, SYSTEM_PREFIX.upper())
_HANDED_ON_PREFIXES: Final = (RETRY_PREFIX, DLQ_PREFIX, LMQ_PREFIX, PARK_PREFIX, *SYSTEM_PREFIXES)

TRANSACTION_GROUP: Final = "CID_RMQ_SYS_TRANS"
"""Looks at half messages; RocketMQ's broker commits as its offsets what was decided."""
TOOLS_GROUP: Final = "TOOLS_CONSUMER"
DELAY_GROUP: Final = "SCHEDULE_CONSUMER"
"""``MixAll.java SCHEDULE_CONSUMER_GROUP``; its offsets are those of ``delayOffset.json``."""
SYSTEM_GROUP_PREFIX: Final = "CID_RMQ_SYS_"
SYSTEM_GROUPS: Final = (
    TOOLS_GROUP,
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    TRANSACTION_GROUP,
)
"""Those that every broker makes."""
_UNREGISTERED_GROUPS: Final = frozenset(("DEFAULT_CONSUMER", DELAY_GROUP, "__MONITOR_CONSUMER"))


def is_transit_topic(topic: str) -> bool:
    """Returns whether each message of a topic was, or will be, put into another one."""
    return topic in TRANSIT_TOPICS or topic.startswith(SYSTEM_PREFIX)


def is_business_topic(topic: str) -> bool:
    """Returns whether producers send to a topic, and not the broker itself."""
    is_own = topic in NOT_ALLOWED_TO_SEND or topic.startswith(_HANDED_ON_PREFIXES)
    return not is_own and not topic.endswith(REPLY_SUFFIX)


def is_system_group(group: str) -> bool:
    """Returns whether a group is the system's own."""
    return group in SYSTEM_GROUPS or group.startswith(SYSTEM_GROUP_PREFIX)


def needs_no_registration(group: str) -> bool:
    """Returns whether a group may consume without an entry in ``subscriptionGroup.json``."""
    return is_system_group(group) or group in _UNREGISTERED_GROUPS
