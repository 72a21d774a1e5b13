"""Batch queues as their files have them and as the log says: each unit stands for several messages.

The log's side is worked out from records here, because the survey leaves these queues as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.cli.reading import iter_records
from seglog.errors import CorruptError
from seglog.storage.files import RealFiles
from seglog.storage.format.batch_consume_queue import (
    BATCH_UNIT,
    BATCH_UNIT_BYTES,
    BatchUnits,
    batch_in_use,
    batch_range,
)
from seglog.storage.format.names import BATCH_CONSUME_QUEUE, parse_segment_file_name, segment_file_name
from seglog.storage.format.record import Damage, examine
from seglog.storage.format.sys_flag import takes_queue_offset
from seglog.storage.log_files import LogReader
from seglog.storage.survey import Survey

_BATCH_ROWS: Final = 16384
_CHUNK_UNITS: Final = 16384


@dataclass(slots=True)
class BatchQueue:
    """A batch queue.

    Attributes:
        sizes: Length of each file by the position of its first byte.
        stored: ``(n,) BATCH_UNIT.dtype``, the units in use, in file order.
        positions: ``(n,) i8``, where each of them lies in the endless sequence of files.
        in_log: ``(m,) BATCH_UNIT.dtype``, the units that the log's records give, by base offset.
    """

    topic: str
    queue_id: int
    sizes: dict[int, int]
    stored: BatchUnits
    positions: npt.NDArray[np.int64]
    in_log: BatchUnits

    @property
    def name(self) -> str:
        """Directory relative to the store."""
        return f"{BATCH_CONSUME_QUEUE}/{self.topic}/{self.queue_id}"

    @property
    def agrees(self) -> bool:
        """Whether the files hold what the log says."""
        return self.stored.tobytes() == self.in_log.tobytes()

    @property
    def offsets(self) -> tuple[int, int]:
        """Queue offset of the first message and of the next one, as the log says."""
        units = self.in_log if len(self.in_log) else self.stored
        if not len(units):
            return 0, 0
        last = units[-1]
        return int(units[0]["base_queue_offset"]), int(last["base_queue_offset"]) + int(last["batch_size"])


def list_batch_queues(found: Survey, topic: str | None = None) -> list[BatchQueue]:
    """Returns the batch queues of a store, or of one topic, by name and number."""
    keys = [key for key in _keys(found.root) if topic in (None, key[0])]
    return [_load(found, *key) for key in keys]


def stored_batch_bytes(root: Path, start: int, end: int) -> Counter[str]:
    """Returns by topic the sizes of the records that the units in batch queues' files lead to.

    Args:
        root: The store directory.
        start: Where the log starts.
        end: Where its files end; units that lead elsewhere do not count.
    """
    totals: Counter[str] = Counter()
    for topic, queue_id in _keys(root):
        for _position, units in _iter_stored(root, topic, queue_id):
            inside = units[(units["phy_offset"] >= start) & (units["phy_offset"] < end)]
            totals[topic] += int(np.sum(inside["size_bytes"], dtype=np.int64))
    return totals


def _keys(root: Path) -> list[tuple[str, int]]:
    files = RealFiles()
    base = root / BATCH_CONSUME_QUEUE
    return sorted(
        (folder.name, int(queue.name))
        for folder in files.list_dir(base)
        if folder.is_dir
        for queue in files.list_dir(base / folder.name)
        if queue.is_dir and queue.name.isascii() and queue.name.isdigit()
    )


def _load(found: Survey, topic: str, queue_id: int) -> BatchQueue:
    parts: list[bytes] = []  # numpy would join arrays in native byte order
    places = [np.empty(0, np.int64)]
    for positions, units in _iter_stored(found.root, topic, queue_id):
        parts.append(units.tobytes())
        places.append(positions)
    return BatchQueue(
        topic,
        queue_id,
        _sizes(found.root, topic, queue_id),
        np.frombuffer(b"".join(parts), BATCH_UNIT.dtype),
        np.concatenate(places),
        _from_log(found, topic, queue_id),
    )


def _sizes(root: Path, topic: str, queue_id: int) -> dict[int, int]:
    return {
        first: entry.size_bytes
        for entry in RealFiles().list_dir(root / BATCH_CONSUME_QUEUE / topic / str(queue_id))
        if not entry.is_dir and (first := parse_segment_file_name(entry.name)) is not None
    }


def _iter_stored(root: Path, topic: str, queue_id: int) -> Iterator[tuple[npt.NDArray[np.int64], BatchUnits]]:
    """Yields the units in use with their positions in the endless sequence of files."""
    directory = root / BATCH_CONSUME_QUEUE / topic / str(queue_id)
    for first in sorted(_sizes(root, topic, queue_id)):
        for at, units in _iter_units(directory / segment_file_name(first)):
            used = batch_in_use(units)
            yield first + at + BATCH_UNIT_BYTES * np.flatnonzero(used), units[used]


def _iter_units(path: Path) -> Iterator[tuple[int, BatchUnits]]:
    """Yields the units of a file with their positions, but not what was never written."""
    step = _CHUNK_UNITS * BATCH_UNIT_BYTES
    handle = RealFiles().open(path, writable=False)
    try:
        at = handle.next_data(0)
        while at is not None:
            at -= at % BATCH_UNIT_BYTES
            buffer = memoryview(bytearray(step))
            count = handle.read_into(buffer, at) // BATCH_UNIT_BYTES
            if not count:
                return
            yield at, np.frombuffer(buffer, BATCH_UNIT.dtype, count)
            at = handle.next_data(at + count * BATCH_UNIT_BYTES)
    finally:
        handle.close()


def _from_log(found: Survey, topic: str, queue_id: int) -> BatchUnits:
    numbers = [number for number, key in enumerate(found.scan.queues.names) if key == (topic, queue_id)]
    rows = found.rows[np.isin(found.rows["queue"], numbers)]
    segment = found.geometry.segment_size_bytes
    reader = LogReader(RealFiles(), found.root, segment)
    parts: list[bytes] = []
    try:
        for start in range(0, len(rows), _BATCH_ROWS):
            some = rows[start : start + _BATCH_ROWS]
            records = iter_records(reader, some["phy_offset"], some["size_bytes"], segment)
            for phy_offset, tags_code, record in zip(
                some["phy_offset"].tolist(), some["tags_code"].tolist(), records, strict=False
            ):
                parts.append(_unit(record, phy_offset, tags_code))
    finally:
        reader.close()
    units = np.frombuffer(b"".join(parts), BATCH_UNIT.dtype)
    return units[np.argsort(units["base_queue_offset"], kind="stable")]


def _unit(record: memoryview, phy_offset: int, tags_code: int) -> bytes:
    """Returns the unit of a record, nothing for one that has no place in a queue."""
    row = examine(record, 0, phy_offset, verify=False)
    if isinstance(row, Damage) or not takes_queue_offset(row.sys_flag):
        return b""
    properties = bytes(record[row.properties_at : row.properties_at + row.properties_bytes])
    try:
        base, count = batch_range(properties, row.queue_offset)
    except CorruptError:
        return b""
    return BATCH_UNIT.struct.pack(
        phy_offset, row.size_bytes, tags_code, row.store_timestamp_ms, base, count, -1, 0
    )
