"""The files of compaction topics as they lie there, and what of them counts.

Truth: the compaction log, once a compaction dropped records; before, the commit log. So whatever the
commit log has behind the last unit of a queue is added to it, and a queue that was never compacted and
whose logs are not whole is made again. A queue file follows from its log file, and is made again from that.

Source: ``store/.../kv/CompactionLog.java recover, sanityCheck``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from seglog.errors import ConfigError, CorruptError, MessageIllegalError
from seglog.storage.compaction_rebuild import read_filler, rebuild_units, sound_record
from seglog.storage.compaction_units import CompactionUnits
from seglog.storage.config_file import ConfigFile
from seglog.storage.files import Files
from seglog.storage.format import compaction
from seglog.storage.format.batch_consume_queue import (
    BATCH_UNIT_BYTES,
    END_UNIT,
    BatchUnits,
    batch_in_use,
    valid_batch_prefix,
    view_batch_units,
)
from seglog.storage.format.compaction import CompactionSizes, compaction_key, compaction_sizes
from seglog.storage.format.config_json import encode_config
from seglog.storage.format.names import can_name_directory, parse_segment_file_name, segment_file_name
from seglog.storage.format.record import MAGIC_V1, MAGIC_V2, Damage, examine
from seglog.storage.geometry import infer_file_size

_BASE: Final = compaction.COMPACTION
_MAX_OFFSET: Final = (1 << 63) - 1
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
        rebuilt: What queue files hold that must be written, by first offset.
        damaged: First offsets of log files that end in something unreadable.
    """

    files: CompactionFiles
    units: CompactionUnits
    kept: list[int] = field(default_factory=list)
    dropped: list[Path] = field(default_factory=list)
    rebuilt: dict[int, bytes] = field(default_factory=dict)
    damaged: list[int] = field(default_factory=list)


class _Followed(NamedTuple):
    """The units of a file that count, whether they are all, and what its queue file must hold instead."""

    units: BatchUnits
    is_sound: bool
    content: bytes | None = None
    is_damaged: bool = False


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
    log_bytes = infer_file_size(logs, default.log_bytes)
    lengths = [(0, size) for queue in queues for size in queue.queues.values()]
    if logs:
        # A log file is as long as some queue files.
        lengths = [(0, size) for _first, size in lengths if size and log_bytes % size == 0]
    return CompactionSizes(
        log_bytes, infer_file_size(lengths, default.queue_bytes, multiple_of=BATCH_UNIT_BYTES)
    )


def load_state(
    files: Files,
    found: CompactionFiles,
    sizes: CompactionSizes,
    *,
    compacted: bool,
    end_offset: int | None = None,
) -> CompactionState:
    """Returns what of a queue's files counts.

    Args:
        files: Where the store is.
        found: The files.
        sizes: Their lengths.
        compacted: Whether a compaction dropped messages, so that names may have gaps.
        end_offset: Queue offset behind the last message of the queue in the commit log, None if not known:
            no unit that is made again goes beyond.
    """
    units = CompactionUnits(sizes)
    kept: list[int] = []
    damaged: list[int] = []
    rebuilt: dict[int, bytes] = {}
    for first in sorted(first for first, size in found.logs.items() if size == sizes.log_bytes):
        is_next = first == (kept[-1] + sizes.log_bytes if kept else 0)
        if not is_next and not compacted:
            break
        offsets = range(units.max_offset, end_offset or _MAX_OFFSET)
        followed = _follow(files, found, first, offsets, sizes)
        if followed is None:
            if compacted:
                continue
            break
        units.begin_file(first, followed.units)
        kept.append(first)
        if followed.content is not None:
            rebuilt[first] = followed.content
        if followed.is_damaged:
            damaged.append(first)
        if not followed.is_sound and not compacted:
            break
    if kept and not compacted and not units.end_index:
        kept.clear()
        rebuilt.clear()
        units = CompactionUnits(sizes)
    dropped = [found.log_directory / segment_file_name(first) for first in found.logs if first not in kept]
    dropped += [
        found.queue_directory / segment_file_name(first) for first in found.queues if first not in kept
    ]
    return CompactionState(found, units, kept, dropped + found.strays, rebuilt, damaged)


def known_offsets(files: Files, state: CompactionState) -> set[int]:
    """Returns the queue offsets that units have in queue files of which not all that they lead to counts."""
    found, log_bytes = state.files, state.units.sizes.log_bytes
    offsets: set[int] = set()
    for first in found.queues.keys() - (set(state.kept) - set(state.damaged)):
        units = view_batch_units(files.read_file(found.queue_directory / segment_file_name(first)))
        phy = units["phy_offset"]
        is_here = batch_in_use(units) & (phy >= first) & (phy < first + log_bytes)
        offsets.update(units["base_queue_offset"][is_here].tolist())
    return offsets


def _follow(
    files: Files, found: CompactionFiles, first: int, offsets: range, sizes: CompactionSizes
) -> _Followed | None:
    """Returns what counts of a log file; None if there is no queue file and none can be made."""
    name = segment_file_name(first)
    path = found.log_directory / name
    units, is_ended, is_all = view_batch_units(b""), False, False
    has_queue_file = found.queues.get(first) == sizes.queue_bytes
    if has_queue_file:
        units, is_all, is_ended = _sound_units(files, found, first, offsets.start)
        end = int(units["phy_offset"][-1]) + int(units["size_bytes"][-1]) - first if len(units) else 0
        with closing(files.open(path, writable=False)) as log:
            _size, magic = read_filler(log, end)
        if is_all and magic not in {MAGIC_V1, MAGIC_V2}:
            return _Followed(units, is_ended)
    made = rebuild_units(files, path, first, offsets, sizes)
    is_better = made.is_whole or len(made.units) > len(units)
    if made.content is None or not is_better or (not len(made.units) and not made.is_whole):
        return _Followed(units, is_sound=False, is_damaged=True) if has_queue_file else None
    is_wrong = not has_queue_file or files.read_file(found.queue_directory / name) != made.content
    content = made.content if is_wrong else None
    return _Followed(made.units, made.is_whole, content, is_damaged=not made.is_whole)


def _sound_units(
    files: Files, found: CompactionFiles, first: int, max_offset: int
) -> tuple[BatchUnits, bool, bool]:
    """Returns the leading units of a file that lead to records, and of which kind they are.

    Args:
        files: Where the store is.
        found: The files of the queue.
        first: First offset of the file.
        max_offset: Queue offset behind the last message of the files before it.

    Returns:
        The units, whether they are all that the file begins with, and whether it ends as a full one.
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
            if base < max_offset or count != 1 or not _is_sound(record, unit):
                return units[:index], False, False
            max_offset = base + 1
    return units, True, is_ended


def _is_sound(record: memoryview, unit: tuple[int, ...]) -> bool:
    phy_offset, _size, code, store_timestamp_ms, base, *_ = unit
    row = sound_record(record, phy_offset)
    return row is not None and (row.queue_offset, row.tags_code, row.store_timestamp_ms) == (
        base,
        code,
        store_timestamp_ms,
    )


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
