"""Fills the holes of the log's last file with tombstones, because RocketMQ would cut the log at them.

After a clean stop RocketMQ walks the last file and takes the first bad record for the end of the log: all
intact messages behind it would be lost, and their offsets assigned again. RocketMQ does not walk earlier
files; their holes stay as they are until a repair fills them too. The attic has the overwritten bytes.

Queue units name most of the records that were in a hole, with their places. A record that only a jump in
queue offsets proves gets a small tombstone between the others; fillers take the remaining space.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from seglog.storage.directory.log_files import LogReader
from seglog.storage.files.files import Files
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.format.queue.consume_queue import CQ_UNIT
from seglog.storage.format.record.record import FILLER, FILLER_BYTES, MAGIC_BLANK
from seglog.storage.format.record.tombstone import (
    LostRecord,
    encode_fillers,
    encode_tombstone,
    full_tombstone_bytes,
    min_filler_bytes,
    min_tombstone_bytes,
)
from seglog.storage.kernels.walk import Rows, walk
from seglog.storage.overlay import BatchQueueState, QueueState, lost_in_holes
from seglog.storage.recovery.lost_records import lost_records
from seglog.storage.survey.store_survey import Survey
from seglog.storage.walk.behind_damage import Hole
from seglog.storage.walk.growable_rows import place_of, spliced

_BATCH_UNIT: Final = ("phy_offset", "size_bytes", "tags_code", "store_timestamp_ms")


def last_file_holes(found: Survey) -> list[Hole]:
    """Returns the holes in the last file of the log."""
    end = found.max_phy_offset
    firsts = [file.first_offset for file in found.log_files if file.first_offset < end]
    last = max(firsts, default=0)
    return [hole for hole in found.holes if hole.phy_offset >= last]


def split_holes(found: Survey) -> None:
    """Divides the holes of a survey at segment ends, so that each hole is in one file."""
    segment = found.geometry.segment_size_bytes
    parts: list[Hole] = []
    for hole in found.holes:
        at = hole.phy_offset
        while at < hole.end:
            end = min(hole.end, at - at % segment + segment)
            parts.append(replace(hole, phy_offset=at, size_bytes=end - at))
            at = end
    found.holes[:] = parts
    found.lost_in_holes = lost_in_holes(parts, found.queues, found.batch_queues)


def fill_hole(found: Survey, files: Files, hole: Hole, *, thorough: bool = False) -> None:
    """Writes tombstones and fillers into a hole, and adds them to the survey.

    Args:
        found: The survey.
        files: The file layer of the store.
        hole: The hole, which is in one segment; its bytes are in the attic. A hole too small for a record
            stays. If it reaches the end of the segment, a BLANK fills the space behind the last record.
        thorough: Whether legible records keep their heads, and offsets that may have been in another hole as
            well get a place in this one.

    Raises:
        FullError: No space; the next recovery continues.
    """
    number = found.holes.index(hole)
    before = place_of(found.rows, hole.phy_offset)
    if before:
        store_ms = max(1, int(found.rows["store_timestamp_ms"][before - 1]))
    elif found.point is not None:
        store_ms = max(1, found.point.last_store_timestamp_ms)
    else:
        store_ms = found.tombstone_timestamp_ms
    segment = found.geometry.segment_size_bytes
    with closing(LogReader(files, found.root, segment)) as reader:
        placed, unplaced = lost_records(found, hole, number, reader if thorough else None)
    position = hole.phy_offset % segment
    room = _Room(hole, hole.end % segment == 0, store_ms, record_crc=found.record_crc)
    records = _fitted(placed, unplaced, room)
    if not records and hole.size_bytes < room.least_rest:
        return
    path = found.root / COMMIT_LOG / segment_file_name(hole.phy_offset - position)
    if not files.exists(path):
        files.create(path, segment).close()
        files.sync_dir(path.parent)
    segment_end = hole.phy_offset - position + segment
    parts: list[Rows] = []
    with closing(files.open(path, writable=True)) as handle:
        for at, data in _pieces(records, room):
            handle.reserve(at % segment, len(data))
            handle.write_at(data, at % segment)
            parts.append(walk(memoryview(data), at, segment_end, found.scan.queues, verify=False).rows)
        handle.sync()
    _forget(found, hole)
    _take_up(found, np.concatenate(parts), records)
    del found.holes[number], found.lost_in_holes[number]


@dataclass(frozen=True, slots=True)
class _Room:
    """The space to fill.

    Attributes:
        ends_segment: Whether a BLANK, and not a filler, takes the space at its end.
    """

    hole: Hole
    ends_segment: bool
    store_ms: int
    record_crc: bool

    @property
    def least_rest(self) -> int:
        """The smallest stretch at its end that can be filled."""
        return FILLER_BYTES if self.ends_segment else min_filler_bytes(record_crc=self.record_crc)

    @property
    def records_end(self) -> int:
        """The last place at which its last record may end."""
        return self.hole.end - FILLER_BYTES if self.ends_segment else self.hole.end


def _fitted(placed: list[LostRecord], unplaced: list[LostRecord], room: _Room) -> list[LostRecord]:
    """Returns as many records as fit, in log order, without overlap and without gaps too small for a filler.

    Within a queue, places ascend with queue offsets; a record that would break that order is left out.
    """
    hole, record_crc = room.hole, room.record_crc
    least = min_filler_bytes(record_crc=record_crc)
    waiting = deque(unplaced)
    fitted: list[LostRecord] = []
    newest: dict[tuple[str, int], int] = {}
    at = hole.phy_offset

    def add(record: LostRecord) -> None:
        nonlocal at
        fitted.append(record)
        newest[record.topic, record.queue_id] = record.queue_offset
        at = record.end

    def place_waiting(room_end: int, least_rest: int) -> None:
        """Places waiting records one by one, while each fits and leaves no rest or space for a filler."""
        spent = sum(full_tombstone_bytes(one, room.store_ms, record_crc=record_crc) for one in waiting)
        is_roomy = at + spent + least <= room_end
        while waiting:
            one = waiting[0]
            if is_roomy:
                size = full_tombstone_bytes(one, room.store_ms, record_crc=record_crc)
            else:
                size = min_tombstone_bytes(
                    one.topic.encode("utf-8", "surrogateescape"), record_crc=record_crc
                )
            rest = room_end - at - size
            if rest < 0 or 0 < rest < least_rest:
                return
            waiting.popleft()
            if newest.get((one.topic, one.queue_id), -1) < one.queue_offset:
                add(replace(one, phy_offset=at, size_bytes=size))

    for record in placed:
        if record.phy_offset < at or record.end > room.records_end:
            if record.batch_size == 1:
                waiting.append(replace(record, legible=b""))
            continue
        place_waiting(record.phy_offset, least)
        gap = record.phy_offset - at if record.phy_offset - at < least else 0
        add(_grown(record, before=gap))
    # A BLANK can take a rest of any size; records_end keeps its minimum free.
    place_waiting(room.records_end, 0 if room.ends_segment else least)
    if fitted and 0 < hole.end - at < room.least_rest:
        fitted[-1] = _grown(fitted[-1], behind=hole.end - at)
    return fitted


def _grown(record: LostRecord, before: int = 0, behind: int = 0) -> LostRecord:
    if not before + behind:
        return record
    start, size = record.phy_offset - before, record.size_bytes + before + behind
    return replace(record, phy_offset=start, size_bytes=size, legible=b"")


def _pieces(records: list[LostRecord], room: _Room) -> Iterator[tuple[int, bytes]]:
    """Yields the records to write, with their places, in log order."""
    hole, store_ms, record_crc = room.hole, room.store_ms, room.record_crc

    def fill(start: int, end: int) -> Iterator[tuple[int, bytes]]:
        for filler in encode_fillers(start, end - start, store_ms, record_crc=record_crc):
            yield start, filler
            start += len(filler)

    at = hole.phy_offset
    for record in records:
        yield from fill(at, record.phy_offset)
        yield record.phy_offset, encode_tombstone(record, store_ms, record_crc=record_crc)
        at = record.end
    if not room.ends_segment:
        yield from fill(at, hole.end)
        return
    first_bytes = min_filler_bytes(record_crc=record_crc)
    if not records and hole.size_bytes >= first_bytes + FILLER_BYTES:
        # A filler first: RocketMQ chooses the file where its walk begins by the store time of the first
        # record, and a BLANK has none.
        yield from fill(at, at + first_bytes)
        at += first_bytes
    yield at, FILLER.struct.pack(hole.end - at, MAGIC_BLANK)


def _forget(found: Survey, hole: Hole) -> None:
    """Clears the units that lead into a hole; _take_up sets them to the new records there."""
    states: list[QueueState | BatchQueueState] = [*found.queues.values(), *found.batch_queues.values()]
    for state in states:
        phy = state.units["phy_offset"]
        inside = (phy >= hole.phy_offset) & (phy < hole.end) & (state.units["size_bytes"] > 0)
        if inside.any():
            state.units["size_bytes"][inside] = 0
            state.agrees = False


def _take_up(found: Survey, rows: Rows, records: list[LostRecord]) -> None:
    """Adds tombstones to the records of the survey, and their units to its queues."""
    if not len(rows):
        return  # only a BLANK was written, which is not a record
    found.rows = spliced(found.rows, place_of(found.rows, int(rows["phy_offset"][0])), rows)
    codes = dict(zip(rows["phy_offset"].tolist(), rows["tags_code"].tolist(), strict=True))
    store_ms = int(rows["store_timestamp_ms"][0])
    for record in records:
        unit = (record.phy_offset, record.size_bytes, codes[record.phy_offset])
        key = (record.topic, record.queue_id)
        if key in found.batch_queues:
            _put_batch_unit(found.batch_queues[key], record, (*unit, store_ms))
            continue
        _put_unit(found, key, record.queue_offset, unit)
        for name, offset in record.further:
            _put_unit(found, (name, 0), offset, unit)


def _put_unit(found: Survey, key: tuple[str, int], queue_offset: int, unit: tuple[int, int, int]) -> None:
    state = found.queues.setdefault(key, QueueState.empty(*key))
    if not len(state.units):
        state.first_slot = state.min_offset = queue_offset
    if queue_offset == state.max_offset:
        state.units = np.concatenate([state.units, np.zeros(1, CQ_UNIT.dtype)])
    state.units[queue_offset - state.first_slot] = unit
    state.agrees = False


def _put_batch_unit(state: BatchQueueState, record: LostRecord, unit: tuple[int, int, int, int]) -> None:
    at = np.flatnonzero(state.units["base_queue_offset"] == record.queue_offset)
    for name, value in zip(_BATCH_UNIT, unit, strict=True):
        state.units[name][at] = value
    state.agrees = False
