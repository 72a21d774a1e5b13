"""The consume-queue files of a store as they lie there.

Truth: none. What they say is held against the log in :mod:`seglog.storage.queue_overlay`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from seglog.storage.files import Files
from seglog.storage.findings import Finding
from seglog.storage.format.consume_queue import CQ_UNIT, CQ_UNIT_BYTES, Units
from seglog.storage.format.layout import Layout
from seglog.storage.format.names import (
    BATCH_CONSUME_QUEUE,
    CONSUME_QUEUE,
    MAX_QUEUE_ID,
    parse_segment_file_name,
    segment_file_name,
)
from seglog.storage.segments import STAGED_SUFFIX

_CHUNK_BYTES = 1 << 20
_QUEUE_ID = re.compile(r"0|[1-9][0-9]{0,9}")
_MAX_GAP_FILES = 64


@dataclass(slots=True)
class QueueFiles:
    """The files of one queue.

    Attributes:
        sizes: Length of each file by the offset of its first byte.
        strays: Names of other files beside them.
        layout: Their unit.
        folder: The one that queues of their kind share.
    """

    topic: str
    queue_id: int
    directory: Path
    layout: Layout = CQ_UNIT
    folder: str = CONSUME_QUEUE
    sizes: dict[int, int] = field(default_factory=dict)
    strays: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Directory relative to the store."""
        return queue_directory(self.topic, self.queue_id, self.folder)


def queue_directory(topic: str, queue_id: int, folder: str = CONSUME_QUEUE) -> str:
    """Returns the directory of a queue relative to the store."""
    return f"{folder}/{topic}/{queue_id}"


def list_queues(
    files: Files, root: Path, folder: str = CONSUME_QUEUE, layout: Layout = CQ_UNIT
) -> Iterator[QueueFiles]:
    """Yields every queue of a kind that has a directory, sorted by name."""
    base = root / folder
    for topic in files.list_dir(base):
        if not topic.is_dir:
            continue
        for queue in files.list_dir(base / topic.name):
            if queue.is_dir and _QUEUE_ID.fullmatch(queue.name) and int(queue.name) <= MAX_QUEUE_ID:
                directory = base / topic.name / queue.name
                yield list_queue(files, QueueFiles(topic.name, int(queue.name), directory, layout, folder))


def list_queue(files: Files, queue: QueueFiles) -> QueueFiles:
    """Fills in the files of a queue from its directory, which may be missing, and returns it."""
    for entry in files.list_dir(queue.directory):
        first = parse_segment_file_name(entry.name)
        if entry.is_dir:
            continue
        if first is None or first % queue.layout.size_bytes:
            queue.strays.append(entry.name)
        else:
            queue.sizes[first] = entry.size_bytes
    return queue


def list_staged(files: Files, root: Path) -> list[Path]:
    """Returns the queue files that a killed writer had not given their names yet; they hold no unit."""
    return [
        base / topic.name / entry.name
        for base in (root / CONSUME_QUEUE, root / BATCH_CONSUME_QUEUE)
        for topic in files.list_dir(base)
        if topic.is_dir
        for entry in files.list_dir(base / topic.name)
        if not entry.is_dir and entry.name.endswith(STAGED_SUFFIX)
    ]


def read_units(files: Files, queue: QueueFiles, file_size_bytes: int) -> tuple[int, Units]:
    """Returns the units that a queue's files hold, from its first file on.

    Args:
        files: Where the store is.
        queue: The queue.
        file_size_bytes: Length that every file should have; longer ones are read up to it.

    Returns:
        Number of the first unit (in a plain queue its queue offset), and ``(n,)`` of the layout's dtype up
        to the last byte ever written; what no file holds is zero.
    """
    unit_bytes, dtype = queue.layout.size_bytes, queue.layout.dtype
    if not queue.sizes:
        return 0, np.empty(0, dtype)
    first = min(queue.sizes)
    parts: list[bytes] = []
    end = first
    for offset in sorted(queue.sizes):
        if not 0 <= offset - end <= _MAX_GAP_FILES * file_size_bytes:
            continue  # no queue has such a file; its units could only be nonsense
        data = _read_data(files, queue.directory / segment_file_name(offset), file_size_bytes)
        # A unit may end in zeros, but half a unit at the end of a cut file is none.
        room = min(queue.sizes[offset], file_size_bytes) - len(data)
        data += bytes(max(0, min(-len(data) % unit_bytes, room)))
        parts.append(bytes(offset - end))
        parts.append(data)
        end = offset + len(data)
    joined = b"".join(parts)
    return first // unit_bytes, np.frombuffer(joined, dtype, len(joined) // unit_bytes)


def _read_data(files: Files, path: Path, limit_bytes: int) -> bytes:
    handle = files.open(path, writable=False)
    try:
        limit_bytes = min(limit_bytes, handle.size_bytes)
        data = bytearray()
        at = handle.next_data(0)
        while at is not None and at < limit_bytes:
            data.extend(bytes(at - len(data)))
            chunk = memoryview(bytearray(min(_CHUNK_BYTES, limit_bytes - at)))
            count = handle.read_into(chunk, at)
            if not count:
                break
            data.extend(chunk[:count])
            at = handle.next_data(at + count)
    finally:
        handle.close()
    return bytes(data.rstrip(b"\0"))


def unit_finding(
    code: str,
    queue: str,
    slot: int,
    file_size_bytes: int,
    count: int,
    unit_bytes: int = CQ_UNIT_BYTES,
    **detail: str,
) -> Finding:
    """Returns a finding about ``count`` units from unit ``slot`` on."""
    position = slot * unit_bytes
    file = segment_file_name(position - position % file_size_bytes)
    return Finding(
        code,
        f"{queue}/{file}",
        position % file_size_bytes,
        count * unit_bytes,
        messages=count,
        **detail,
    )
