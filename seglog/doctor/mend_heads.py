"""Records that one flipped bit made another queue's, and those of which the offset cannot be, get it back.

Nothing covers topic, queue and queue offset of a record without ``__CRC32#``, so such a flip passes every
check. But the queue that it was in still leads to it, by place and size. That counts where the queue's own
records around it agree with their units, and the queue that the record names does not know it. An offset
counts where its neighbours leave only one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seglog.doctor.actions import Action
from seglog.doctor.rewrite import rewrite_record
from seglog.storage.files import Files
from seglog.storage.format.consume_queue import Units
from seglog.storage.format.names import LMQ_PREFIX
from seglog.storage.format.record import HEAD_V4, Damage, examine
from seglog.storage.log_files import LogReader
from seglog.storage.log_records import has_record_crc
from seglog.storage.queue_files import read_units
from seglog.storage.queue_overlay import is_message
from seglog.storage.survey import Survey

_Mask = npt.NDArray[np.bool_]
Key = tuple[str, int]


class _Identity(NamedTuple):
    """Whose a record is."""

    topic: str
    queue_id: int
    queue_offset: int


def mend_heads(found: Survey, files: Files) -> Iterator[Action]:
    """Flips bits of topics, queues and offsets back; yields what it did."""
    segment = found.geometry.segment_size_bytes
    reader = LogReader(files, found.root, segment)
    try:
        by_neighbours = _by_neighbours(found)
        for place, wanted in sorted({**_by_units(found, files), **by_neighbours}.items()):
            row = found.rows[int(np.searchsorted(found.rows["phy_offset"], place))]
            if int(row["phy_offset"]) != place or has_record_crc(reader, row):
                continue
            record = bytes(reader.read(place, int(row["size_bytes"])))
            right = _rewritten(record, place, wanted)
            # More than a bit is believed of an offset that cannot be, but not of topic and queue.
            if right is None or (place not in by_neighbours and _bits_between(record, right) != 1):
                continue
            if right == record:
                continue
            done = rewrite_record(files, found.root, segment, place, record, right)
            named = f"{wanted.topic}/{wanted.queue_id} {wanted.queue_offset}"
            yield Action(
                "bit" if _bits_between(record, right) == 1 else "head",
                *done[:3],
                f"{done.words} in {named}, whose queue leads here",
                saved=1,
            )
    finally:
        reader.close()


def _by_neighbours(found: Survey) -> dict[int, _Identity]:
    """Returns the records whose offset cannot be, with the one that can, by place."""
    return {
        place: _Identity(topic, queue_id, slot)
        for (topic, queue_id), state in found.queues.items()
        if not topic.startswith(LMQ_PREFIX)
        for place, slot in state.mended.items()
    }


def _by_units(found: Survey, files: Files) -> dict[int, _Identity]:
    """Returns the records that a queue's files know as its own and that name another one, by place."""
    stored: dict[Key, tuple[int, Units]] = {
        key: read_units(files, queue, found.geometry.queue_file_size_bytes)
        for key, queue in found.queue_files.items()
        if not key[0].startswith(LMQ_PREFIX)
    }
    names = found.scan.queues.names
    if not len(found.rows):
        return {}
    wanted: dict[int, _Identity] = {}
    for (topic, queue_id), (first, units) in stored.items():
        rows, leads = _rows_of(found, units)
        is_own = np.array([names[number] == (topic, queue_id) for number in rows["queue"].tolist()], np.bool_)
        is_own &= leads & (rows["queue_offset"] == first + np.arange(len(units)))
        others = np.flatnonzero(leads & ~is_own)
        for at in others.tolist():
            around = is_own[max(0, at - 1) : at + 2]
            stated = _Identity(*names[int(rows["queue"][at])], int(rows["queue_offset"][at]))
            same_offset = stated.queue_offset == first + at
            if same_offset and around.any() and not _knows(stored, stated, units[at]):
                wanted[int(rows["phy_offset"][at])] = _Identity(topic, queue_id, first + at)
    return wanted


def _rows_of(found: Survey, units: Units) -> tuple[npt.NDArray[np.void], _Mask]:
    """Returns for each unit a record of the log, and whether it is the one that the unit leads to."""
    starts = found.rows["phy_offset"]
    if not len(units):
        return found.rows[:0], np.zeros(0, np.bool_)
    at = np.searchsorted(starts, units["phy_offset"]).clip(max=len(starts) - 1)
    rows = found.rows[at]
    leads: _Mask = is_message(units) & (rows["phy_offset"] == units["phy_offset"])
    return rows, leads & (rows["size_bytes"] == units["size_bytes"])


def _knows(stored: dict[Key, tuple[int, Units]], stated: _Identity, unit: np.void) -> bool:
    first, units = stored.get((stated.topic, stated.queue_id), (0, None))
    at = stated.queue_offset - first
    return units is not None and 0 <= at < len(units) and bool(units[at]["phy_offset"] == unit["phy_offset"])


def _rewritten(record: bytes, place: int, wanted: _Identity) -> bytes | None:
    """Returns a record with another identity; None if the topic does not fit."""
    row = examine(memoryview(record), 0, place)
    topic = wanted.topic.encode("utf-8", "surrogateescape")
    if isinstance(row, Damage) or len(topic) != len(row.topic):
        return None
    made = bytearray(record)
    fields = {"queue_id": (wanted.queue_id, 4), "queue_offset": (wanted.queue_offset, 8)}
    for name, (value, width) in fields.items():
        at = HEAD_V4.offsets[name]
        made[at : at + width] = value.to_bytes(width, "big")
    topic_at = row.properties_at - 2 - len(topic)
    made[topic_at : topic_at + len(topic)] = topic
    return bytes(made)


def _bits_between(one: bytes, other: bytes) -> int:
    return (int.from_bytes(one) ^ int.from_bytes(other)).bit_count()
