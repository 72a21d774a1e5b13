"""The shape of ``config/consumerOffset.json``: offsets by ``topic@group`` and queue, topics by group.

Unknown fields are kept. ``groupTopicMap`` follows from the offsets, so it is never read.

Source: ``ConsumerOffsetManager.java encode/decode``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from seglog.broker.tables import DataVersion, as_int, as_int_key, as_object
from seglog.errors import CorruptError
from seglog.storage.format.config import ConfigValue
from seglog.storage.format.names import MAX_QUEUE_ID

SEPARATOR: Final = "@"
"""Separates topic and group in the table's keys; neither name can contain it."""
MIN_QUEUE_ID: Final = -MAX_QUEUE_ID - 1
MAX_OFFSET: Final = (1 << 63) - 1
SAVED_WITH_OFFSETS: Final = frozenset({"consumerFilter.json", "consumerOrderInfo.json"})
"""Tables that RocketMQ's broker saves together with the offsets, also empty ones."""
_KNOWN: Final = ("dataVersion", "groupTopicMap", "offsetTable")

OffsetTable = tuple[DataVersion, dict[str, dict[int, int]], Mapping[str | int, ConfigValue]]
"""Version, offsets by key and queue, and unknown fields."""


def to_config(
    table: Mapping[str, Mapping[int, int]], version: DataVersion, unknown: Mapping[str | int, ConfigValue]
) -> Mapping[str | int, ConfigValue]:
    """Returns what the file holds."""
    return {
        "dataVersion": version.to_config(),
        "groupTopicMap": _topics_of_groups(table),
        "offsetTable": offsets_config(table),
        **unknown,
    }


def offsets_config(table: Mapping[str, Mapping[int, int]]) -> dict[str | int, ConfigValue]:
    """Returns what the file holds under ``offsetTable``."""
    return {key: dict(queues.items()) for key, queues in table.items()}


def table_of(offsets: Mapping[tuple[str, str, int], int]) -> dict[str, dict[int, int]]:
    """Returns the table that has certain offsets.

    Args:
        offsets: By group, topic and queue id, as the history of offsets has them.
    """
    table: dict[str, dict[int, int]] = {}
    for (group, topic, queue_id), offset in sorted(offsets.items()):
        table.setdefault(f"{topic}{SEPARATOR}{group}", {})[queue_id] = offset
    return table


def parse_table(value: ConfigValue) -> OffsetTable:
    """Returns what the file holds.

    Raises:
        CorruptError: It has another shape, or holds a number that no broker writes.
    """
    fields = as_object(value, "consumerOffset")
    table: dict[str, dict[int, int]] = {}
    for key, queues in as_object(fields.get("offsetTable", {}), "offsetTable").items():
        offsets = table[str(key)] = {}
        for queue_id, offset in as_object(queues, str(key)).items():
            number = as_int(offset, str(key))
            if not 0 <= number <= MAX_OFFSET:
                raise CorruptError("config-shape", expected=f"offsets from 0 in {key}", found=number)
            place = as_int_key(queue_id, str(key))
            if not MIN_QUEUE_ID <= place <= MAX_QUEUE_ID:
                raise CorruptError("config-shape", expected=f"queues of 32 bits in {key}", found=place)
            offsets[place] = number
    unknown = {key: item for key, item in fields.items() if key not in _KNOWN}
    return DataVersion.parse(fields.get("dataVersion")), table, unknown


def _topics_of_groups(keys: Iterable[str]) -> dict[str | int, ConfigValue]:
    topics: dict[str, list[str]] = {}
    for key in keys:
        topic, _, group = key.partition(SEPARATOR)
        if SEPARATOR not in group:  # "topic@group@broadcast" is the progress of a broadcast group
            topics.setdefault(group, []).append(topic)
    return dict(topics.items())
