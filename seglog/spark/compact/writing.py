"""Writes one segment of the new log, from the parts of the old one that go into it.

A segment appears under its name when it is whole; a task that is run twice writes it twice, the same bytes.
Beside it are the units of its records, by queue, for the tasks that write the queues.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from seglog.spark.compact.placeholders import move_records, write_placeholders
from seglog.spark.compact.policy import Verdict
from seglog.spark.compact.records import Facts, Key, facts_of
from seglog.spark.compact.summary import are_replaced
from seglog.spark.compact.task import Task, walk_split
from seglog.storage.files import OpenFile, RestoringFiles, Stamp, read_all
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.format.record import FILLER, FILLER_BYTES, INNER_BATCH, MAGIC_BLANK
from seglog.storage.kernels.gather import Bytes, Ints, copy_ranges
from seglog.storage.kernels.walk import Rows

UNITS: Final = ".units"
VERDICTS: Final = ".verdicts"
ATTEMPT: Final = ".attempt"
"""Folders and endings in a store that is being made; they are gone before it is one."""
SPILLED: Final = np.dtype(
    [
        ("queue_offset", "i8"),
        ("phy_offset", "i8"),
        ("tags_code", "i8"),
        ("size_bytes", "i4"),
        ("queue", "i4"),
        ("is_kept", "?"),
    ]
)
"""One unit of a queue; ``queue`` numbers the queues of one segment."""
Spilled = npt.NDArray[np.void]
_FILE_MODE: Final = 0o644


class SegmentPlan(NamedTuple):
    """A segment of the new log.

    Attributes:
        first: Physical offset of its first byte.
        parts: Numbers of the parts that go into it, in order.
        used_bytes: How much of it they take.
        is_last: Whether the log continues after them in this segment.
    """

    first: int
    parts: tuple[int, ...]
    used_bytes: int
    is_last: bool


class QueueSlice(NamedTuple):
    """Units of one queue in the file beside a segment.

    Attributes:
        segment: Physical offset of the segment's first byte.
        start: Number of the first in the file.
        units: How many there are.
    """

    segment: int
    topic: str
    queue_id: int
    start: int
    units: int


@dataclass(frozen=True, slots=True)
class WrittenSegment:
    """What came of a segment.

    Attributes:
        first: Physical offset of its first byte.
        used_bytes: How much of it holds records.
        records: How many.
        crc: CRC-32 of those bytes.
        slices: Its units, by queue.
    """

    first: int
    used_bytes: int
    records: int
    crc: int
    slices: tuple[QueueSlice, ...]


def segment_path(staged: Path, first: int) -> Path:
    """Returns where a segment is."""
    return staged / COMMIT_LOG / segment_file_name(first)


def units_path(staged: Path, first: int) -> Path:
    """Returns where the units of a segment are."""
    return staged / UNITS / f"{segment_file_name(first)}.npy"


def verdicts_path(staged: Path, part: int) -> Path:
    """Returns where the verdicts on a part are."""
    return staged / VERDICTS / f"{part}.npy"


def save_array(files: RestoringFiles, path: Path, array: npt.NDArray[np.generic]) -> None:
    """Writes an array that is needed for a while; one of several attempts wins, all write the same."""
    import io

    data = io.BytesIO()
    np.save(data, array, allow_pickle=False)
    attempt = path.with_name(f"{path.name}{ATTEMPT}-{uuid.uuid4().hex}")
    files.write_file(attempt, data.getvalue(), sync=False)
    files.rename(attempt, path)


def load_array(files: RestoringFiles, path: Path) -> npt.NDArray[np.void]:
    """Returns such an array."""
    import io

    found: npt.NDArray[np.void] = np.load(io.BytesIO(read_all(files, path)), allow_pickle=False)
    return found


@dataclass(slots=True)
class _Copier:
    """Copies what stays of a part while it is walked; a watch."""

    file: OpenFile
    task: Task
    begins: Mapping[Key, int]
    verdicts: npt.NDArray[np.int8]
    first: int
    position: int
    crc: int = 0
    records: int = 0
    seen: int = 0
    last_stored_ms: int = 0
    units: list[tuple[Sequence[Key], Spilled]] = field(default_factory=list)

    def note(
        self,
        window: memoryview,
        phy_offset: int,
        rows: Rows,
        saying_more: Sequence[int],
        queues: Sequence[Key],
    ) -> None:
        """Copies the next records."""
        facts = facts_of(window, phy_offset, rows, saying_more, queues, self.task.policies, self.task.salt)
        verdicts = self.verdicts[self.seen : self.seen + len(facts)]
        self.seen += len(facts)
        begins = np.array([self.begins.get(key, 0) for key in queues], np.int64)[facts["queue"]]
        replaced = are_replaced(facts, verdicts) & (facts["queue_offset"] >= begins)
        stays = (verdicts <= Verdict.HELD) | replaced
        facts, verdicts, replaced = facts[stays], verdicts[stays], replaced[stays]
        if not len(facts):
            return
        sizes = np.where(replaced, facts["placeholder_bytes"], facts["size_bytes"]).astype(np.int64)
        places = np.cumsum(sizes) - sizes
        out = np.zeros(int(sizes.sum()), np.uint8)
        source = np.frombuffer(window, np.uint8)
        at = facts["phy_offset"].astype(np.int64) - phy_offset
        _copy_runs(source, at[~replaced], sizes[~replaced], out, places[~replaced])
        self._replace(source, at, facts, replaced, out, places, sizes, queues)
        phy_offsets = self.first + self.position + places
        move_records(out, places, sizes, phy_offsets, facts["has_crc"], replaced)
        self.file.write_at(out, self.position)  # type: ignore[arg-type]  # numpy is a buffer
        self.crc = zlib.crc32(out, self.crc)  # type: ignore[arg-type]  # as above
        self.position += len(out)
        self.records += len(facts)
        self.last_stored_ms = max(self.last_stored_ms, int(facts["store_timestamp_ms"].max()))
        self._spill(facts, replaced, phy_offsets, sizes, queues)

    def _replace(
        self,
        source: Bytes,
        at: Ints,
        facts: Facts,
        replaced: npt.NDArray[np.bool_],
        out: Bytes,
        places: Ints,
        sizes: Ints,
        queues: Sequence[Key],
    ) -> None:
        for number in np.unique(facts["queue"][replaced]).tolist():
            mine = np.flatnonzero(replaced & (facts["queue"] == number))
            flags = facts["sys_flag"][mine].astype(np.int64)
            write_placeholders(source, at[mine], flags, queues[number][0], out, places[mine], sizes[mine])

    def _spill(
        self,
        facts: Facts,
        replaced: npt.NDArray[np.bool_],
        phy_offsets: Ints,
        sizes: Ints,
        queues: Sequence[Key],
    ) -> None:
        is_plain = np.array([topic not in self.task.batch_topics for topic, _queue in queues], np.bool_)
        mine = facts["takes_slot"] & (facts["sys_flag"] & INNER_BATCH == 0) & is_plain[facts["queue"]]
        units = np.zeros(int(mine.sum()), SPILLED)
        units["queue_offset"] = facts["queue_offset"][mine]
        units["phy_offset"] = phy_offsets[mine]
        units["size_bytes"] = sizes[mine]
        units["tags_code"] = np.where(replaced, 0, facts["tags_code"])[mine]
        units["queue"] = facts["queue"][mine]
        units["is_kept"] = ~replaced[mine]
        self.units.append((queues, units))


def write_segment(
    files: RestoringFiles, task: Task, staged: Path, plan: SegmentPlan, begins: Mapping[Key, int]
) -> WrittenSegment:
    """Writes a segment and its units, durably.

    Args:
        files: Where both stores are.
        task: The compaction.
        staged: The store that is being made.
        plan: The segment.
        begins: Queue offset at which each queue of ``task.policies`` will begin.
    """
    bare = task.without_keys()
    path = segment_path(staged, plan.first)
    size = task.geometry.segment_size_bytes
    attempt = path.with_name(f"{path.name}{ATTEMPT}-{uuid.uuid4().hex}")
    file = files.create(attempt, size)
    copied: list[tuple[Sequence[Key], Spilled]] = []
    position = crc = records = last_ms = 0
    try:
        for part in plan.parts:
            verdicts = load_array(files, verdicts_path(staged, part)).view(np.int8)
            copier = _Copier(file, bare, begins, verdicts, plan.first, position, crc)
            walk_split(files, bare, part, copier)
            position, crc, last_ms = copier.position, copier.crc, max(last_ms, copier.last_stored_ms)
            records += copier.records
            copied += copier.units
        if not plan.is_last and size - position >= FILLER_BYTES:
            file.write_at(FILLER.struct.pack(size - position, MAGIC_BLANK), position)
        file.sync()
    finally:
        file.close()
    if last_ms:  # RocketMQ's retention goes by the age of the file
        files.set_stamp(attempt, Stamp(_FILE_MODE, last_ms * 1_000_000))
    files.rename(attempt, path)
    slices, units = _by_queue(plan.first, copied)
    save_array(files, units_path(staged, plan.first), units)
    return WrittenSegment(plan.first, position, records, crc, tuple(slices))


def _copy_runs(source: Bytes, starts: Ints, sizes: Ints, target: Bytes, places: Ints) -> None:
    """Copies records; those that follow one another on both sides at once."""
    if not len(starts):
        return
    follows = (starts[1:] == starts[:-1] + sizes[:-1]) & (places[1:] == places[:-1] + sizes[:-1])
    begins = np.flatnonzero(np.append(True, ~follows))
    run_sizes = np.add.reduceat(sizes, begins)
    copy_ranges(source, starts[begins], run_sizes, target, places[begins])


def _by_queue(
    segment: int, copied: Sequence[tuple[Sequence[Key], Spilled]]
) -> tuple[list[QueueSlice], Spilled]:
    """Returns all units of a segment sorted by queue, and where those of each queue are."""
    numbers: dict[Key, int] = {}
    parts: list[Spilled] = [np.zeros(0, SPILLED)]
    for queues, units in copied:
        mapping = np.array([numbers.setdefault(key, len(numbers)) for key in queues], np.int32)
        renamed = units.copy()
        renamed["queue"] = mapping[units["queue"]] if len(units) else 0
        parts.append(renamed)
    every = np.concatenate(parts)
    every = every[np.argsort(every["queue"], kind="stable")]
    starts = np.searchsorted(every["queue"], np.arange(len(numbers) + 1))
    slices = [
        QueueSlice(segment, *key, int(starts[number]), int(starts[number + 1] - starts[number]))
        for key, number in numbers.items()
        if starts[number + 1] > starts[number]
    ]
    return slices, every
