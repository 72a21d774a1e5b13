"""Sets offsets of groups and delay levels that are past the end of their queue to that end.

Such a group misses the next stored messages, or RocketMQ restarts it at the beginning of the queue. Offsets
before a queue's first message are normal: retention removed messages of a slow group, and RocketMQ moves the
group forward by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from seglog.doctor.plans.actions import Action
from seglog.errors import CorruptError
from seglog.storage.files import Files
from seglog.storage.format.config import ConfigValue, decode_config, encode_config
from seglog.storage.format.names import CONFIG, SCHEDULE_TOPIC

_TABLES: Final = ("offsetTable", "pullOffsetTable")
_Object = dict[str | int, ConfigValue]


def mend_offsets(files: Files, root: Path, ends: Mapping[tuple[str, int], int]) -> Iterator[Action]:
    """Clamps offsets to the ends of their queues; yields the actions.

    Args:
        files: Access to the store.
        root: The store directory.
        ends: The queue offset of the next message of each queue, by topic and queue id.
    """
    for name, clamp in (("consumerOffset.json", _clamp_groups), ("delayOffset.json", _clamp_levels)):
        path = root / CONFIG / name
        if not files.exists(path):
            continue
        try:
            value = decode_config(files.read_file(path))
        except CorruptError:
            continue  # reported, and repaired where possible, by other modules
        told = clamp(value, ends) if isinstance(value, dict) else []
        if told:
            files.write_file(path, encode_config(value).encode())
            for text in told:
                yield Action("offset", f"{CONFIG}/{name}", detail=text)


def _clamp_groups(value: _Object, ends: Mapping[tuple[str, int], int]) -> list[str]:
    told: list[str] = []
    for table in _TABLES:
        for key, offsets in _entries(value.get(table)):
            topic, _at, group = str(key).partition("@")
            if isinstance(offsets, dict):
                told += [f"{group} at {text}" for text in _clamp(offsets, topic, ends, first_queue=0)]
    return told


def _clamp_levels(value: _Object, ends: Mapping[tuple[str, int], int]) -> list[str]:
    offsets = value.get(_TABLES[0])
    if not isinstance(offsets, dict):
        return []
    return [f"delay level at {text}" for text in _clamp(offsets, SCHEDULE_TOPIC, ends, first_queue=1)]


def _clamp(
    offsets: _Object, topic: str, ends: Mapping[tuple[str, int], int], *, first_queue: int
) -> Iterator[str]:
    for key, offset in list(offsets.items()):
        if not str(key).isdecimal() or not isinstance(offset, int) or isinstance(offset, bool):
            continue
        queue_id = int(key) - first_queue
        end = ends.get((topic, queue_id))
        right = offset if end is None else min(max(offset, 0), end)
        if right != offset:
            offsets[key] = right
            yield f"{topic}/{queue_id} from {offset} to {right}"


def _entries(value: ConfigValue) -> list[tuple[str | int, ConfigValue]]:
    return list(value.items()) if isinstance(value, dict) else []
