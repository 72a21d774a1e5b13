"""The files of compaction topics as they lie there, and what of them counts.

Truth: the compaction log, once a compaction dropped records; before, the commit log. So whatever the
commit log has behind the last unit of a queue is added to it, and a queue that was never compacted and
whose files are not whole is made again.

Source: ``store/.../kv/CompactionLog.java recover, sanityCheck``.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from seglog.errors import ConfigError, CorruptError, MessageIllegalError
from seglog.storage.compaction_units import CompactionUnits
from seglog.storage.config_file import ConfigFile
from seglog.storage.files import Files
from seglog.storage.format import compaction
from seglog.storage.format.batch_consume_queue import (
    END_UNIT,
    BatchUnits,
    valid_batch_prefix,
    view_batch_units,
)
from seglog.storage.format.compaction import CompactionSizes, compaction_key, compaction_sizes
from seglog.storage.format.config_json import encode_config
from seglog.storage.format.layout import Field, Layout
from seglog.storage.format.names import can_name_directory, parse_segment_file_name, segment_file_name
from seglog.storage.format.record import CRC_MASK, HEAD_V4, Damage, examine
from seglog.storage.geometry import infer_file_size

_BODY_CRC: Final = Layout("", "", (Field("crc", "u32", "", ""),)).struct
_BASE: Final = compaction.COMPACTION
Key = tuple[str, int]


@dataclass(slots=True)
class CompactionFiles:
    """The files of one compaction queue.

    Attributes:
        logs: Length of each log file by its first offset.
        queues: Length of each queue file by the same.
        strays: Other names in the two folders, which keep RocketMQ from starting.
    """

    topic: str
    queue_id: int
    root: Path
    logs: dict[int, int] = field(default_factory=dict)
    queues: dict[int, int] = field(default_factory=dict)
    strays: list[Path] = field(default_factory=list)

    @property
    def log_directory(self) -> Path:
        """Folder of the log files."""
        return self.root / _BASE / compaction.COMPACTION_LOG / self.topic / str(self.queue_id)

    @property
    def queue_directory(self) -> Path:
        """Folder of the queue files."""
        return self.root / _BASE / compaction.COMPACTION_QUEUE / self.topic / str(self.queue_id)


@dataclass(slots=True)
class CompactionState:
    """A compaction queue as its files hold it.

    Attributes:
        files: Where it is.
        units: The messages that count.
        kept: First offsets of the files that hold them.
        dropped: Files that do not count.
    """

    files: CompactionFiles
    units: CompactionUnits
    kept: list[int] = field(default_factory=list)
    dropped: list[Path] = field(default_factory=list)


def list_compaction_files(files: Files, root: Path, topic: str, queue_id: int) -> CompactionFiles:
    """Returns the files of a queue; none where it has no folder yet."""
    found = CompactionFiles(topic, queue_id, root)
    if not can_name_directory(topic):
        return found
    for directory, sizes in ((found.log_directory, found.logs), (found.queue_directory, found.queues)):
        for entry in files.list_dir(directory):
            first = parse_segment_file_name(entry.name)
            if entry.is_dir:
                found.strays += [
                    directory / entry.name / inner.name
                    for inner in files.list_dir(directory / entry.name)
                    if not inner.is_dir
                ]
            elif first is None:
                found.strays.append(directory / entry.name)
            else:
                sizes[first] = entry.size_bytes
    return found


def queue_ids(files: Files, root: Path, topic: str) -> Iterator[int]:
    """Yields the numbers of a topic's queues that have a compaction log."""
    folder = root / _BASE / compaction.COMPACTION_LOG / topic
    for entry in files.list_dir(folder) if can_name_directory(topic) else ():
        if entry.is_dir and entry.name.isascii() and entry.name.isdigit():
            yield int(entry.name)


def infer_compaction_sizes(
    queues: list[CompactionFiles], wanted: CompactionSizes | None = None
) -> CompactionSizes:
    """Returns how long the files of a store's compaction topics are.

    Args:
        queues: Their files.
        wanted: Lengths where there are none yet; RocketMQ's defaults if None.
    """
    default = wanted or compaction_sizes()
    logs = [item for queue in queues for item in queue.logs.items()]
    # Queue files are named by their log files, so their names say nothing about their length.
    lengths = [(0, size) for queue in queues for size in queue.queues.values()]
    return CompactionSizes(
        infer_file_size(logs, default.log_bytes), infer_file_size(lengths, default.queue_bytes)
    )


def load_state(
    files: Files, found: CompactionFiles, sizes: CompactionSizes, *, compacted: bool
) -> CompactionState:
    """Returns what of a queue's files counts.

    Args:
        files: Where the store is.
        found: The files.
        sizes: Their lengths.
        compacted: Whether a compaction dropped messages, so that names may have gaps.
    """
    units = CompactionUnits(sizes)
    whole = sorted(
        first
        for first in found.logs.keys() & found.queues.keys()
        if found.logs[first] == sizes.log_bytes and found.queues[first] == sizes.queue_bytes
    )
    kept: list[int] = []
    for first in whole:
        is_next = first == (kept[-1] + sizes.log_bytes if kept else 0)
        if not is_next and not compacted:
            break
        valid, is_sound = sound_units(files, found, first, units.max_offset)
        units.begin_file(first, valid)
        kept.append(first)
        if not is_sound and not compacted:
            break
    if kept and not compacted and not units.end_index:
        kept.clear()
        units = CompactionUnits(sizes)
    dropped = [found.log_directory / segment_file_name(first) for first in found.logs if first not in kept]
    dropped += [
        found.queue_directory / segment_file_name(first) for first in found.queues if first not in kept
    ]
    return CompactionState(found, units, kept, dropped + found.strays)


def sound_units(files: Files, found: CompactionFiles, first: int, max_offset: int) -> tuple[BatchUnits, bool]:
    """Returns the leading units of a file that lead to records, and whether those are all of its units.

    Args:
        files: Where the store is.
        found: The files of the queue.
        first: First offset of the file.
        max_offset: Queue offset behind the last message of the files before it.
    """
    name = segment_file_name(first)
    units = view_batch_units(files.read_file(found.queue_directory / name))
    used = valid_batch_prefix(units)
    # A file of which units are gone looks like one that was never filled; one behind it tells.
    is_ended = used == len(units) or units[used].tobytes() == END_UNIT or first == max(found.queues)
    units = units[:used]
    with closing(files.open(found.log_directory / name, writable=False)) as log:
        for index, unit in enumerate(units.tolist()):
            phy_offset, size, _code, _time, base, count, *_ = unit
            record = memoryview(bytearray(size if 0 <= phy_offset - first < found.logs[first] else 0))
            log.read_into(record, max(0, phy_offset - first))
            # With another count a reader would go on at another offset.
            if base < max_offset or count != 1 or not _is_sound(record, phy_offset, base):
                return units[:index], False
            max_offset = base + 1
    return units, is_ended


def _is_sound(record: memoryview, phy_offset: int, queue_offset: int) -> bool:
    row = examine(record, 0, phy_offset, verify=False)  # its __CRC32# was made for another place
    if isinstance(row, Damage) or (row.size_bytes, row.queue_offset) != (len(record), queue_offset):
        return False
    body = record[row.body_at : row.body_at + row.body_bytes]
    (stored_crc,) = _BODY_CRC.unpack_from(record, HEAD_V4.offsets["body_crc"])
    return not row.body_bytes or zlib.crc32(body) & CRC_MASK == stored_crc


def compacted_queues(files: Files, root: Path) -> dict[Key, int]:
    """Returns how far each queue was compacted, as ``position-checkpoint`` says; nothing if it is damaged."""
    path = root / _BASE / compaction.POSITION_FILE
    try:
        positions = ConfigFile(files, path).load(
            lambda value: compaction.decode_positions(encode_config(value))
        )
    except (ConfigError, CorruptError):
        return {}
    return positions or {}


def has_key(record: memoryview, phy_offset: int) -> bool:
    """Returns whether a record of the commit log belongs into a compaction log."""
    row = examine(record, 0, phy_offset, verify=False)
    if isinstance(row, Damage):
        return False
    start = row.properties_at
    try:
        compaction_key(bytes(record[start : start + row.properties_bytes]))
    except MessageIllegalError:
        return False
    return True
