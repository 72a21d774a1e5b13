"""Tables: topics, groups, clients and queue locks, in memory and as RocketMQ's config files.

Called by every other room of the broker, and by the doctor for stores that no broker has open.
Truth: the table in memory while the broker runs, its file or backup otherwise.
"""

from __future__ import annotations

from seglog.broker.tables.attributes import GROUP_ATTRIBUTES, alter_attributes
from seglog.broker.tables.config_shape import as_int, as_int_key, as_object, as_text
from seglog.broker.tables.data_version import DataVersion
from seglog.broker.tables.groups import GroupTable, group_name_problem
from seglog.broker.tables.lock_snapshot import read_picture
from seglog.broker.tables.topics import TopicConfig, TopicTable, is_system_topic, topic_name_problem

__all__ = [
    "GROUP_ATTRIBUTES",
    "DataVersion",
    "GroupTable",
    "TopicConfig",
    "TopicTable",
    "alter_attributes",
    "as_int",
    "as_int_key",
    "as_object",
    "as_text",
    "group_name_problem",
    "is_system_topic",
    "read_picture",
    "topic_name_problem",
]
