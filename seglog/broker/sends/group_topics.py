"""The topics that belong to a group: one for messages to try again, one for those that it gave up.

Source: ``TopicConfigManager.java createTopicInSendMessageBackMethod``,
``ClientManageProcessor.java heartBeat``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from seglog.broker.state.state import BrokerState
from seglog.broker.tables.topics import TopicConfig
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.remoting.topics import MAX_QUEUES
from seglog.storage.format.names import DLQ_PREFIX, RETRY_PREFIX

UNIT_SUB: Final = 2
"""``TopicSysFlag`` of a topic that clients in units subscribe to."""


def find_group(state: BrokerState, name: str) -> SubscriptionGroup | None:
    """Returns the group of a client, creating it if it may be; its retry topic comes with a heartbeat.

    Raises:
        FullError: There is no space for it.
    """
    return state.groups.find(name)


def retry_topic(
    state: BrokerState,
    group: SubscriptionGroup,
    *,
    is_order: bool | None = None,
    is_unit: bool = False,
    lazily: bool = False,
) -> TopicConfig:
    """Returns the retry topic of a group, creating it if it does not exist.

    Args:
        state: The broker's.
        group: The group.
        is_order: Whether the group consumes in order; None leaves a topic as it is.
        is_unit: Whether a new topic is marked as one of units.
        lazily: Whether a new topic may be saved later where the calling thread may not wait.

    Raises:
        FullError: There is no space for it.
    """
    count = min(group.retry_queue_nums, MAX_QUEUES)  # a file may say more
    topic = state.topics.ensure(
        TopicConfig(
            f"{RETRY_PREFIX}{group.name}",
            count,
            count,
            is_order=bool(is_order),
            sys_flag=UNIT_SUB if is_unit else 0,
        ),
        lazily=lazily,
    )
    if is_order is None or topic.is_order == is_order:
        return topic
    changed = replace(topic, is_order=is_order)
    state.topics.put(changed)
    return changed


def dlq_topic(state: BrokerState, group_name: str) -> TopicConfig:
    """Returns the topic of a group's dead letters, creating it if it does not exist."""
    return state.topics.ensure(TopicConfig(f"{DLQ_PREFIX}{group_name}", 1, 1))
