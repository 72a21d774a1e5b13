"""The records that were in a hole of the log: found by their legible bytes, by queue units and by jumps.

A record is *legible* if everything in it is consistent except a checksum: its head names its queue and
offset. The head is believed if the queue has no other record at that offset, and the queue lacks that offset
or would assign it next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from seglog.storage.directory.log_files import LogReader
from seglog.storage.format.layout import I32
from seglog.storage.format.names import LMQ_PREFIX, can_name_directory
from seglog.storage.format.record import MIN_RECORD_BYTES, Damage, RecordRow, examine, takes_queue_offset
from seglog.storage.format.record.tombstone import LostRecord
from seglog.storage.overlay.kept_units import is_message
from seglog.storage.overlay.lost_messages import JUMP, LostMessages
from seglog.storage.overlay.lost_tail import MAX_LOST_BYTES
from seglog.storage.overlay.queue_overlay import QueueState
from seglog.storage.survey.store_survey import Survey
from seglog.storage.walk.behind_damage import Hole

NOWHERE: Final = -1
"""Place of a record that only a jump in queue offsets proves."""
_HEADS_KIND: Final = frozenset({"body-crc", "torn-properties"})
"""Damage that leaves no doubt about the head."""


def lost_records(
    found: Survey, hole: Hole, number: int, reader: LogReader | None
) -> tuple[list[LostRecord], list[LostRecord]]:
    """Returns the records with a known place in a hole, and records without one, which only jumps prove.

    Args:
        found: The survey.
        hole: One of its holes, or the part of one that is in one segment.
        number: Index of the hole in the survey.
        reader: Reads legible records, and includes records of jumps that may have been in other holes; None
            to use only units and sure jumps.
    """
    claims: dict[tuple[int, int], list[LostRecord]] = {}
    for claim in _claims(found, hole):
        claims.setdefault((claim.phy_offset, claim.size_bytes), []).append(claim)
    placed = [_joined(claims[place]) for place in sorted(claims)]
    if reader is not None:
        placed = _with_legible(found, hole, placed, reader)
    told = {(one.topic, one.queue_id, one.queue_offset) for one in placed}
    unplaced = [
        LostRecord(lost.topic, lost.queue_id, offset, NOWHERE, 0)
        for lost in found.lost_in_holes[number]
        if lost.evidence == JUMP and (lost.is_sure or reader is not None)
        for offset in _still_missing(found, lost)
        if (lost.topic, lost.queue_id, offset) not in told
    ]
    return placed, unplaced


def _claims(found: Survey, hole: Hole) -> Iterator[LostRecord]:
    """Yields the records in a hole that units of the queues lead to."""
    for (topic, queue_id), state in found.queues.items():
        phy = state.units["phy_offset"]
        at = np.flatnonzero(is_message(state.units) & (phy >= hole.phy_offset) & (phy < hole.end))
        for index in at.tolist():
            place, size = int(phy[index]), int(state.units["size_bytes"][index])
            yield LostRecord(topic, queue_id, state.first_slot + index, place, size)
    for (topic, queue_id), batch in found.batch_queues.items():
        phy = batch.units["phy_offset"]
        inside = batch.units[(phy >= hole.phy_offset) & (phy < hole.end)]
        for place, size, _code, _time, base, count, *_ in inside.tolist():
            yield LostRecord(topic, queue_id, base, place, size, count)


def _joined(claims: list[LostRecord]) -> LostRecord:
    """Returns the one record that units of several queues lead to: its own queue, and LMQ queues."""
    own, *others = sorted(claims, key=lambda one: one.topic.startswith(LMQ_PREFIX))
    further = tuple((one.topic, one.queue_offset) for one in others if one.topic.startswith(LMQ_PREFIX))
    return replace(own, further=further)


def _still_missing(found: Survey, lost: LostMessages) -> Iterator[int]:
    """Yields the offsets of a jump that still have no record."""
    state = found.queues.get((lost.topic, lost.queue_id))
    for offset in lost.offsets if state is not None else ():
        if state is not None and not _has_message(state, offset):
            yield offset


def _has_message(state: QueueState, queue_offset: int) -> bool:
    index = queue_offset - state.first_slot
    return 0 <= index < len(state.units) and bool(is_message(state.units[index : index + 1])[0])


def _with_legible(found: Survey, hole: Hole, placed: list[LostRecord], reader: LogReader) -> list[LostRecord]:
    """Returns the records with the bytes of legible ones, and adds legible records that no unit leads to."""
    known = {record.phy_offset: record for record in placed}
    starts = sorted({hole.phy_offset, *known})
    joined: dict[int, LostRecord] = dict(known)
    end = hole.phy_offset
    for start in starts:
        at = max(start, end)
        while (legible := read_legible(reader, at, hole.end)) is not None:
            row, data, kind = legible
            record = _identified(found, known.get(at), row, data, at, kind)
            if record is not None:
                joined[at] = record
            at += row.size_bytes
        end = max(end, at)
    kept: list[LostRecord] = []
    for record in sorted(joined.values(), key=lambda one: (one.phy_offset, not one.legible)):
        if record.phy_offset not in known and kept and record.phy_offset < kept[-1].end:
            continue
        kept.append(record)
    return kept


def read_legible(reader: LogReader, at: int, end: int) -> tuple[RecordRow, bytes, str] | None:
    """Returns the record at a place of a hole, and the kind of its damage, if only a checksum is wrong.

    Args:
        reader: The log.
        at: Physical offset at which the record would start.
        end: End of the hole in that segment.
    """
    head = reader.read(at, I32.size) if at < end else memoryview(b"")
    if len(head) < I32.size:
        return None
    (size,) = I32.unpack(head)
    if not MIN_RECORD_BYTES <= size <= min(end - at, MAX_LOST_BYTES):
        return None
    data = reader.read(at, size)
    row = examine(data, 0, at, verify=False)
    if isinstance(row, Damage):
        return None
    damage = examine(data, 0, at)
    return row, bytes(data), damage.kind if isinstance(damage, Damage) else ""


def _identified(
    found: Survey, known: LostRecord | None, row: RecordRow, data: bytes, at: int, kind: str
) -> LostRecord | None:
    """Returns a legible record if the queue and offset in its head are believable, otherwise None."""
    topic = row.topic.decode("utf-8", "surrogateescape")
    if not takes_queue_offset(row.sys_flag) or not can_name_directory(topic):
        return None
    if known is not None:
        same = (known.topic, known.queue_id, known.queue_offset, known.size_bytes)
        is_same = same == (topic, row.queue_id, row.queue_offset, row.size_bytes)
        return replace(known, legible=data) if is_same else None
    if (topic, row.queue_id) in found.batch_queues or row.says_more:
        return None
    state = found.queues.get((topic, row.queue_id))
    if state is None or not len(state.units):
        is_next = kind in _HEADS_KIND and (state is None or row.queue_offset == state.max_offset)
    else:
        is_next = state.first_slot <= row.queue_offset <= state.max_offset
        is_next = is_next and not _has_message(state, row.queue_offset)
    if not is_next:
        return None
    return LostRecord(topic, row.queue_id, row.queue_offset, at, row.size_bytes, legible=data)
