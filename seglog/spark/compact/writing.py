"""Writes one segment of the new log, from the parts of the old log that belong to it.

A segment gets its name when it is complete; a task that runs twice writes the same bytes twice. Units and
keys are written beside it, from a walk over the memory that is written, so a damaged record is found before
the task ends. Then the segment is read back from the disk, and each byte is compared with that memory
(:mod:`seglog.spark.compact.written_bytes`). Rows and keys are kept until the audit of the new store, which
uses them as the result of a walk (:mod:`seglog.storage.splits.known_records`) and does not read the log
again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from seglog.spark.compact.placeholders import MARK
from seglog.spark.compact.policy import Verdict
from seglog.spark.compact.summary import are_replaced
from seglog.spark.compact.swap import NOTED
from seglog.spark.compact.task import Task, read_facts
from seglog.spark.compact.written_bytes import WrittenBytes
from seglog.spark.making.derived import Derived, SegmentFollower
from seglog.spark.making.index_files import spill_keys
from seglog.spark.making.spills import ATTEMPT, Key
from seglog.storage.directory import LogReader
from seglog.storage.files import DirectWriter, RestoringFiles, Stamp, read_all
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.format.record import FILLER, FILLER_BYTES, MAGIC_BLANK
from seglog.storage.kernels.gather import Ints
from seglog.storage.kernels.record_facts import Facts
from seglog.storage.kernels.record_moves import move_records, native_moves
from seglog.storage.splits import RecordNotes

VERDICTS: Final = ".verdicts"
_FILE_MODE: Final = 0o644
_STEP_BYTES: Final = 1 << 20
"""Bytes of the old log copied at a time: the copy is still in the processor's caches when it is walked."""


class SegmentPlan(NamedTuple):
    """A segment of the new log.

    Attributes:
        first: Physical offset of its first byte.
        parts: Numbers of the parts in it, in order.
        used_bytes: Bytes of these parts.
        is_last: Whether the log continues after them in this segment.
    """

    first: int
    parts: tuple[int, ...]
    used_bytes: int
    is_last: bool


@dataclass(frozen=True, slots=True)
class WrittenSegment:
    """The result of writing a segment.

    Attributes:
        first: Physical offset of its first byte.
        used_bytes: Number of bytes that hold records.
        crc: CRC-32 of those bytes.
        derived: Data derived from its records.
        keys: Number of keys for the index.
    """

    first: int
    used_bytes: int
    crc: int
    derived: Derived
    keys: int


def segment_path(staged: Path, first: int) -> Path:
    """Returns the path of a segment."""
    return staged / COMMIT_LOG / segment_file_name(first)


def noted_in(staged: Path) -> Path:
    """Returns the folder for notes on the new log's records: beside the store, which is audited."""
    return staged.with_name(NOTED)


def verdicts_path(staged: Path, part: int) -> Path:
    """Returns the path of the verdicts on a part, a byte for each record."""
    return staged / VERDICTS / str(part)


def write_segment(
    files: RestoringFiles, task: Task, staged: Path, plan: SegmentPlan, begins: Mapping[Key, int]
) -> WrittenSegment:
    """Writes a segment, its units and its keys, durably.

    Args:
        files: Access to both stores.
        task: The compaction.
        staged: The new store.
        plan: The segment.
        begins: Queue offset at which each queue of ``task.policies`` will begin.

    Raises:
        CorruptError: The disk has other bytes than were verified.
        FullError: There is no space.
    """
    path = segment_path(staged, plan.first)
    size = task.geometry.segment_size_bytes
    mark = f"{ATTEMPT}-{uuid.uuid4().hex}"
    attempt = path.with_name(f"{path.name}{mark}")
    notes = RecordNotes(files, noted_in(staged), mark, plan.first, tags=True)
    follower = SegmentFollower(task.batch_topics, plan.first, notes=notes)
    written = WrittenBytes()
    with closing(files.create(attempt, size)) as file, ThreadPoolExecutor(1, "seglog-reads-back") as beside:
        with DirectWriter(file) as writer:
            for part in plan.parts:
                _write_part(files, task, staged, part, begins, follower, writer, written)
            writer.finish()
        position = follower.end - plan.first
        is_filled = not plan.is_last and size - position >= FILLER_BYTES
        ending = FILLER.struct.pack(size - position, MAGIC_BLANK) if is_filled else b""
        file.write_at(ending, position)
        file.sync()
        checked = beside.submit(written.check, file, f"{COMMIT_LOG}/{path.name}", ending)
        derived = follower.save(files, staged)
        checked.result()
    if derived.last_store_ms:  # RocketMQ's retention uses the modification time of the file
        files.set_stamp(attempt, Stamp(_FILE_MODE, derived.last_store_ms * 1_000_000))
    files.rename(attempt, path)
    keys = spill_keys(files, staged, plan.first, follower, size)
    return WrittenSegment(plan.first, position, written.crc, derived, keys)


def _write_part(
    files: RestoringFiles,
    task: Task,
    staged: Path,
    part: int,
    begins: Mapping[Key, int],
    follower: SegmentFollower,
    writer: DirectWriter,
    written: WrittenBytes,
) -> None:
    """Copies the kept records of a part, adapted to their new places, into the writer's memory."""
    facts, names = read_facts(files, task, part, staged)
    verdicts = np.frombuffer(read_all(files, verdicts_path(staged, part)), np.int8)
    begin_of = np.array([begins.get(key, 0) for key in names], np.int64)
    replaced = are_replaced(facts, verdicts) & (facts["queue_offset"] >= begin_of[facts["queue"]])
    stays = np.flatnonzero((verdicts <= Verdict.HELD) | replaced)
    facts, replaced = facts.take(stays), replaced[stays]
    sizes = np.where(replaced, facts["placeholder_bytes"], facts["size_bytes"]).astype(np.int64)
    places = facts["phy_offset"].astype(np.int64)
    with closing(LogReader(files, task.root, task.geometry.segment_size_bytes)) as reader:
        for rows in _steps(places):
            source, source_phy_offset = _source(reader, task, places[rows], facts[rows])
            starts = places[rows] - source_phy_offset
            target = writer.room(int(sizes[rows].sum()))
            records = move_records(
                source, source_phy_offset, starts, sizes[rows], replaced[rows], MARK, follower.end, target
            )
            reader.let_go(int(places[rows][0]), int(places[rows][-1]))
            written.note(records.data.cast("B"))
            follower.note(records)


def _steps(places: Ints) -> Iterator[slice]:
    """Yields the records that are copied at a time."""
    begin = 0
    while begin < len(places):
        end = int(np.searchsorted(places, int(places[begin]) + _STEP_BYTES))
        yield slice(begin, end)
        begin = end


def _source(reader: LogReader, task: Task, places: Ints, facts: Facts) -> tuple[memoryview, int]:
    """Returns bytes of the old log that hold some records, and their start."""
    first = int(places[0])
    memory = reader.map(first) if native_moves is not None else None
    if memory is not None:
        return memory, first - first % task.geometry.segment_size_bytes
    return reader.read(first, int(places[-1]) + int(facts["size_bytes"][-1]) - first), first
