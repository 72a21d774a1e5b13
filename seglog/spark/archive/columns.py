"""The columns of an archive, and how they are made of what the data source reads.

Folders are ``store=…/topicFolder=…/day=…``. The topic itself is a column of the files: names of topics may be
as long as a folder's name can be, and Hive's escapes would make them longer. ``topicFolder`` is there to find
and to prune files by, and is no key: topics with odd or very long names may share one.
"""

from __future__ import annotations

from typing import Final

from seglog.spark.archive.record_crc import record_crc_sql
from seglog.storage.format.record import CRC32, FILLER_TOPIC, HEADS, PLACEHOLDER_FLAG, PLACEHOLDER_PROPERTY
from seglog.storage.format.system_names import HEARTBEAT_SYNC_TOPIC, SYSTEM_PREFIXES, TRANSIT_TOPICS

READ: Final = (
    "topic string, queueId int, queueOffset bigint, physicalOffset bigint, size int, msgId string,"
    " keys string, tags string, flag int, sysFlag int, reconsumeTimes int, bornTimestamp bigint,"
    " storeTimestamp bigint, bornHost string, storeHost string, properties map<string,string>,"
    " body binary, record binary"
)
"""What is asked of the data source."""
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
"""Those of :class:`~seglog.spark.archive.manifest.LastRecord`, in its order."""
PARTITIONS: Final = ("store", "topicFolder", "day")
_FOLDER_CHARACTERS: Final = 100
_HEAD_BYTES: Final = "(88 + 12 * (shiftright(sysFlag, 4) & 1) + 12 * (shiftright(sysFlag, 5) & 1))"
"""Of a record, by its flags: see :data:`seglog.storage.format.record.record.HEADS`."""
IS_PLACEHOLDER: Final = (
    f"(flag = {PLACEHOLDER_FLAG} AND octet_length(body) = 0"
    f" AND size(map_filter(properties, (k, v) -> k NOT IN ('{PLACEHOLDER_PROPERTY}', '{CRC32}'))) = 0)"
)
"""Applications may use the flag of placeholders too."""
MADE: Final = {
    "topicFolder": f"substring(regexp_replace(topic, '[^A-Za-z0-9_-]', '_'), 1, {_FOLDER_CHARACTERS})",
    "day": "date_format(date_add(date'1970-01-01', cast(floor(storeTimestamp / 86400000) as int)),"
    " 'yyyy-MM-dd')",
    "head": f"substring(record, 1, {_HEAD_BYTES})",
    "tail": f"substring(record, {_HEAD_BYTES} + octet_length(body) + 1)",
    "recordCrc": record_crc_sql("record"),
    "placeholder": IS_PLACEHOLDER,
}
_OF_HEAD: Final = {
    "queue_id": ("queueId", 4),
    "flag": ("flag", 4),
    "queue_offset": ("queueOffset", 8),
    "phy_offset": ("physicalOffset", 8),
    "sys_flag": ("sysFlag", 4),
    "born_timestamp_ms": ("bornTimestamp", 8),
}
"""Neighbours in the head of every record: column and length in bytes."""
_HEAD_AT: Final = HEADS[0].offsets["queue_id"]
_HEX: Final = ", ".join(
    f"right(concat(repeat('0', {2 * size_bytes}), hex({column})), {2 * size_bytes})"
    for column, size_bytes in _OF_HEAD.values()
)
_TOPIC_BYTES: Final = "cast(topic AS binary)"
IS_OF_BYTES: Final = (
    f"(substring(head, {_HEAD_AT + 1}, {sum(size for _column, size in _OF_HEAD.values())})"
    f" <=> unhex(concat({_HEX}))"
    " AND octet_length(head) + octet_length(body) + octet_length(tail) <=> size"
    # Before the topic is its length, in one byte or in two.
    f" AND coalesce(startswith(substring(tail, 2), {_TOPIC_BYTES})"
    f" OR startswith(substring(tail, 3), {_TOPIC_BYTES}), false))"
)
"""Whether what a restore goes by beside the bytes of a record is what these say."""
TAKES_SLOT: Final = "(sysFlag & 12) NOT IN (4, 12)"
SLOTS: Final = (
    "CASE WHEN sysFlag & 128 <> 0 THEN coalesce(try_cast(properties['INNER_NUM'] AS int), 1) ELSE 1 END"
)
_OWN_TOPICS: Final = (*TRANSIT_TOPICS, FILLER_TOPIC, HEARTBEAT_SYNC_TOPIC)
IS_NOT_BROKERS_OWN: Final = f"topic NOT IN ({', '.join(repr(topic) for topic in _OWN_TOPICS)})" + "".join(
    f" AND NOT startswith(topic, '{prefix}')" for prefix in SYSTEM_PREFIXES
)


def names_of(columns: str) -> list[str]:
    """Returns the names of columns."""
    return [column.split()[0] for column in columns.split(", ")]


def is_brokers_own(topic: str) -> bool:
    """Returns whether a topic is the broker's own: archived only where it is named."""
    return topic in _OWN_TOPICS or topic.startswith(SYSTEM_PREFIXES)
