"""Makes queue files hold given bytes, writing only where they do not yet."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from seglog.storage.batch_overlay import BatchQueueState
from seglog.storage.files import Files
from seglog.storage.format.batch_consume_queue import BATCH_UNIT_BYTES
from seglog.storage.format.names import BATCH_CONSUME_QUEUE, segment_file_name
from seglog.storage.queue_files import queue_directory
from seglog.storage.survey import Survey


def remove_expired(files: Files, directory: Path, stored: dict[int, int], size: int, start: int) -> int:
    """Removes the files that end before byte ``start`` of the queue; returns how many.

    The log has lost their messages to retention. RocketMQ removes them once a minute; until then it would
    take their first unit for the queue's minimum.
    """
    gone = [first for first in stored if first + size <= start]
    for first in gone:
        files.remove(directory / segment_file_name(first))
        del stored[first]
    return len(gone)


def write_file(
    files: Files, path: Path, size: int, content: Callable[[bytes], bytes], *, exists: bool
) -> int:
    """Makes a queue file hold what it should, zeros behind that; returns how many files had to change.

    Args:
        files: Where the store is.
        path: The file.
        size: Its length.
        content: Returns what it should begin with, given what it holds.
        exists: Whether it is there.
    """
    if not exists:
        files.make_dirs(path.parent)
        files.create(path, size).close()
    handle = files.open(path, writable=True)
    try:
        is_short = handle.size_bytes < size
        if is_short:
            handle.set_size(size)
        buffer = memoryview(bytearray(size))
        handle.read_into(buffer, 0)
        held = bytes(buffer)
        wanted = content(held)
        if held == wanted.ljust(size, b"\0"):
            return int(is_short)
        used = max(len(wanted), len(held.rstrip(b"\0")))
        handle.reserve(0, used)
        handle.write_at(wanted.ljust(used, b"\0"), 0)
        handle.sync()
    finally:
        handle.close()
    return 1


def write_batch_queue(found: Survey, files: Files, state: BatchQueueState) -> int:
    """Makes the files of a batch queue say what the log says; returns how many had to change."""
    size = found.geometry.batch_file_size_bytes
    directory = found.root / queue_directory(state.topic, state.queue_id, BATCH_CONSUME_QUEUE)
    known = found.batch_files.get((state.topic, state.queue_id))
    stored = dict(known.sizes) if known is not None else {}
    start = state.first_index * BATCH_UNIT_BYTES
    data = state.units.tobytes()
    changed = remove_expired(files, directory, stored, size, start)
    beyond = [first for first in stored if first >= start + len(data)]
    if state.agrees and not beyond and all(length == size for length in stored.values()):
        return changed
    for first in beyond:
        # An empty queue file is not harmless: RocketMQ takes its first unit without a look.
        files.remove(directory / segment_file_name(first))
        changed += 1
    for first in range(start, start + len(data), size):
        part = data[first - start : first - start + size]
        path = directory / segment_file_name(first)
        changed += write_file(files, path, size, partial(_always, part), exists=first in stored)
    if changed:
        files.sync_dir(directory)
    return changed


def _always(content: bytes, _held: bytes) -> bytes:
    return content
