"""The offset of each group, as a broker has it that opens the store, and changed one at a time.

It is read from ``config/consumerOffset.json``, and from the history of offsets where that is ahead of the
file: after a kill, or beside a broker that has the store open.

All other contents of the file are kept: tables of other versions, progress of broadcast groups.

Source: ``ConsumerOffsetManager.java``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.broker.offsets import SEPARATOR, newest_offsets, offsets_config, table_of
from seglog.broker.tables import DataVersion, as_int, as_int_key, as_object
from seglog.storage.files import Files
from seglog.storage.format.config import ConfigValue
from seglog.storage.format.names import CONFIG, OURS
from seglog.storage.small_files import ConfigFile

OFFSETS_FILE: Final = f"{CONFIG}/consumerOffset.json"
_EVIDENCE: Final = f"{OURS}/evidence"
_BROADCAST: Final = "broadcast"


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """The offset of a group in a queue."""

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    is_broadcast: bool = False


class OffsetTable:
    """The offsets of all groups of a store.

    Args:
        files: Where the store is.
        root: The store directory.

    Raises:
        ConfigError: Neither the file nor its backup can be read.
    """

    def __init__(self, files: Files, root: Path) -> None:
        self._file = ConfigFile(files, root / OFFSETS_FILE, root / _EVIDENCE)
        self._reader = ConfigFile(files, root / OFFSETS_FILE)
        stored = self._reader.load(_fields)
        self._fields: dict[str | int, ConfigValue] = dict(stored or {})
        table = None if stored is None else _offsets_of(stored)
        newest = newest_offsets(files, root, table, self._reader.file_print)
        if newest != (table or {}):
            self._fields["offsetTable"] = offsets_config(table_of(newest))

    def all(self) -> list[GroupOffset]:
        """Returns every offset, by group, topic and queue."""
        found: list[GroupOffset] = []
        for (owner, topic, queue_id), offset in _offsets_of(self._fields).items():
            group, _, kind = owner.partition(SEPARATOR)
            found.append(GroupOffset(group, topic, queue_id, offset, kind == _BROADCAST))
        return sorted(found, key=lambda one: (one.group, one.topic, one.queue_id, one.is_broadcast))

    def of(self, group: str, topic: str, queue_id: int) -> int | None:
        """Returns the offset of a group in a queue, None if it has none."""
        return by_queue(self.all()).get((group, topic, queue_id))

    def set(self, group: str, topic: str, queue_id: int, queue_offset: int | None, now_ms: int) -> None:
        """Sets the offset of a group, durably; the former file becomes the ``.bak``.

        The caller holds the store's lock.

        Args:
            group: The group.
            topic: The topic.
            queue_id: The queue.
            queue_offset: The new offset; None removes the entry.
            now_ms: The time for the table's version.
        """
        key = f"{topic}{SEPARATOR}{group}"
        table = dict(as_object(self._fields.get("offsetTable", {}), "offsetTable"))
        queues = {
            as_int_key(number, key): value for number, value in as_object(table.get(key, {}), key).items()
        }
        if queue_offset is None:
            queues.pop(queue_id, None)
        else:
            queues[queue_id] = queue_offset
        changed: dict[str | int, ConfigValue] = dict(queues.items())
        table[key] = changed
        if not changed:
            del table[key]
        version = DataVersion.parse(self._fields.get("dataVersion")).next(now_ms)
        self._fields |= {
            "dataVersion": version.to_config(),
            "groupTopicMap": self._with_topic(group, topic, is_used=bool(changed)),
            "offsetTable": table,
        }
        self._file.save(self._fields)

    def _with_topic(self, group: str, topic: str, *, is_used: bool) -> ConfigValue:
        groups = dict(as_object(self._fields.get("groupTopicMap", {}), "groupTopicMap"))
        named = groups.get(group)
        topics = [name for name in named if name != topic] if isinstance(named, list) else []
        groups[group] = [*topics, topic] if is_used else topics
        return groups


def by_queue(offsets: Iterable[GroupOffset]) -> dict[tuple[str, str, int], int]:
    """Returns offsets by group, topic and queue, without broadcast consumers."""
    return {(one.group, one.topic, one.queue_id): one.queue_offset for one in offsets if not one.is_broadcast}


def _offsets_of(fields: Mapping[str | int, ConfigValue]) -> dict[tuple[str, str, int], int]:
    """Returns the offsets of a table by group, topic and queue, as the history has them."""
    return {
        (group, topic, as_int_key(queue_id, str(key))): as_int(offset, str(key))
        for key, queues in as_object(fields.get("offsetTable", {}), "offsetTable").items()
        for topic, _, group in [str(key).partition(SEPARATOR)]
        for queue_id, offset in as_object(queues, str(key)).items()
    }


def _fields(value: ConfigValue) -> Mapping[str | int, ConfigValue]:
    fields = as_object(value, "consumerOffset")
    for key, queues in as_object(fields.get("offsetTable", {}), "offsetTable").items():
        for queue_id, offset in as_object(queues, str(key)).items():
            as_int_key(queue_id, str(key))
            as_int(offset, str(key))
    return fields
