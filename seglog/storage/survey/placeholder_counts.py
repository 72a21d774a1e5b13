"""Counts the placeholders of a compaction in the queues of a surveyed store.

A row has the length of a record and its tags code: a placeholder has one of four lengths and no tag. Only
records with such rows are read again, so that a store without placeholders costs almost no reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

from seglog.storage.directory import LogReader
from seglog.storage.format.names import MAX_TOPIC_BYTES
from seglog.storage.format.record import HEADS, PLACEHOLDER_FLAG, PLACEHOLDER_PROPERTIES_BYTES
from seglog.storage.format.record.record import HOST_BITS
from seglog.storage.kernels.gather import Ints, read_heads
from seglog.storage.kernels.walk import Rows, are_dispatched
from seglog.storage.scan.message_counts import Key
from seglog.storage.survey.store_survey import Survey

_ROWS: Final = 1 << 18
"""Rows that are examined at a time."""
_WINDOW_BYTES: Final = 4 << 20
"""Bytes of the log that are read at a time."""
_BESIDE_BYTES: Final = 4
"""The fewest bytes of a record beside its head, topic and properties: the fields of their lengths."""
_HEAD_BYTES: Final = np.zeros(HOST_BITS + 1, np.int64)
for _bits, _layout in HEADS.items():
    _HEAD_BYTES[_bits] = _layout.size_bytes


def count_placeholders(found: Survey, reader: LogReader) -> Counter[Key]:
    """Returns the number of placeholders by queue, for queues with any.

    Args:
        found: The store.
        reader: Its log.
    """
    names = found.numbers.names
    least = np.array([_least_bytes(topic) for topic, _queue_id in names], np.int64)
    counted: Counter[Key] = Counter()
    for start in range(0, len(found.rows), _ROWS):
        rows = found.rows[start : start + _ROWS]
        rows = rows[_may_be_placeholders(rows, least)]
        for window in _windows(rows, found.geometry.segment_size_bytes):
            placeholders = window[_are_placeholders(window, reader)]
            for key, offset in zip(
                placeholders["queue"].tolist(), placeholders["queue_offset"].tolist(), strict=True
            ):
                queue = found.all_queues.get(names[key])
                counted[names[key]] += queue is not None and queue.min_offset <= offset < queue.max_offset
    return +counted


def _least_bytes(topic: str) -> int:
    """Returns the length of a record of a topic without head, body and properties."""
    size = len(topic.encode("utf-8", "surrogateescape"))
    return size + _BESIDE_BYTES - 1 + (size > MAX_TOPIC_BYTES)


def _may_be_placeholders(rows: Rows, least: Ints) -> Ints:
    """Returns which rows are of records without a tag that have the length of a placeholder."""
    at = np.flatnonzero(rows["tags_code"] == 0)
    chosen = rows[at]
    beside = chosen["size_bytes"] - _HEAD_BYTES[chosen["sys_flag"] & HOST_BITS] - least[chosen["queue"]]
    fits = np.isin(beside, list(PLACEHOLDER_PROPERTIES_BYTES)) & are_dispatched(chosen)
    places: Ints = at[fits]
    return places


def _windows(rows: Rows, segment_bytes: int) -> Iterator[Rows]:
    """Yields neighbouring rows of one segment whose records are read at once."""
    if not len(rows):
        return
    windows = rows["phy_offset"] // min(_WINDOW_BYTES, segment_bytes)
    segments = rows["phy_offset"] // segment_bytes
    is_other = (np.diff(windows) != 0) | (np.diff(segments) != 0)
    yield from np.split(rows, np.flatnonzero(is_other) + 1)


def _are_placeholders(rows: Rows, reader: LogReader) -> Ints:
    first, sizes = int(rows["phy_offset"][0]), rows["size_bytes"].astype(np.int64)
    end = int(rows["phy_offset"][-1] + sizes[-1])
    buffer = np.frombuffer(reader.read(first, end - first), np.uint8)
    positions = rows["phy_offset"] - first
    is_there = positions + sizes <= len(buffer)  # a writer may remove files meanwhile
    at = np.flatnonzero(is_there)
    is_record, heads = read_heads(
        buffer, positions[at], rows["phy_offset"][at], sizes[at], ("flag", "body_bytes")
    )
    is_placeholder = is_record & (heads["flag"] == PLACEHOLDER_FLAG) & (heads["body_bytes"] == 0)
    places: Ints = at[is_placeholder]
    return places
