"""Tables: topics, groups, clients and queue locks, in memory and as RocketMQ's config files.

Called by every other room of the broker, and by the doctor for stores without a running broker.
Truth: the table in memory while the broker runs, its file or backup otherwise.
"""

from seglog.broker.tables.attributes import GROUP_ATTRIBUTES as GROUP_ATTRIBUTES
from seglog.broker.tables.attributes import alter_attributes as alter_attributes
from seglog.broker.tables.config_shape import as_int as as_int
from seglog.broker.tables.config_shape import as_int_key as as_int_key
from seglog.broker.tables.config_shape import as_object as as_object
from seglog.broker.tables.config_shape import as_text as as_text
from seglog.broker.tables.data_version import DataVersion as DataVersion
from seglog.broker.tables.groups import GroupTable as GroupTable
from seglog.broker.tables.groups import group_name_problem as group_name_problem
from seglog.broker.tables.lock_snapshot import read_picture as read_picture
from seglog.broker.tables.queued_topics import proven_topics as proven_topics
from seglog.broker.tables.topics import TopicConfig as TopicConfig
from seglog.broker.tables.topics import TopicTable as TopicTable
from seglog.broker.tables.topics import is_system_topic as is_system_topic
from seglog.broker.tables.topics import topic_name_problem as topic_name_problem
