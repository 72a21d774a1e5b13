"""The topics that belong to a group: one for messages to try again, one for those that it gave up.

Source: ``TopicConfigManager.java createTopicInSendMessageBackMethod``,
``ClientManageProcessor.java heartBeat``.
"""

from __future__ import annotations

from seglog.broker.state import BrokerState
from seglog.broker.topics import TopicConfig
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.storage.format.names import DLQ_PREFIX, RETRY_PREFIX


def find_group(state: BrokerState, name: str) -> SubscriptionGroup | None:
    """Returns the group of a client, creating it if it may be; its retry topic comes with a heartbeat.

    Raises:
        FullError: There is no space for it.
    """
    return state.groups.find(name)


def retry_topic(state: BrokerState, group: SubscriptionGroup) -> TopicConfig:
    """Returns the retry topic of a group, creating it if it is not there."""
    count = group.retry_queue_nums
    return state.topics.ensure(TopicConfig(f"{RETRY_PREFIX}{group.name}", count, count))


def dlq_topic(state: BrokerState, group_name: str) -> TopicConfig:
    """Returns the topic of a group's dead letters, creating it if it is not there."""
    return state.topics.ensure(TopicConfig(f"{DLQ_PREFIX}{group_name}", 1, 1))
