"""How far each group has consumed each queue, kept in ``config/consumerOffset.json``.

Truth: the table in memory; the file follows every few seconds and at close, as in RocketMQ. So a crash
loses the last commits, never messages: what was consumed since is delivered again.

Offsets never go below 0. At open, offsets beyond the end of their queue are set to that end: the store
lost what lay between in a crash, and a group that waited there would miss the messages that take their
place (apache/rocketmq#4215 went back to 0 instead and delivered everything again).

Source: ``ConsumerOffsetManager.java``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from seglog.broker.config_shape import as_int, as_int_key, as_object
from seglog.broker.data_version import DataVersion
from seglog.clock import Clock
from seglog.errors import CorruptError, InvalidArgumentError
from seglog.storage.config_file import ConfigFile
from seglog.storage.format.config_value import ConfigValue
from seglog.storage.format.names import check_group
from seglog.storage.os_errors import explained

_KNOWN: Final = ("dataVersion", "groupTopicMap", "offsetTable")
SEPARATOR: Final = "@"
"""Between topic and group in the table's keys; neither name can hold it."""


@dataclass(frozen=True, slots=True)
class ClampedOffset:
    """An offset that lay beyond the end of its queue at open."""

    topic: str
    group: str
    queue_id: int
    committed_offset: int
    max_offset: int


class ConsumerOffsets:
    """The offset table of a broker. Any thread may call it.

    Args:
        file: ``config/consumerOffset.json``.
        clock: Stamps the table's version.
    """

    def __init__(self, file: ConfigFile, clock: Clock) -> None:
        self._file = file
        self._clock = clock
        self._lock = threading.Lock()
        self._saving = threading.Lock()
        self._is_dirty = False
        self._version = DataVersion()
        self._table: dict[str, dict[int, int]] = {}
        self._unknown: Mapping[str | int, ConfigValue] = {}
        stored = file.load(_parse_table)
        if stored is not None:
            self._version, self._table, self._unknown = stored

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Stores where the group goes on in a queue; going back is allowed, as in RocketMQ.

        Raises:
            InvalidArgumentError: The offset is negative.
            InvalidNameError: No group can be called so.
        """
        if offset < 0:
            raise InvalidArgumentError(f"offset {offset} of group {group} in {topic}/{queue_id} is negative")
        key = f"{topic}{SEPARATOR}{group}"
        with self._lock:
            queues = self._table.get(key)
            if queues is None:
                check_group(group)
                queues = self._table[key] = {}
            if queues.get(queue_id) != offset:
                queues[queue_id] = offset
                self._is_dirty = True

    def query(self, group: str, topic: str, queue_id: int) -> int | None:
        """Returns the committed offset, None if the group never committed one there."""
        queues = self._table.get(f"{topic}{SEPARATOR}{group}")
        return None if queues is None else queues.get(queue_id)

    def of_group(self, group: str) -> dict[tuple[str, int], int]:
        """Returns all offsets of a group by topic and queue."""
        with self._lock:
            return {
                (topic, queue_id): offset
                for key, queues in self._table.items()
                for topic, _, owner in [key.partition(SEPARATOR)]
                if owner == group
                for queue_id, offset in queues.items()
            }

    def clamp(self, ends: Iterable[tuple[str, int, int]]) -> tuple[ClampedOffset, ...]:
        """Sets offsets beyond the end of their queue to that end.

        Args:
            ends: Topic, queue and max offset of each queue of the store; others are left alone.

        Returns:
            What was changed, as it was.
        """
        max_offsets = {(topic, queue_id): max_offset for topic, queue_id, max_offset in ends}
        clamped: list[ClampedOffset] = []
        with self._lock:
            for key, queues in self._table.items():
                topic, _, group = key.partition(SEPARATOR)
                for queue_id, offset in queues.items():
                    max_offset = max_offsets.get((topic, queue_id))
                    if max_offset is not None and offset > max_offset:
                        clamped.append(ClampedOffset(topic, group, queue_id, offset, max_offset))
                        queues[queue_id] = max_offset
                        self._is_dirty = True
        return tuple(clamped)

    def persist(self) -> None:
        """Saves the table if it has changed.

        Raises:
            FullError: There is no space; the file is as it was and the next call tries again.
        """
        with self._saving:
            with self._lock:
                if not self._is_dirty:
                    return
                self._is_dirty = False
                table: dict[str | int, ConfigValue] = {}
                for key, queues in self._table.items():
                    copy: dict[str | int, ConfigValue] = dict(queues.items())
                    table[key] = copy
            version = self._version.next(self._clock.now_ms())
            is_saved = False
            try:
                with explained():
                    self._file.save(
                        {
                            "dataVersion": version.to_config(),
                            "groupTopicMap": _topics_of_groups(table),
                            "offsetTable": table,
                            **self._unknown,
                        }
                    )
                self._version = version
                is_saved = True
            finally:
                if not is_saved:
                    self._is_dirty = True


def _topics_of_groups(keys: Iterable[str | int]) -> dict[str | int, ConfigValue]:
    topics: dict[str, list[str]] = {}
    for key in keys:
        topic, _, group = str(key).partition(SEPARATOR)
        if SEPARATOR not in group:  # "topic@group@broadcast" is the progress of a broadcast group
            topics.setdefault(group, []).append(topic)
    return dict(topics.items())


_Table = tuple[DataVersion, dict[str, dict[int, int]], Mapping[str | int, ConfigValue]]


def _parse_table(value: ConfigValue) -> _Table:
    fields = as_object(value, "consumerOffset")
    table: dict[str, dict[int, int]] = {}
    for key, queues in as_object(fields.get("offsetTable", {}), "offsetTable").items():
        offsets = table[str(key)] = {}
        for queue_id, offset in as_object(queues, str(key)).items():
            number = as_int(offset, str(key))
            if number < 0:
                raise CorruptError("config-shape", expected=f"offsets from 0 in {key}", found=number)
            offsets[as_int_key(queue_id, str(key))] = number
    unknown = {key: item for key, item in fields.items() if key not in _KNOWN}
    return DataVersion.parse(fields.get("dataVersion")), table, unknown
