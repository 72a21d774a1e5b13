"""Names: files and folders of a store, system topics, and what may be a topic or a group.

Source: ``TopicValidator.java``, ``UtilAll.java offset2FileName``, ``StorePathConfigHelper.java``.
"""

from __future__ import annotations

import re
from typing import Final

from seglog.arguments import as_int, as_text, shown
from seglog.errors import InvalidNameError

COMMIT_LOG: Final = "commitlog"
CONSUME_QUEUE: Final = "consumequeue"
BATCH_CONSUME_QUEUE: Final = "batchconsumequeue"
CONSUME_QUEUE_EXT: Final = "consumequeue_ext"
INDEX: Final = "index"
CONFIG: Final = "config"
CHECKPOINT_FILE: Final = "checkpoint"
ABORT_FILE: Final = "abort"
LOCK_FILE: Final = "lock"
EPOCH_FILE: Final = "epochFileCheckpoint"
"""In controller mode only."""
OURS: Final = "seglog"
"""Folder of everything that RocketMQ does not know; RocketMQ ignores it."""
BRANCHES: Final = f"{OURS}/branches"
"""Folder of a store's branches, each a store of its own."""
STRAY: Final = f"{OURS}/stray"
"""Where a repair moves files that do not belong to the store, each under its own path."""

SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
LMQ_PREFIX: Final = "%LMQ%"
RETRY_PREFIX: Final = "%RETRY%"
DLQ_PREFIX: Final = "%DLQ%"
PARK_PREFIX: Final = "%PARK%"
"""Ours: what was put aside for a group."""
HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
SYSTEM_PREFIX: Final = "rmq_sys_"

MAX_TOPIC_BYTES: Final = 127
MAX_SYSTEM_TOPIC_BYTES: Final = 255
"""Limit of ``%RETRY%`` and ``%DLQ%`` topics, and the longest file name of most file systems."""
MAX_GROUP_BYTES: Final = 255
MAX_QUEUE_ID: Final = 0x7FFF_FFFF

_NAME: Final = re.compile(r"[%|a-zA-Z0-9_-]+")
_FILE_NAME: Final = re.compile(r"[0-9]{20}")
_MAX_OFFSET: Final = 0x7FFF_FFFF_FFFF_FFFF
"""Offsets are signed 64-bit integers; twenty digits can say more."""


def segment_file_name(first_offset: int) -> str:
    """Returns the name of the file that starts with byte ``first_offset`` of its endless sequence."""
    return f"{first_offset:020d}"


def parse_segment_file_name(name: str) -> int | None:
    """Returns the first byte that a file of that name holds, None if it is no such name."""
    first = int(name) if _FILE_NAME.fullmatch(name) else _MAX_OFFSET + 1
    return first if first <= _MAX_OFFSET else None


def check_topic(topic: str) -> str:
    """Returns ``topic`` if a store may hold it.

    The bare store of RocketMQ takes topics longer than 127 bytes and writes them as V2 records; so do we,
    up to the 255 bytes that a directory name can have. Brokers apply their own, smaller limits.

    Raises:
        InvalidNameError: Empty, too long, or with a character outside ``%|a-zA-Z0-9_-``. Path separators,
            NUL, newlines and dots are among those, so no name can lead out of the store.
    """
    return _check("topic", topic, MAX_SYSTEM_TOPIC_BYTES)


def check_client_topic(topic: str) -> str:
    """Returns ``topic`` if a broker takes it from a client: 127 bytes, 255 for ``%RETRY%`` and ``%DLQ%``.

    Raises:
        InvalidNameError: As :func:`check_topic`, but for these lengths.
    """
    as_text("topic", topic)
    is_of_group = topic.startswith((RETRY_PREFIX, DLQ_PREFIX))
    return _check("topic", topic, MAX_SYSTEM_TOPIC_BYTES if is_of_group else MAX_TOPIC_BYTES)


def can_name_directory(topic: str) -> bool:
    """Returns whether a folder may be called like a topic found in a record, and is where it should.

    Records of other writers, and damaged ones without a record CRC, may call their topic anything; a store
    that made folders of such names could be led out of itself.
    """
    is_plain = bool(topic) and topic not in {".", ".."} and "/" not in topic and "\0" not in topic
    try:
        return is_plain and len(topic.encode("utf-8", "surrogateescape")) <= MAX_SYSTEM_TOPIC_BYTES
    except UnicodeEncodeError:  # half a surrogate pair, from the JSON of a request
        return False


def check_group(group: str) -> str:
    """Returns ``group`` if it may name a consumer or producer group.

    Raises:
        InvalidNameError: As :func:`check_topic`.
    """
    return _check("group", group, MAX_GROUP_BYTES)


def check_queue_id(queue_id: int) -> int:
    """Returns ``queue_id`` if it may number a queue.

    Raises:
        InvalidNameError: Negative, or more than 31 bits.
        InvalidArgumentError: No ``int``, nor a number of numpy in these bounds.
    """
    if type(queue_id) is not int:
        queue_id = as_int("queue_id", queue_id, 0, MAX_QUEUE_ID)
    if not 0 <= queue_id <= MAX_QUEUE_ID:
        raise InvalidNameError(
            f"queue_id={shown(queue_id)} is outside 0..{MAX_QUEUE_ID}",
            help=f"queues have numbers from 0 to {MAX_QUEUE_ID}; brokers make 4 to 16 of a topic",
        )
    return queue_id


def _check(kind: str, name: str, limit_bytes: int) -> str:
    name = as_text(kind, name)
    if not name:
        raise InvalidNameError(f"the {kind} name is empty")
    # fullmatch, never `$`: that would let "abc\n" through.
    if not _NAME.fullmatch(name):
        bad = next(character for character in name if not _NAME.fullmatch(character))
        raise InvalidNameError(f"the {kind} name {name[:80]!r} holds {bad!r}")
    if len(name) > limit_bytes:
        raise InvalidNameError(f"the {kind} name {name[:40]!r}… has {len(name)} bytes, at most {limit_bytes}")
    return name
