"""Mends how many messages an inner batch says that it has, with its body and its queue's unit as proof.

No checksum covers the properties of a record without ``__CRC32#``, and INNER_NUM is one of them. But the
body, which has a checksum, holds that many messages, and the unit of the batch queue has the number too.
Where both agree, and the unit begins at the queue offset that the record states, the property is damaged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice
from operator import eq
from typing import Final

import numpy as np

from seglog.errors import CorruptError
from seglog.storage.certain_mends.mend import HEAD, MAX_DOUBTED, Mend
from seglog.storage.certain_mends.seen_log import SeenLog
from seglog.storage.directory import LogReader, read_units
from seglog.storage.files.files import Files
from seglog.storage.format.queue.batch_consume_queue import BatchUnits, batch_in_use, batch_range
from seglog.storage.format.record import properties as props
from seglog.storage.format.record.inner_batch import count_batch
from seglog.storage.format.record.properties import ends_with_record_crc
from seglog.storage.format.record.record import Damage, examine
from seglog.storage.format.record.sys_flag import COMPRESSED, INNER_BATCH
from seglog.storage.overlay.batch_overlay import BatchQueueState
from seglog.storage.scan.queue_overlays import Key

_PROOF: Final = ", by its body and its queue"
_FIELDS: Final = "number of messages"


def mends_of_inner_batches(found: SeenLog, files: Files) -> Iterator[Mend]:
    """Yields the mends of numbers of messages, in the order of queues."""
    doubted = list(islice(_doubted(found, files), MAX_DOUBTED + 1))
    if not 0 < len(doubted) <= MAX_DOUBTED:
        return
    with closing(LogReader(files, found.root, found.geometry.segment_size_bytes)) as reader:
        for (topic, queue_id), place, size_bytes, first, count in doubted:
            record = bytes(reader.read(place, size_bytes))
            right = _with_number(record, place, first, count)
            if right not in (None, record):
                yield Mend(HEAD, place, record, right, topic, queue_id, first, _PROOF, _FIELDS)


def _doubted(found: SeenLog, files: Files) -> Iterator[tuple[Key, int, int, int, int]]:
    """Yields records whose unit has another number of messages: queue, place, size, and the unit's range."""
    for key, state in found.batch_queues.items():
        queue = found.batch_files.get(key)
        if queue is None or not any(one.code == "queue-unit-wrong" for one in state.findings):
            continue
        _first, units = read_units(files, queue, found.geometry.batch_file_size_bytes)
        for unit in _units_of_another_number(units, state):
            yield (
                key,
                int(unit["phy_offset"]),
                int(unit["size_bytes"]),
                int(unit["base_queue_offset"]),
                int(unit["batch_size"]),
            )


def _units_of_another_number(units: BatchUnits, state: BatchQueueState) -> BatchUnits:
    """Returns the units of files that lead to a record of their queue, and have another number than it."""
    used = units[batch_in_use(units)]
    by_place = state.units[np.argsort(state.units["phy_offset"], kind="stable")]
    if not len(by_place):
        return used[:0]
    at = np.searchsorted(by_place["phy_offset"], used["phy_offset"]).clip(max=len(by_place) - 1)
    leads = np.ones(len(used), np.bool_)
    for name in ("phy_offset", "size_bytes", "base_queue_offset"):
        leads &= by_place[name][at] == used[name]
    chosen: BatchUnits = used[leads & (by_place["batch_size"][at] != used["batch_size"])]
    return chosen


def _with_number(record: bytes, place: int, first: int, count: int) -> bytes | None:
    """Returns a record that says how many messages it has; None if its body does not prove that."""
    row = examine(memoryview(record), 0, place)
    if isinstance(row, Damage) or row.queue_offset != first or row.sys_flag & COMPRESSED:
        return None
    if not row.sys_flag & INNER_BATCH or ends_with_record_crc(record):
        return None
    start, end = row.properties_at, row.properties_at + row.properties_bytes
    with suppress(CorruptError):
        if count_batch(memoryview(record)[row.body_at : row.body_at + row.body_bytes]) == count:
            possible = {*_with_entry(record[start:end], first, count)}
            if len(possible) == 1:
                return record[:start] + possible.pop() + record[end:]
    return None


def _with_entry(properties: bytes, first: int, count: int) -> Iterator[bytes]:
    """Yields the properties with the number of messages in place of an entry that is like it for the most."""
    entry = f"{props.INNER_NUM}\x01{count}\x02".encode()
    at = 0
    while at + len(entry) <= len(properties):
        there = properties[at : at + len(entry)]
        right = properties[:at] + entry + properties[at + len(entry) :]
        if 2 * sum(map(eq, there, entry)) > len(entry):
            with suppress(CorruptError):
                if batch_range(right, first) == (first, count):
                    yield right
        at = properties.find(props.ENTRY_END, at) + 1
        if not at:
            return
