"""Fills the holes of the log's last file with tombstones, because RocketMQ would cut the log at them.

After a clean stop RocketMQ walks the last file, and takes the first bad record for the log's end: all intact
messages behind it would be gone, and their offsets given again. Holes of earlier files it does not meet;
those stay as they are, for whoever wants to repair them. What is written over lies in the attic.

Units name most of the records that lay in a hole, with their places. Of those that only a jump in queue
offsets tells of, each gets the smallest tombstone that fits between; fillers take the rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from seglog.storage.batch_overlay import BatchQueueState
from seglog.storage.files import Files
from seglog.storage.format.names import COMMIT_LOG, LMQ_PREFIX, segment_file_name
from seglog.storage.format.tombstone import (
    LostRecord,
    encode_fillers,
    encode_tombstone,
    min_filler_bytes,
    min_tombstone_bytes,
)
from seglog.storage.kernels.walk import Rows, walk
from seglog.storage.log_scan import Hole
from seglog.storage.lost_messages import JUMP
from seglog.storage.queue_overlay import QueueState, is_message
from seglog.storage.survey import Survey

_NOWHERE: Final = -1
_BATCH_UNIT: Final = ("phy_offset", "size_bytes", "tags_code", "store_timestamp_ms")


def last_file_holes(found: Survey) -> list[Hole]:
    """Returns the holes that lie in the last file of the log."""
    end = found.max_phy_offset
    firsts = [file.first_offset for file in found.log_files if file.first_offset < end]
    last = max(firsts, default=0)
    return [hole for hole in found.holes if hole.phy_offset >= last]


def fill_hole(found: Survey, files: Files, hole: Hole) -> None:
    """Writes tombstones and fillers into a hole, and takes them up into the survey.

    Args:
        found: The survey, of which the hole lies in the last file.
        files: Where the store is.
        hole: The hole; its bytes are in the attic. One too small for a record stays.

    Raises:
        FullError: No space; the next recovery goes on.
    """
    number = found.holes.index(hole)
    before = found.rows[found.rows["phy_offset"] < hole.phy_offset]
    if len(before):
        store_ms = max(1, int(before["store_timestamp_ms"][-1]))
    elif found.point is not None:
        store_ms = max(1, found.point.last_store_timestamp_ms)
    else:
        store_ms = found.tombstone_timestamp_ms
    placed, unplaced = _lost_records(found, hole, number)
    records = _fitted(placed, unplaced, hole, record_crc=found.record_crc)
    if not records and hole.size_bytes < min_filler_bytes(record_crc=found.record_crc):
        return
    data = b"".join(_pieces(records, hole, store_ms, record_crc=found.record_crc))
    segment = found.geometry.segment_size_bytes
    position = hole.phy_offset % segment
    path = found.root / COMMIT_LOG / segment_file_name(hole.phy_offset - position)
    handle = files.open(path, writable=True)
    try:
        handle.reserve(position, len(data))
        handle.write_at(data, position)
        handle.sync()
    finally:
        handle.close()
    segment_end = hole.phy_offset - position + segment
    rows = walk(memoryview(data), hole.phy_offset, segment_end, found.scan.queues, verify=False).rows
    _forget(found, hole)
    _take_up(found, rows, records)
    del found.holes[number], found.lost_in_holes[number]


def _lost_records(found: Survey, hole: Hole, number: int) -> tuple[list[LostRecord], list[LostRecord]]:
    """Returns the records that units place in a hole, and those that jumps tell of, without a place."""
    claims: dict[tuple[int, int], list[LostRecord]] = {}
    for (topic, queue_id), state in found.queues.items():
        phy = state.units["phy_offset"]
        at = np.flatnonzero(is_message(state.units) & (phy >= hole.phy_offset) & (phy < hole.end))
        for index in at.tolist():
            place = (int(phy[index]), int(state.units["size_bytes"][index]))
            claims.setdefault(place, []).append(LostRecord(topic, queue_id, state.first_slot + index, *place))
    for (topic, queue_id), batch in found.batch_queues.items():
        phy = batch.units["phy_offset"]
        for place_at, size, _code, _time, base, count, *_ in batch.units[
            (phy >= hole.phy_offset) & (phy < hole.end)
        ].tolist():
            record = LostRecord(topic, queue_id, base, place_at, size, count)
            claims.setdefault((place_at, size), []).append(record)
    unplaced = [
        LostRecord(lost.topic, lost.queue_id, offset, _NOWHERE, 0)
        for lost in found.lost_in_holes[number]
        if lost.evidence == JUMP and lost.is_sure and (lost.topic, lost.queue_id) in found.queues
        for offset in lost.offsets
    ]
    return [_joined(claims[place]) for place in sorted(claims)], unplaced


def _joined(claims: list[LostRecord]) -> LostRecord:
    """Returns the one record that several queues know: one of them is its own, the others are LMQ."""
    own, *others = sorted(claims, key=lambda one: one.topic.startswith(LMQ_PREFIX))
    further = tuple((one.topic, one.queue_offset) for one in others if one.topic.startswith(LMQ_PREFIX))
    return replace(own, further=further)


def _fitted(
    placed: list[LostRecord], unplaced: list[LostRecord], hole: Hole, *, record_crc: bool
) -> list[LostRecord]:
    """Returns as many records as fit, in log order, without overlap and without gaps too small for a filler.

    In a queue places grow with offsets; what would break that is left out.
    """
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

    def place_waiting(room_end: int) -> None:
        """Places them behind each other, as long as they fit and a filler, or nothing, behind them."""
        while waiting:
            one = waiting[0]
            size = min_tombstone_bytes(one.topic.encode("utf-8", "surrogateescape"), record_crc=record_crc)
            rest = room_end - at - size
            if rest < 0 or 0 < rest < least:
                return
            waiting.popleft()
            if newest.get((one.topic, one.queue_id), -1) < one.queue_offset:
                add(replace(one, phy_offset=at, size_bytes=size))

    for record in placed:
        if record.phy_offset < at or record.end > hole.end:
            if record.batch_size == 1:
                waiting.append(record)
            continue
        place_waiting(record.phy_offset)
        gap = record.phy_offset - at if record.phy_offset - at < least else 0
        add(_grown(record, before=gap))
    place_waiting(hole.end)
    if fitted and 0 < hole.end - at < least:
        fitted[-1] = _grown(fitted[-1], behind=hole.end - at)
    return fitted


def _grown(record: LostRecord, before: int = 0, behind: int = 0) -> LostRecord:
    start, size = record.phy_offset - before, record.size_bytes + before + behind
    return replace(record, phy_offset=start, size_bytes=size)


def _pieces(records: list[LostRecord], hole: Hole, store_ms: int, *, record_crc: bool) -> Iterator[bytes]:
    at = hole.phy_offset
    for record in records:
        yield from encode_fillers(at, record.phy_offset - at, store_ms, record_crc=record_crc)
        yield encode_tombstone(record, store_ms, record_crc=record_crc)
        at = record.end
    yield from encode_fillers(at, hole.end - at, store_ms, record_crc=record_crc)


def _forget(found: Survey, hole: Hole) -> None:
    """Takes back where units lead in a hole: what lies there now is given to them anew."""
    states: list[QueueState | BatchQueueState] = [*found.queues.values(), *found.batch_queues.values()]
    for state in states:
        phy = state.units["phy_offset"]
        inside = (phy >= hole.phy_offset) & (phy < hole.end) & (state.units["size_bytes"] > 0)
        if inside.any():
            state.units["size_bytes"][inside] = 0
            state.agrees = False


def _take_up(found: Survey, rows: Rows, records: list[LostRecord]) -> None:
    """Puts tombstones where the survey has records, and their units where the queues have them."""
    joined = np.concatenate([found.rows, rows])
    found.rows = joined[np.argsort(joined["phy_offset"], kind="stable")]
    codes = dict(zip(rows["phy_offset"].tolist(), rows["tags_code"].tolist(), strict=True))
    store_ms = int(rows["store_timestamp_ms"][0])
    for record in records:
        unit = (record.phy_offset, record.size_bytes, codes[record.phy_offset])
        key = (record.topic, record.queue_id)
        if key in found.batch_queues:
            _put_batch_unit(found.batch_queues[key], record, (*unit, store_ms))
            continue
        _put_unit(found.queues[key], record.queue_offset, unit)
        for name, offset in record.further:
            _put_unit(found.queues[name, 0], offset, unit)


def _put_unit(state: QueueState, queue_offset: int, unit: tuple[int, int, int]) -> None:
    state.units[queue_offset - state.first_slot] = unit
    state.agrees = False


def _put_batch_unit(state: BatchQueueState, record: LostRecord, unit: tuple[int, int, int, int]) -> None:
    at = np.flatnonzero(state.units["base_queue_offset"] == record.queue_offset)
    for name, value in zip(_BATCH_UNIT, unit, strict=True):
        state.units[name][at] = value
    state.agrees = False
