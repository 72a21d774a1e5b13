"""Compaction topics: a log of their own, from which the last message of each key is kept.

The compaction log holds the commit log's records byte for byte, except that ``phy_offset`` says where
they are in it. So a ``__CRC32#`` of such a record no longer verifies, and message ids made of it lead
nowhere. Its queue files have the unit of batch queues and the names of the log files they belong to:
both end together, a file is full when either is.

``position-checkpoint`` says how far each queue was compacted.

Truth: the compaction log itself, once records were dropped; before, the commit log.

Source: ``store/.../kv/CompactionLog.java getCompactionLogSize, CompactionAppendMessageCallback``,
``CompactionPositionMgr.java``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from seglog.errors import CorruptError, InvalidArgumentError, MessageIllegalError, TruncatedError
from seglog.storage.format.config import ConfigValue, decode_config, encode_config
from seglog.storage.format.layout import Buffer, Layout
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT_BYTES
from seglog.storage.format.record import FILLER_BYTES, HEAD_V4, PHY_OFFSET_AT
from seglog.storage.format.record import properties as props

COMPACTION: Final = "compaction"
COMPACTION_LOG: Final = "compactionLog"
COMPACTION_QUEUE: Final = "compactionCq"
POSITION_FILE: Final = "position-checkpoint"
"""Names in a store: ``compaction/compactionLog/<topic>/<queue>/…`` and so on."""

_LEAST_QUEUES_A_LOG: Final = 5
_QUEUE_ID: Final = re.compile(r"[0-9]{1,10}")
_PHY_OFFSET: Final = Layout(
    "", "", tuple(field for field in HEAD_V4.fields if field.name == "phy_offset")
).struct


class CompactionSizes(NamedTuple):
    """Sizes of the files of a compaction topic."""

    log_bytes: int
    queue_bytes: int


def compaction_sizes(log_bytes: int = 100 << 20, queue_bytes: int = 10 << 20) -> CompactionSizes:
    """Returns the sizes that files really have.

    Args:
        log_bytes: ``compactionMappedFileSize``.
        queue_bytes: ``compactionCqMappedFileSize``, at least one unit.

    Raises:
        InvalidArgumentError: A queue file that holds no unit.
    """
    queue = queue_bytes // BATCH_UNIT_BYTES * BATCH_UNIT_BYTES
    if queue <= 0:
        raise InvalidArgumentError(f"a queue file of {queue_bytes} bytes holds no unit of {BATCH_UNIT_BYTES}")
    count, rest = divmod(log_bytes, queue)
    if count < _LEAST_QUEUES_A_LOG:
        return CompactionSizes(_LEAST_QUEUES_A_LOG * queue, queue)
    return CompactionSizes((count if 0 < rest < queue // 2 else count + 1) * queue, queue)


def compaction_rolls(
    record_bytes: int, log_position_bytes: int, queue_position_bytes: int, sizes: CompactionSizes
) -> bool:
    """Returns whether a record goes to the next pair of files.

    Before it does, the queue file gets an end unit if it has room for one, and the log file a filler.
    """
    return (
        queue_position_bytes + BATCH_UNIT_BYTES >= sizes.queue_bytes
        or record_bytes + FILLER_BYTES > sizes.log_bytes - log_position_bytes
    )


def compaction_record(record: Buffer, phy_offset: int) -> bytes:
    """Returns a record as the compaction log holds it.

    Args:
        record: A whole record of the commit log.
        phy_offset: Where it will be in the compaction log.

    Raises:
        TruncatedError: Too short for a record.
    """
    if len(record) < HEAD_V4.size_bytes:
        raise TruncatedError("short", expected=f"at least {HEAD_V4.size_bytes} bytes", found=len(record))
    moved = bytearray(record)
    _PHY_OFFSET.pack_into(moved, PHY_OFFSET_AT, phy_offset)
    return bytes(moved)


def compaction_key(properties: bytes) -> bytes:
    """Returns what a compaction distinguishes messages by: all of KEYS, spaces included.

    Raises:
        MessageIllegalError: A record without; RocketMQ's broker refuses such messages.
    """
    keys = props.find_property(properties, props.KEYS.encode())
    if keys is None or not keys.strip():
        raise MessageIllegalError(
            "a message to a compaction topic has no keys", help="give each message keys=...: its identity"
        )
    return keys


def decode_positions(text: str | bytes) -> dict[tuple[str, int], int]:
    """Returns the queue offset that each queue, by topic and id, was compacted up to.

    Raises:
        CorruptError: No such file.
    """
    value = decode_config(text)
    positions = value.get("queueOffsetMap", {}) if isinstance(value, Mapping) else None
    if not isinstance(positions, Mapping):
        raise CorruptError("compaction-positions", expected="queueOffsetMap", found=repr(value)[:80])
    found: dict[tuple[str, int], int] = {}
    for key, offset in positions.items():
        topic, _, queue_id = str(key).rpartition("_")
        if not _QUEUE_ID.fullmatch(queue_id) or type(offset) is not int:
            raise CorruptError(
                "compaction-positions", expected="topic_queue: offset", found=f"{key!r}: {offset!r}"[:80]
            )
        found[topic, int(queue_id)] = offset
    return found


def encode_positions(positions: Mapping[tuple[str, int], int]) -> str:
    """Returns the text of ``position-checkpoint``."""
    by_name: dict[str | int, ConfigValue] = {
        f"{topic}_{queue_id}": offset for (topic, queue_id), offset in positions.items()
    }
    return encode_config({"empty": not positions, "queueOffsetMap": by_name})
