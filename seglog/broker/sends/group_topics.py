"""The topics of a group: the retry topic, and the topic of its dead letters.

Source: ``TopicConfigManager.java createTopicInSendMessageBackMethod``,
``ClientManageProcessor.java heartBeat``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from seglog.broker.state.state import BrokerState
from seglog.broker.tables.topics import UNIT_SUB, TopicConfig
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.remoting.topics import MAX_QUEUES
from seglog.storage.format.names import DLQ_PREFIX, RETRY_PREFIX


def find_group(state: BrokerState, name: str) -> SubscriptionGroup | None:
    """Returns the group of a client, creating it if permitted; a heartbeat creates its retry topic.

    Raises:
        FullError: There is no space for it.
    """
    return state.groups.find(name)


class RetryTopic(NamedTuple):
    """The wanted retry topic of a group.

    Attributes:
        group: The group.
        is_order: Whether the group consumes in order; None leaves an existing topic unchanged.
        is_unit: Whether a new topic gets the flag of unit mode.
    """

    group: SubscriptionGroup
    is_order: bool | None = None
    is_unit: bool = False

    def new(self) -> TopicConfig:
        """Returns the settings of the topic when it is created."""
        count = min(self.group.retry_queue_nums, MAX_QUEUES)  # the file may hold a larger number
        return TopicConfig(
            f"{RETRY_PREFIX}{self.group.name}",
            count,
            count,
            is_order=bool(self.is_order),
            sys_flag=UNIT_SUB if self.is_unit else 0,
        )


def retry_topics(
    state: BrokerState, wanted: Sequence[RetryTopic], *, lazily: bool = False
) -> list[TopicConfig]:
    """Returns retry topics, creating those that do not exist; new topics are saved together.

    Args:
        state: The broker's.
        wanted: The wanted topics.
        lazily: Whether new topics may be saved later if the calling thread may not wait.

    Raises:
        FullError: There is no space for them.
    """
    found = state.topics.ensure_all([one.new() for one in wanted], lazily=lazily)
    made = [
        topic
        if one.is_order is None or topic.is_order == one.is_order
        else replace(topic, is_order=one.is_order)
        for one, topic in zip(wanted, found, strict=True)
    ]
    if made != found:
        state.topics.put_all(made)
    return made


def dlq_topic(state: BrokerState, group_name: str) -> TopicConfig:
    """Returns the topic of a group's dead letters, creating it if it does not exist."""
    return state.topics.ensure(TopicConfig(f"{DLQ_PREFIX}{group_name}", 1, 1))
