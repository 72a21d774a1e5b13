"""``seglog/compacted``: the queue offsets before the minimum of queues that compactions dropped.

A compaction leaves nothing before a queue's first message that it keeps, so the queue's minimum rises, as it
does when retention removes a file of the log. This file distinguishes the two: its offsets were dropped on
request, and are no loss for groups that had not read them.

Truth: none. If it is missing or cannot be read, offsets that a compaction dropped count as removed by
    retention.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from seglog.errors import ConfigError, CorruptError
from seglog.storage.files.files import Files
from seglog.storage.format.config import ConfigValue
from seglog.storage.format.names import OURS
from seglog.storage.small_files.config_file import ConfigFile

COMPACTED_FILE: Final = f"{OURS}/compacted"
_DROPPED: Final = "dropped"

Dropped = Mapping[tuple[str, int], tuple[range, ...]]
"""Ranges of queue offsets by topic and number of the queue, in order."""


def dropped_offsets(files: Files, root: Path) -> Dropped:
    """Returns the queue offsets that compactions of a store dropped before the minimums of its queues."""
    try:
        return ConfigFile(files, root / COMPACTED_FILE).load(_parse) or {}
    except ConfigError:
        return {}


def note_dropped(files: Files, root: Path, before: Dropped, now: Mapping[tuple[str, int], range]) -> None:
    """Writes down, durably, the queue offsets that a compaction dropped before the minimums of queues.

    Args:
        files: The file layer of the new store.
        root: Its directory.
        before: The offsets that earlier compactions dropped.
        now: The offsets that this one dropped, by queue.
    """
    found: dict[tuple[str, int], tuple[range, ...]] = dict(before)
    for key, offsets in now.items():
        if not offsets:
            continue
        known = found.get(key, ())
        follows = bool(known) and known[-1].stop == offsets.start
        found[key] = (*known[:-1], range(known[-1].start, offsets.stop)) if follows else (*known, offsets)
    if found:
        fields: list[ConfigValue] = [
            {"topic": topic, "queueId": queue_id, "firstOffset": one.start, "count": len(one)}
            for (topic, queue_id), ranges in sorted(found.items())
            for one in ranges
        ]
        ConfigFile(files, root / COMPACTED_FILE).save({_DROPPED: fields})


def _parse(value: ConfigValue) -> Dropped:
    found: dict[tuple[str, int], tuple[range, ...]] = {}
    listed = value.get(_DROPPED) if isinstance(value, Mapping) else None
    if not isinstance(listed, list):
        raise CorruptError("compacted", file=COMPACTED_FILE, expected="a list of ranges", found="none")
    for one in listed:
        key, offsets = _range_of(one)
        found[key] = (*found.get(key, ()), offsets)
    return found


def _range_of(value: ConfigValue) -> tuple[tuple[str, int], range]:
    if isinstance(value, Mapping):
        topic, queue_id = value.get("topic"), value.get("queueId")
        first, count = value.get("firstOffset"), value.get("count")
        if (
            isinstance(topic, str)
            and isinstance(queue_id, int)
            and isinstance(first, int)
            and isinstance(count, int)
        ):
            return (topic, queue_id), range(first, first + count)
    found = repr(value)[:80]
    raise CorruptError("compacted", file=COMPACTED_FILE, expected="a range of queue offsets", found=found)
