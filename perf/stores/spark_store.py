"""Stores for the Spark bench: several topics, messages with properties, repeated keys, groups behind."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from seglog import MessageStore
from seglog.storage.directory.geometry import DEFAULT_SEGMENT_BYTES
from seglog.storage.format.names import CONFIG

TOPICS: Final = ("orders", "payments", "stock", "prices")
QUEUES_A_TOPIC: Final = 4
GROUPS: Final = ("billing", "shipping")
BODY_BYTES: Final = 1024
SMALL_BODY_BYTES: Final = 20
_KEYS_OF_MESSAGES: Final = 4
"""Every key has about so many messages, so that compaction keeps a quarter."""
_BYTES_BESIDE_BODY: Final = 236
_SEGMENTS: Final = 4
"""So many files at least, for as many threads as take a file each."""
_MIN_SEGMENT_BYTES: Final = 1 << 20
_PAGE: Final = 4096


def make_store(root: Path, size_bytes: int, body_bytes: int = BODY_BYTES) -> int:
    """Puts messages until the log has about the size; returns how many.

    Messages have a tag, a key and a record CRC, as those of most producers have on RocketMQ 5. The groups
    have read half of every queue.
    """
    count = max(64, size_bytes // (_BYTES_BESIDE_BODY + body_bytes))
    segment_bytes = min(
        DEFAULT_SEGMENT_BYTES, max(_MIN_SEGMENT_BYTES, size_bytes // _SEGMENTS // _PAGE * _PAGE)
    )
    _fill(root, count, body_bytes, GROUPS, segment_bytes, tags="TagA")
    return count


def make_small(root: Path, count: int, groups: int) -> None:
    """Puts so many messages with nothing but a key and a body of 20 bytes, so that 100 million find room.

    Args:
        root: The store directory.
        count: How many.
        groups: How many groups have read half of every queue.
    """
    names = [f"group-{number:02}" for number in range(groups)]
    _fill(root, count, SMALL_BODY_BYTES, names, DEFAULT_SEGMENT_BYTES)


def _fill(
    root: Path, count: int, body_bytes: int, groups: Sequence[str], segment_bytes: int, tags: str = ""
) -> None:
    keys = max(1, count // _KEYS_OF_MESSAGES)
    numbers = random.Random(1)
    body = numbers.randbytes(body_bytes)
    ends: dict[tuple[str, int], int] = {}
    with MessageStore.open(root, record_crc=bool(tags), segment_size_bytes=segment_bytes) as store:
        put = store.put
        for number in range(count):
            topic, queue_id = TOPICS[number % len(TOPICS)], number // len(TOPICS) % QUEUES_A_TOPIC
            key = f"key-{numbers.randrange(keys):09}"
            result = put(topic, body, queue_id=queue_id, tags=tags, keys=key)
            ends[topic, queue_id] = result.queue_offset + 1
    _write_config(root, ends, groups)


def _write_config(root: Path, ends: dict[tuple[str, int], int], names: Sequence[str]) -> None:
    folder = root / CONFIG
    folder.mkdir(exist_ok=True)
    offsets = {
        f"{topic}@{group}": {
            str(queue_id): ends.get((topic, queue_id), 0) // 2 for queue_id in range(QUEUES_A_TOPIC)
        }
        for topic in TOPICS
        for group in names
    }
    topics = {
        topic: {
            "topicName": topic,
            "readQueueNums": QUEUES_A_TOPIC,
            "writeQueueNums": QUEUES_A_TOPIC,
            "perm": 6,
        }
        for topic in TOPICS
    }
    groups = {group: {"groupName": group, "consumeEnable": True} for group in names}
    (folder / "consumerOffset.json").write_text(json.dumps({"offsetTable": offsets}))
    (folder / "topics.json").write_text(json.dumps({"topicConfigTable": topics}))
    (folder / "subscriptionGroup.json").write_text(json.dumps({"subscriptionGroupTable": groups}))
