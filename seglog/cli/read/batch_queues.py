"""Batch queues by their files and by the log: each unit stands for several messages.

The units that the log gives come from the survey; the units of the files are read here, with their positions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.cli.ui import options
from seglog.storage.format.names import BATCH_CONSUME_QUEUE, parse_segment_file_name, segment_file_name
from seglog.storage.format.queue import BATCH_UNIT, BATCH_UNIT_BYTES, BatchUnits, batch_in_use
from seglog.storage.overlay import BatchQueueState
from seglog.storage.survey import Survey

_CHUNK_UNITS: Final = 16384


@dataclass(slots=True)
class ListedBatchQueue:
    """A batch queue.

    Attributes:
        sizes: Length of each file by the position of its first byte.
        stored: ``(n,) BATCH_UNIT.dtype``, the units in use, in file order.
        positions: ``(n,) i8``, position of each unit in the endless sequence of files.
        state: The state that the queue must have by the log.
    """

    topic: str
    queue_id: int
    sizes: dict[int, int]
    stored: BatchUnits
    positions: npt.NDArray[np.int64]
    state: BatchQueueState


def list_batch_queues(found: Survey, topic: str | None = None) -> list[ListedBatchQueue]:
    """Returns the batch queues of a store, or of one topic, sorted by name and queue id."""
    keys = sorted({*_keys(found.root), *found.batch_queues})
    return [_load(found, *key) for key in keys if topic in (None, key[0])]


def stored_batch_bytes(root: Path, start: int, end: int) -> Counter[str]:
    """Returns, by topic, the sizes of the records that the units in batch queues' files lead to.

    Args:
        root: The store directory.
        start: Start of the log.
        end: End of its files; units that lead to other places do not count.
    """
    totals: Counter[str] = Counter()
    for topic, queue_id in _keys(root):
        for _position, units in _iter_stored(root, topic, queue_id):
            inside = units[(units["phy_offset"] >= start) & (units["phy_offset"] < end)]
            totals[topic] += int(np.sum(inside["size_bytes"], dtype=np.int64))
    return totals


def _keys(root: Path) -> list[tuple[str, int]]:
    files = options.reading(root)
    base = root / BATCH_CONSUME_QUEUE
    return sorted(
        (folder.name, int(queue.name))
        for folder in files.list_dir(base)
        if folder.is_dir
        for queue in files.list_dir(base / folder.name)
        if queue.is_dir and queue.name.isascii() and queue.name.isdigit()
    )


def _load(found: Survey, topic: str, queue_id: int) -> ListedBatchQueue:
    parts: list[bytes] = []  # bytes, because numpy would join the arrays in native byte order
    places = [np.empty(0, np.int64)]
    for positions, units in _iter_stored(found.root, topic, queue_id):
        parts.append(units.tobytes())
        places.append(positions)
    return ListedBatchQueue(
        topic,
        queue_id,
        _sizes(found.root, topic, queue_id),
        np.frombuffer(b"".join(parts), BATCH_UNIT.dtype),
        np.concatenate(places),
        found.batch_queues.get((topic, queue_id)) or BatchQueueState.empty(topic, queue_id),
    )


def _sizes(root: Path, topic: str, queue_id: int) -> dict[int, int]:
    return {
        first: entry.size_bytes
        for entry in options.reading(root).list_dir(root / BATCH_CONSUME_QUEUE / topic / str(queue_id))
        if not entry.is_dir and (first := parse_segment_file_name(entry.name)) is not None
    }


def _iter_stored(root: Path, topic: str, queue_id: int) -> Iterator[tuple[npt.NDArray[np.int64], BatchUnits]]:
    """Yields the units in use with their positions in the endless sequence of files."""
    directory = root / BATCH_CONSUME_QUEUE / topic / str(queue_id)
    for first in sorted(_sizes(root, topic, queue_id)):
        for at, units in _iter_units(root, directory / segment_file_name(first)):
            used = batch_in_use(units)
            yield first + at + BATCH_UNIT_BYTES * np.flatnonzero(used), units[used]


def _iter_units(root: Path, path: Path) -> Iterator[tuple[int, BatchUnits]]:
    """Yields the units of a file with their positions, without the part that was never written."""
    step = _CHUNK_UNITS * BATCH_UNIT_BYTES
    with closing(options.reading(root).open(path, writable=False)) as handle:
        at = handle.next_data(0)
        while at is not None:
            at -= at % BATCH_UNIT_BYTES
            buffer = memoryview(bytearray(step))
            count = handle.read_into(buffer, at) // BATCH_UNIT_BYTES
            if not count:
                return
            yield at, np.frombuffer(buffer, BATCH_UNIT.dtype, count)
            at = handle.next_data(at + count * BATCH_UNIT_BYTES)
