"""How far a stream has come, as its checkpoint keeps it.

    {"/data/broker-a/store": {
        "brokerName": "broker-a", "wanted": {"subscribe": ["orders"]},
        "physicalOffset": 4096, "storeTimestamp": 1700000000000,
        "queues": {"orders": {"0": 17}},
        "lastRecord": {"physicalOffset": 3800, "size": 296, "crc32": 907060870,
                       "topic": "orders", "queueId": 0, "queueOffset": 16},
        "alreadyRead": {"begin": 0, "end": 9000, "queues": {"orders": {"0": 12}}}}}

A stream continues at ``physicalOffset``. ``lastRecord`` is the record before it, with the CRC-32 of its
bytes: while that record exists, the log is the one that was read. ``queues`` has the next offset of each
queue, by which the stream continues in another log. In that case ``alreadyRead`` is kept
until the stream is past ``end``: before it, messages below those queue offsets were read.

The key of a store is its absolute path, or its address without the parts that only affect the connection
(:func:`seglog.spark.source.wanted.identity.store_key`); earlier versions used ``brokerName``, or the path as
the user spelled it. ``isAbsent`` exists for a store that was not read when the batch was planned, and
``wanted`` is the selection with which the stream began (:mod:`seglog.spark.source.stream.noted_selection`).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import NotRequired, TypeAlias, TypedDict

from seglog.storage.directory import MOST_RECORD_BYTES, LogReader
from seglog.storage.format.record.sys_flag import takes_queue_offset
from seglog.storage.walk import record_at

Queues: TypeAlias = dict[str, dict[str, int]]
"""Queue offsets by topic and queue id, in the form of JSON."""
Key = tuple[str, int]
NO_QUEUE = -1


class LastRecord(TypedDict):
    """The last record that was read; ``queueOffset`` is -1 for one without a place in a queue."""

    physicalOffset: int
    size: int
    crc32: int
    topic: str
    queueId: int
    queueOffset: int


class AlreadyRead(TypedDict):
    """The messages of another log that were read before that log replaced the first one."""

    begin: int
    end: int
    queues: Queues


class Noted(TypedDict, total=False):
    """The selection with which a stream began; a missing field selects nothing."""

    subscribe: list[str]
    subscribePattern: str
    assign: dict[str, list[int]]
    endingTimestamp: int
    startingTimestamp: int
    startingOffsets: Queues


class StoreOffset(TypedDict):
    """The position of a stream in one store."""

    physicalOffset: int
    storeTimestamp: int
    queues: Queues
    lastRecord: NotRequired[LastRecord]
    alreadyRead: NotRequired[AlreadyRead]
    brokerName: NotRequired[str]
    wanted: NotRequired[Noted]
    isAbsent: NotRequired[bool]


StreamOffset: TypeAlias = dict[str, StoreOffset]
"""The position of a stream, by store."""


def by_key(queues: Mapping[str, Mapping[str, int]]) -> dict[Key, int]:
    """Returns queue offsets by topic and queue id."""
    return {(topic, int(number)): at for topic, found in queues.items() for number, at in found.items()}


def as_json(queues: Mapping[Key, int]) -> Queues:
    """Returns queue offsets in the form of JSON."""
    found: Queues = {}
    for (topic, number), at in sorted(queues.items()):
        found.setdefault(topic, {})[str(number)] = at
    return found


def describe_record(reader: LogReader, phy_offset: int) -> tuple[LastRecord, int] | None:
    """Returns the record at a place in the form of a checkpoint, and its store time; None without one."""
    found = record_at(reader, phy_offset, verify=False, most_bytes=MOST_RECORD_BYTES)
    if found is None:
        return None
    record, row = found
    described = LastRecord(
        physicalOffset=phy_offset,
        size=row.size_bytes,
        crc32=zlib.crc32(record),
        topic=row.topic.decode("utf-8", "surrogateescape"),
        queueId=row.queue_id,
        queueOffset=row.queue_offset if takes_queue_offset(row.sys_flag) else NO_QUEUE,
    )
    return described, row.store_timestamp_ms


def is_there(reader: LogReader, last: LastRecord) -> bool:
    """Returns whether a record is at its place, with all its bytes."""
    record = reader.read(last["physicalOffset"], last["size"])
    return len(record) == last["size"] and zlib.crc32(record) == last["crc32"]
