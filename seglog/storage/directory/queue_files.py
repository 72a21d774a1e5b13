"""The consume-queue files of a store as they are on the disk.

Truth: none. What they say is held against the log in :mod:`seglog.storage.overlay.queue_overlay`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seglog.errors import FullError
from seglog.storage.directory.log_files import has_data
from seglog.storage.files.files import Files, OpenFile
from seglog.storage.findings.findings import Finding
from seglog.storage.format.layout import Layout
from seglog.storage.format.names import (
    BATCH_CONSUME_QUEUE,
    CONSUME_QUEUE,
    CONSUME_QUEUE_EXT,
    MAX_QUEUE_ID,
    can_name_directory,
    parse_segment_file_name,
    segment_file_name,
)
from seglog.storage.format.queue.consume_queue import CQ_UNIT, CQ_UNIT_BYTES, Units
from seglog.storage.segments.scratch import Room, Scratch
from seglog.storage.segments.segments import STAGED_SUFFIX

_CHUNK_BYTES = 1 << 20
_FIRST_BYTES = 64 << 10
_STEP_BYTES = 4096
_SHORT_BYTES = (4 << 10, 64 << 10)
_QUEUE_ID = re.compile(r"0|[1-9][0-9]{0,9}")
_MAX_GAP_FILES = 64
_MANY_BYTES = 16 << 20
_BYTE = np.dtype(np.uint8)


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


def folder_of_queue(file: str) -> str:
    """Returns the folder of a queue, given the name of a file in it or of the folder, in the store."""
    folder, _, name = file.rpartition("/")
    return file if parse_segment_file_name(name) is None else folder


def list_queues(
    files: Files, root: Path, folder: str = CONSUME_QUEUE, layout: Layout = CQ_UNIT
) -> Iterator[QueueFiles]:
    """Yields every queue of a kind that has a directory, sorted by name."""
    base = root / folder
    for topic in files.list_dir(base):
        if not topic.is_dir:
            continue
        topic_directory = base / topic.name
        for queue in files.list_dir(topic_directory):
            if queue.is_dir and _QUEUE_ID.fullmatch(queue.name) and int(queue.name) <= MAX_QUEUE_ID:
                directory = topic_directory / queue.name
                yield list_queue(files, QueueFiles(topic.name, int(queue.name), directory, layout, folder))


def list_queue(files: Files, queue: QueueFiles) -> QueueFiles:
    """Fills in the files of a queue from its directory, which may be missing, and returns it.

    A topic that no folder can be named after, as records of a damaged log may have it, has no files.
    """
    if not can_name_directory(queue.topic):
        return queue
    for entry in files.list_dir(queue.directory):
        first = parse_segment_file_name(entry.name)
        if entry.is_dir:
            continue
        if first is None or first % queue.layout.size_bytes:
            queue.strays.append(entry.name)
        else:
            queue.sizes[first] = entry.size_bytes
    return queue


def numbered_files(files: Files, folder: Path) -> dict[int, int]:
    """Returns the lengths of the files in a folder whose names are offsets, by these offsets, in order."""
    return {
        first: entry.size_bytes
        for entry in files.list_dir(folder)
        if not entry.is_dir and (first := parse_segment_file_name(entry.name)) is not None
    }


def remove_topic_folders(files: Files, root: Path, topic: str) -> None:
    """Removes the folders of a topic whose queues have lost their files; those with other things stay.

    What a broker kept for filters beside the queues goes with them.
    """
    if not can_name_directory(topic):
        return
    for base in (CONSUME_QUEUE, BATCH_CONSUME_QUEUE, CONSUME_QUEUE_EXT):
        folder = root / base / topic
        if not files.is_dir(folder):
            continue
        for queue in files.list_dir(folder):
            entries = files.list_dir(folder / queue.name)
            if base == CONSUME_QUEUE_EXT:
                for entry in entries:
                    files.remove(folder / queue.name / entry.name)
                entries = []
            if queue.is_dir and not entries:
                files.remove_dir(folder / queue.name)
        if not files.list_dir(folder):
            files.remove_dir(folder)
        files.sync_dir(folder.parent)


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


def read_units(
    files: Files, queue: QueueFiles, file_size_bytes: int, room: Room | None = None
) -> tuple[int, Units]:
    """Returns the units that a queue's files hold, from its first file on.

    Args:
        files: Where the store is.
        queue: The queue.
        file_size_bytes: Length that every file should have; longer ones are read up to it.
        room: Where they go; memory if None.

    Returns:
        Number of the first unit (in a plain queue its queue offset), and ``(n,)`` of the layout's dtype up
        to the last byte ever written; what no file holds is zero.
    """
    unit_bytes, dtype = queue.layout.size_bytes, queue.layout.dtype
    if not queue.sizes:
        return 0, np.empty(0, dtype)
    first = min(queue.sizes)
    if len(queue.sizes) == 1:
        path = queue.directory / segment_file_name(first)
        short = _read_short(files, path, min(queue.sizes[first], file_size_bytes), unit_bytes)
        if short is not None:
            return first // unit_bytes, short.view(dtype)
    size_bytes = _end_of_files(queue, first, file_size_bytes) - first
    if room is not None and size_bytes > _MANY_BYTES:
        memory, scratch = room.growing(size_bytes, _BYTE)
        if scratch is not None:
            try:
                found = _read_files(files, queue, file_size_bytes, memory, scratch)
                return first // unit_bytes, found.view(dtype)
            except FullError:
                return read_units(files, queue, file_size_bytes)
        room.give_back(memory)
    # Zeros that nothing is written to take no memory; large arrays are of huge pages where there are any.
    memory = np.zeros(size_bytes, np.uint8)
    data = _read_files(files, queue, file_size_bytes, memory, None)
    # A store may have thousands of queues with a few units each: they must not hold a huge page apiece.
    data = data if len(data) > len(memory) // 2 else data.copy()
    return first // unit_bytes, (data if room is None else room.keep(data)).view(dtype)


def read_units_left(
    files: Files, queue: QueueFiles, file_size_bytes: int, room: Room | None = None
) -> tuple[int, Units]:
    """Returns what :func:`read_units` does of the files that retention leaves; ``queue`` has only those then.

    Raises:
        FileNotFoundError: A file is gone that is listed still.
    """
    while True:
        try:
            return read_units(files, queue, file_size_bytes, room)
        except FileNotFoundError:
            listed = dict(queue.sizes)
            queue.sizes.clear()
            queue.strays.clear()
            list_queue(files, queue)
            if not listed.keys() - queue.sizes.keys():
                raise


def _read_files(
    files: Files,
    queue: QueueFiles,
    file_size_bytes: int,
    memory: npt.NDArray[np.uint8],
    scratch: Scratch | None,
) -> npt.NDArray[np.uint8]:
    """Reads the files of a queue one behind the other; returns the memory up to the last byte in use."""
    unit_bytes = queue.layout.size_bytes
    first = end = min(queue.sizes)
    for offset in sorted(queue.sizes):
        if not 0 <= offset - end <= _MAX_GAP_FILES * file_size_bytes:
            continue  # no queue has such a file; its units could only be nonsense
        path = queue.directory / segment_file_name(offset)
        start = offset - first
        size = _read_data(files, path, memory[start : start + file_size_bytes], scratch, start)
        # A unit may end in zeros, but half a unit at the end of a cut file is none.
        rest = min(queue.sizes[offset], file_size_bytes) - size
        end = offset + size + max(0, min(-size % unit_bytes, rest))
    return memory[: (end - first) // unit_bytes * unit_bytes]


def _end_of_files(queue: QueueFiles, first: int, file_size_bytes: int) -> int:
    """Returns where the last file ends that may be of the queue."""
    end = first
    for offset in sorted(queue.sizes):
        if offset - end <= _MAX_GAP_FILES * file_size_bytes:
            end = offset + file_size_bytes
    return end


def _read_short(files: Files, path: Path, size_bytes: int, unit_bytes: int) -> npt.NDArray[np.uint8] | None:
    """Returns what the one file of a queue with few units holds, None for one that holds more.

    Of most queues of a store with thousands, all of it is in the first pages, and the rest is a hole.
    """
    with closing(files.open(path, writable=False)) as handle:
        for length in _SHORT_BYTES:
            if size_bytes <= length or handle.next_data(length) is None:
                break
        else:
            return None
        room = np.zeros(length + unit_bytes, np.uint8)
        chunk = room[: min(size_bytes, length)]
        count = handle.read_into(chunk.data, 0)
    whole = -(-_last_data_end(chunk[:count], 0) // unit_bytes) * unit_bytes
    # A unit may end in zeros, but half a unit at the end of a cut file is none.
    return room[: whole if whole <= size_bytes else whole - unit_bytes].copy()


def _read_data(
    files: Files, path: Path, target: npt.NDArray[np.uint8], scratch: Scratch | None, start: int
) -> int:
    """Reads the front of a file; returns where its last byte is that is not 0, 1 more than its number.

    Args:
        files: Where it is.
        path: The file.
        target: Where to.
        scratch: Where the target must be reserved, at ``start`` and behind it; None for memory.
        start: Where the target begins in it.

    Raises:
        FullError: There is no space for it.
    """
    last = 0
    with closing(files.open(path, writable=False)) as handle:
        limit_bytes = min(len(target), handle.size_bytes)
        at = handle.next_data(0)
        while at is not None and at < limit_bytes:
            chunk = target[at : min(at + _CHUNK_BYTES, limit_bytes)]
            if scratch is not None:
                scratch.reserve(start + at, len(chunk))
            count = handle.read_into(chunk.data, at)
            if not count:
                break
            last = _last_data_end(chunk[:count], at) or last
            at = handle.next_data(at + count)
    return last


def data_end(handle: OpenFile, unit_bytes: int) -> int:
    """Returns the end of the last unit of a file of which any byte is not 0, within the file."""
    stretches: list[tuple[int, int]] = []
    size, at, length = handle.size_bytes, handle.next_data(0), _FIRST_BYTES
    while at is not None and at < size:
        stop = min(size, at + length)
        stretches.append((at, stop))
        at, length = handle.next_data(stop) if stop < size else None, min(2 * length, _CHUNK_BYTES)
    for start, stop in reversed(stretches):
        chunk = np.empty(stop - start, np.uint8)
        end = _last_data_end(chunk[: handle.read_into(chunk.data, start)], start)
        if end:
            return min(-(-end // unit_bytes) * unit_bytes, size // unit_bytes * unit_bytes)
    return 0


def _last_data_end(chunk: npt.NDArray[np.uint8], position: int) -> int:
    """Returns the end of the last byte other than 0 in a chunk that begins at a position; 0 without one."""
    end, step = len(chunk), _STEP_BYTES
    while end:
        start = max(0, end - step)
        if not has_data(chunk[start:end].data):
            end, step = start, 2 * step
        elif end - start <= _STEP_BYTES:
            return position + start + len(chunk[start:end].tobytes().rstrip(b"\0"))
        else:
            step = _STEP_BYTES
    return 0


def unit_finding(
    code: str,
    queue: str,
    slot: int,
    file_size_bytes: int,
    count: int,
    unit_bytes: int = CQ_UNIT_BYTES,
    *,
    expected: str = "",
    found: str = "",
) -> Finding:
    """Returns a finding about ``count`` units from unit ``slot`` on."""
    position = slot * unit_bytes
    file = segment_file_name(position - position % file_size_bytes)
    return Finding(
        code,
        f"{queue}/{file}",
        position % file_size_bytes,
        count * unit_bytes,
        expected,
        found,
        count,
    )
