"""Gives queue files their right content: writes only files that differ, after a copy to the attic."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from seglog.storage.directory.queue_files import queue_directory
from seglog.storage.files.files import Files
from seglog.storage.format.names import BATCH_CONSUME_QUEUE, segment_file_name
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT_BYTES
from seglog.storage.overlay.batch_overlay import BatchQueueState
from seglog.storage.small_files.attic import Attic
from seglog.storage.survey.store_survey import Survey


def remove_expired(files: Files, directory: Path, stored: dict[int, int], size: int, start: int) -> int:
    """Removes the files that end before byte ``start`` of the queue; returns their number.

    Retention removed the log of their messages. RocketMQ removes such files once a minute; until then it
    would take their first unit for the queue's minimum.
    """
    gone = [first for first in stored if first + size <= start]
    for first in gone:
        files.remove(directory / segment_file_name(first))
        del stored[first]
    return len(gone)


def remove_beyond(files: Files, attic: Attic, root: Path, path: Path, unit_bytes: int) -> None:
    """Removes a file that begins behind the end of its queue, after a copy of its units to the attic."""
    attic.keep_units(path.relative_to(root).as_posix(), files.read_file(path), b"", unit_bytes)
    files.remove(path)


@dataclass(frozen=True, slots=True)
class QueueFile:
    """A file of a queue that must get its content.

    Attributes:
        root: The store directory.
        folder: Directory of the queue, relative to the store.
        first: Offset of its first byte in the queue.
        size_bytes: Its length.
        exists: Whether it exists.
    """

    root: Path
    folder: str
    first: int
    size_bytes: int
    exists: bool

    @property
    def name(self) -> str:
        """Path of the file, relative to the store."""
        return f"{self.folder}/{segment_file_name(self.first)}"


def write_file(
    files: Files,
    target: QueueFile,
    content: Callable[[bytes], bytes],
    keep: Callable[[str, bytes, bytes], None],
) -> int:
    """Gives a queue file its content, with zeros behind it; returns 1 if the file had to change.

    Args:
        files: The file layer of the store.
        target: The file.
        content: Returns the new first bytes of the file, given its bytes now.
        keep: Called before the file changes, with its name, its bytes now and its new first bytes.
    """
    path, size = target.root / target.name, target.size_bytes
    if not target.exists:
        files.make_dirs(path.parent)
        files.create(path, size).close()
    with closing(files.open(path, writable=True)) as handle:
        is_short = handle.size_bytes < size
        if is_short:
            handle.set_size(size)
        buffer = memoryview(bytearray(size))
        handle.read_into(buffer, 0)
        held = bytes(buffer)
        wanted = content(held)
        if held == wanted.ljust(size, b"\0"):
            return int(is_short)
        if target.exists:
            keep(target.name, held, wanted)
        # Not the whole file: behind the last byte that was or will be used it is sparse, and stays so.
        used = max(len(wanted), len(held.rstrip(b"\0")))
        handle.reserve(0, used)
        handle.write_at(wanted.ljust(used, b"\0"), 0)
        handle.sync()
    return 1


def write_batch_queue(found: Survey, files: Files, attic: Attic, state: BatchQueueState) -> int:
    """Makes the files of a batch queue agree with the log; returns how many files it changed."""
    size = found.geometry.batch_file_size_bytes
    folder = queue_directory(state.topic, state.queue_id, BATCH_CONSUME_QUEUE)
    directory = found.root / folder
    known = found.batch_files.get((state.topic, state.queue_id))
    stored = dict(known.sizes) if known is not None else {}
    start = state.first_index * BATCH_UNIT_BYTES
    data = state.units.tobytes()
    changed = remove_expired(files, directory, stored, size, start)
    beyond = [first for first in stored if first >= start + len(data)]
    if state.agrees and not beyond and all(length == size for length in stored.values()):
        return changed
    for first in beyond:
        # An empty queue file does harm: RocketMQ takes its first unit without a check.
        remove_beyond(files, attic, found.root, directory / segment_file_name(first), BATCH_UNIT_BYTES)
        changed += 1
    keep = partial(attic.keep_units, unit_bytes=BATCH_UNIT_BYTES)
    for first in range(start, start + len(data), size):
        part = data[first - start : first - start + size]
        target = QueueFile(found.root, folder, first, size, exists=first in stored)
        changed += write_file(files, target, partial(_always, part), keep)
    if changed:
        files.sync_dir(directory)
    return changed


def _always(content: bytes, _held: bytes) -> bytes:
    return content
