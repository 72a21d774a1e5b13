"""The columns of an archive, and their derivation from the columns of the data source.

Folders are ``store=…/topicFolder=…/day=…``. The topic is a column of the files, because names of topics may
be as long as a folder's name can be, and Hive's escapes would make them longer. ``topicFolder`` is for
finding and pruning files, and is no key: topics with unusual or very long names may share one.
"""

from __future__ import annotations

from typing import Final

from seglog.spark.source.values.columns import (
    BIGINT,
    BINARY,
    BOOL,
    INT,
    PROPERTY_MAP,
    STRING,
    Wanted,
    spark_columns,
)
from seglog.storage.format.record import CRC32, FILLER_TOPIC, PLACEHOLDER_FLAG, PLACEHOLDER_PROPERTY
from seglog.storage.format.system_names import HEARTBEAT_SYNC_TOPIC, SYSTEM_PREFIXES, TRANSIT_TOPICS

_OF_SOURCE: Final = {
    INT: ("queueId", "size", "flag", "sysFlag", "reconsumeTimes"),
    BIGINT: ("queueOffset", "physicalOffset", "bornTimestamp", "storeTimestamp"),
    STRING: ("topic", "msgId", "keys", "tags", "bornHost", "storeHost"),
    PROPERTY_MAP: ("properties",),
    BINARY: ("body", "record"),
    BOOL: ("placeholder",),
}
WANTED: Final = tuple(Wanted(name, kind) for kind, names in _OF_SOURCE.items() for name in names)
"""The columns to read from the data source; times in ms."""
READ: Final = spark_columns(WANTED)
"""The same columns as a Spark schema."""
_OF_RECORD: Final = (
    "queueId int, queueOffset bigint, physicalOffset bigint, size int,"
    " msgId string, keys string, tags string, flag int, sysFlag int, reconsumeTimes int,"
    " bornTimestamp bigint, storeTimestamp bigint, bornHost string, storeHost string,"
    " properties map<string,string>, head binary, body binary, tail binary"
)
COLUMNS: Final = (
    f"store string, topicFolder string, day string, topic string, run int, {_OF_RECORD}, recordCrc bigint,"
    " placeholder boolean"
)
"""The columns of an archive; times in ms."""
FIRST_LAYOUT: Final = f"topic string, day string, run int, {_OF_RECORD}"
"""The columns of an archive without names of stores."""
LAST_COLUMNS: Final = (
    *("topic", "queueId", "queueOffset", "physicalOffset", "recordCrc", "bornTimestamp", "storeTimestamp"),
    *("bornHost", "storeHost", "placeholder"),
)
"""The fields of :class:`~seglog.spark.archive.manifest.LastRecord`, in its order."""
PARTITIONS: Final = ("store", "topicFolder", "day")
FOLDER_CHARACTERS: Final = 100
IS_PLACEHOLDER: Final = (
    f"(flag = {PLACEHOLDER_FLAG} AND octet_length(body) = 0"
    f" AND size(map_filter(properties, (k, v) -> k NOT IN ('{PLACEHOLDER_PROPERTY}', '{CRC32}'))) = 0)"
)
"""Condition for placeholders in an archive of the first layout; applications may use their flag too."""
TAKES_SLOT: Final = "(sysFlag & 12) NOT IN (4, 12)"
_OWN_TOPICS: Final = (*TRANSIT_TOPICS, FILLER_TOPIC, HEARTBEAT_SYNC_TOPIC)
IS_NOT_BROKERS_OWN: Final = f"topic NOT IN ({', '.join(repr(topic) for topic in _OWN_TOPICS)})" + "".join(
    f" AND NOT startswith(topic, '{prefix}')" for prefix in SYSTEM_PREFIXES
)


def names_of(columns: str) -> list[str]:
    """Returns the names of columns."""
    return [column.split()[0] for column in columns.split(", ")]


def is_brokers_own(topic: str) -> bool:
    """Returns whether a topic is the broker's own; such a topic is archived only if the caller names it."""
    return topic in _OWN_TOPICS or topic.startswith(SYSTEM_PREFIXES)
