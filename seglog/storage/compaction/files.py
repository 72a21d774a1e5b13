"""The files of compaction topics as found, and what of them counts.

Truth: the compaction log, once a compaction dropped records; before, the commit log. So what the
commit log has behind the last unit of a queue is added to it, and a queue that was never compacted and
whose logs are not whole is rebuilt. A queue file follows from its log file, and is rebuilt from that.

Source: ``store/.../kv/CompactionLog.java recover, sanityCheck``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from seglog.errors import ConfigError, CorruptError
from seglog.storage.compaction.copies import (
    CommitRecords,
    HeldCopies,
    LostCopy,
    sound_record_at,
    with_tags_codes,
)
from seglog.storage.compaction.rebuild import read_filler, rebuild_units, sound_record
from seglog.storage.compaction.units import CompactionUnits
from seglog.storage.directory.geometry import infer_file_size
from seglog.storage.files.files import Files, read_part
from seglog.storage.format.config.config_json import encode_config
from seglog.storage.format.names import can_name_directory, parse_segment_file_name, segment_file_name
from seglog.storage.format.queue import compaction
from seglog.storage.format.queue.batch_consume_queue import (
    BATCH_UNIT_BYTES,
    END_UNIT,
    BatchUnits,
    batch_in_use,
    valid_batch_prefix,
    view_batch_units,
)
from seglog.storage.format.queue.compaction import CompactionSizes, compaction_sizes
from seglog.storage.format.record.record import MAGIC_V1, MAGIC_V2
from seglog.storage.format.record.tombstone import min_tombstone_bytes
from seglog.storage.small_files.config_file import ConfigFile

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
        copies: Records of the log files that are written again, by place: place in the commit log, and size.
        lost: Records of the log files that tombstones stand in for, by place.
    """

    files: CompactionFiles
    units: CompactionUnits
    kept: list[int] = field(default_factory=list)
    dropped: list[Path] = field(default_factory=list)
    rebuilt: dict[int, bytes] = field(default_factory=dict)
    damaged: list[int] = field(default_factory=list)
    copies: dict[int, tuple[int, int]] = field(default_factory=dict)
    lost: dict[int, LostCopy] = field(default_factory=dict)

    @property
    def changed(self) -> set[int]:
        """First offsets of log files in which records are written again or given up."""
        log_bytes = self.units.sizes.log_bytes
        return {place - place % log_bytes for place in (*self.copies, *self.lost)}

    def place_in_log(self, place: int) -> tuple[Path, int]:
        """Returns the log file that a place is in, and the position in it."""
        position = place % self.units.sizes.log_bytes
        return self.files.log_directory / segment_file_name(place - position), position

    def read_log(self, files: Files, place: int, size_bytes: int) -> memoryview:
        """Returns the bytes at a place of the log files; fewer where the file ends.

        Raises:
            FileNotFoundError: There is no such file.
        """
        path, position = self.place_in_log(place)
        with closing(files.open(path, writable=False)) as handle:
            return read_part(handle, position, size_bytes)


class _Followed(NamedTuple):
    """The units of a file that count, whether they are all, and what its queue file must hold instead."""

    units: BatchUnits
    is_sound: bool
    content: bytes | None = None
    is_damaged: bool = False


class _Sound(NamedTuple):
    """The leading units of a file that lead to records.

    Attributes:
        is_all: Whether they are all that the file begins with.
        is_ended: Whether it ends as a full one.
        content: What the queue file must hold instead, since it leads to records that are lost.
    """

    units: BatchUnits
    is_all: bool
    is_ended: bool
    content: bytes | None


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
    records: CommitRecords | None = None,
) -> CompactionState:
    """Returns what of a queue's files counts.

    Args:
        files: Where the store is.
        found: The files.
        sizes: Their lengths.
        compacted: Whether a compaction dropped messages, so that names may have gaps.
        end_offset: Queue offset behind the last message of the queue in the commit log, None if not known:
            no unit that is rebuilt goes beyond.
        records: What the commit log has of the queue; None to believe the files.
    """
    held = HeldCopies(records)
    units = CompactionUnits(sizes)
    kept: list[int] = []
    damaged: list[int] = []
    rebuilt: dict[int, bytes] = {}
    for first in sorted(first for first, size in found.logs.items() if size == sizes.log_bytes):
        is_next = first == (kept[-1] + sizes.log_bytes if kept else 0)
        if not is_next and not compacted:
            break
        offsets = range(units.max_offset, end_offset or _MAX_OFFSET)
        followed = _follow(files, found, first, offsets, sizes, held)
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
    held.keep_only(set(kept), sizes.log_bytes)
    return CompactionState(
        found, units, kept, dropped + found.strays, rebuilt, damaged, held.copies, held.lost
    )


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
    files: Files,
    found: CompactionFiles,
    first: int,
    offsets: range,
    sizes: CompactionSizes,
    held: HeldCopies,
) -> _Followed | None:
    """Returns what counts of a log file; None if there is no queue file and none can be made."""
    name = segment_file_name(first)
    path = found.log_directory / name
    sound = _Sound(view_batch_units(b""), is_all=False, is_ended=False, content=None)
    has_queue_file = found.queues.get(first) == sizes.queue_bytes
    if has_queue_file:
        sound = _sound_units(files, found, first, offsets.start, held)
        units = sound.units
        end = int(units["phy_offset"][-1]) + int(units["size_bytes"][-1]) - first if len(units) else 0
        with closing(files.open(path, writable=False)) as log:
            _size, magic = read_filler(log, end)
        if sound.is_all and magic not in {MAGIC_V1, MAGIC_V2}:
            return _Followed(units, sound.is_ended, sound.content)
    made = rebuild_units(files, path, first, offsets, sizes, held.tags_code_of)
    is_better = made.is_whole or len(made.units) > len(sound.units)
    if made.content is None or not is_better or (not len(made.units) and not made.is_whole):
        lacking = _Followed(sound.units, is_sound=False, content=sound.content, is_damaged=True)
        return lacking if has_queue_file else None
    is_wrong = not has_queue_file or files.read_file(found.queue_directory / name) != made.content
    content = made.content if is_wrong else None
    return _Followed(made.units, made.is_whole, content, is_damaged=not made.is_whole)


def _sound_units(
    files: Files, found: CompactionFiles, first: int, max_offset: int, held: HeldCopies
) -> _Sound:
    """Returns the leading units of a file that lead to records.

    A record that cannot be read is stepped over where a sound one begins just where its unit ends.

    Args:
        files: Where the store is.
        found: The files of the queue.
        first: First offset of the file.
        max_offset: Queue offset behind the last message of the files before it.
        held: What the records are held against; gets what differs and what is lost.
    """
    name = segment_file_name(first)
    data = files.read_file(found.queue_directory / name)
    units = view_batch_units(data)
    used = valid_batch_prefix(units)
    # A file of which units are gone looks like one that was never filled; one behind it decides.
    is_ended = used == len(units) or units[used].tobytes() == END_UNIT or first == max(found.queues)
    units, unread, lost, end = units[:used], list[int](), list[int](), first
    noted = HeldCopies(held.records)
    least_bytes = min_tombstone_bytes(found.topic.encode("utf-8", "surrogateescape"))
    with closing(files.open(found.log_directory / name, writable=False)) as log:
        for index, unit in enumerate(units.tolist()):
            phy_offset, size, _code, _time, base, count, *_ = unit
            is_within = 0 <= phy_offset - first <= found.logs[first] - size
            record = memoryview(bytearray(size if is_within else 0))
            log.read_into(record, max(0, phy_offset - first))
            # With another count a reader would continue at another offset.
            is_next = base >= max_offset and count == 1 and not (unread and phy_offset != end)
            is_sound = is_next and _is_sound(record, unit)
            there = None if is_sound or not is_next else sound_record_at(log, record, phy_offset, first)
            is_same = there is None or (there.queue_offset, there.size_bytes) == (base, size)
            if not is_next or not is_same:
                return _Sound(units[: unread[0] if unread else index], False, False, None)
            # A place is proven by the record that is there, or by the end of the one before.
            if ((is_sound or phy_offset == end) and noted.differs(record, unit)) or is_sound:
                lost += unread
                unread.clear()
            elif there is None and phy_offset == end and len(record) >= least_bytes:
                unread.append(index)
            else:
                return _Sound(units[: unread[0] if unread else index], False, False, None)
            max_offset, end = base + 1, phy_offset + size
    told = units.tolist()
    for index in lost:
        noted.give_up(found.topic, found.queue_id, told[index])
    held.take(noted)
    content = with_tags_codes(data, noted.lost, lost) if lost else None
    units = units if content is None else view_batch_units(content)[:used]
    return _Sound(units[: unread[0]] if unread else units, not unread, is_ended, content)


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
