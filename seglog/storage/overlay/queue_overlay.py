"""The right content of each consume queue, derived from the log and compared with the queue's files.

The log decides. A unit of a file counts only where the log has no better evidence: for slots whose record was
before the log's first file (expired) or in a hole of the log (so that an offset once assigned is never
assigned again), for ``%LMQ%`` queues, whose units lead to records of other queues, and for tags codes that a
broker set by its own rules (delivery times of other delay levels, addresses of ConsumeQueueExt).

If two records have the same queue offset, the record that the file leads to already keeps it; otherwise the
later record wins. A queue offset that is far from those of its neighbours is damaged. A queue offset that
falls back to 0 starts the queue over (its topic was deleted and created again).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from seglog.storage.directory.queue_files import queue_directory, unit_finding
from seglog.storage.findings.findings import Finding
from seglog.storage.format.names import SCHEDULE_TOPIC
from seglog.storage.format.queue.consume_queue import CQ_UNIT, CQ_UNIT_BYTES, PRE_BLANK_BYTES, Units, in_use
from seglog.storage.format.queue.consume_queue_ext import MAX_EXT_ADDRESS
from seglog.storage.format.record.record import MIN_RECORD_BYTES
from seglog.storage.format.record.tombstone import LOST_TAGS_CODE
from seglog.storage.kernels.queue_rows import stand_in, units_of
from seglog.storage.kernels.walk import Rows
from seglog.storage.overlay.kept_units import (
    LogFacts,
    are_between,
    are_expired,
    are_passed_over,
    is_message,
    kept_units,
)
from seglog.storage.overlay.queue_gaps import QueueGap, find_gaps, gap_finding
from seglog.storage.segments.scratch import Room
from seglog.storage.walk.growable_rows import PART_ROWS, parts
from seglog.storage.walk.queue_offsets import corrected_offsets

_MIN_I64: Final = -(1 << 63)
_MAX_I64: Final = (1 << 63) - 1
_PUT_ROWS: Final = 1 << 16
_MOST_BEHIND_BYTES: Final = 256 << 20
"""Bytes of log that may lack units after a kill: RocketMQ writes units up to some 14 s after records."""
_LOOKED_AT: Final = 4096
"""Units that are examined in one step, from the end."""

_Mask = npt.NDArray[np.bool_]
_T = TypeVar("_T", bound=np.generic)


@dataclass(slots=True)
class QueueState:
    """The right content of a queue.

    Attributes:
        first_slot: Queue offset of ``units[0]``.
        units: ``(n,) CQ_UNIT.dtype``; a slot without a message is zero, or as in its file.
        min_offset: Queue offset of the first message that the log holds; equals the maximum if none.
        findings: The differences of the files.
        agrees: Whether the files hold exactly these units, and nothing behind them.
        mended: The right queue offset by physical offset, for records whose own field has a wrong one.
        held_from: Queue offset of the first unit of the files, if the units before ``first_slot`` were
            checked by a recovery point and are not in ``units``.
        behind: ``(n,) CQ_UNIT.dtype``, units of the files behind ``units``, up to the last unit in use.
        behind_slot: Queue offset of ``behind[0]``.
        gaps: Messages that only units of the files prove; the log has other records at their places.
    """

    topic: str
    queue_id: int
    first_slot: int
    units: Units
    min_offset: int
    findings: list[Finding]
    agrees: bool
    mended: dict[int, int] = field(default_factory=dict)
    held_from: int | None = None
    behind: Units = field(default_factory=lambda: np.empty(0, CQ_UNIT.dtype))
    behind_slot: int = 0
    gaps: list[QueueGap] = field(default_factory=list)

    @classmethod
    def empty(cls, topic: str, queue_id: int) -> QueueState:
        """Returns a queue that never had a message."""
        return cls(topic, queue_id, 0, np.empty(0, CQ_UNIT.dtype), 0, [], agrees=True)

    @property
    def file_slot(self) -> int:
        """Queue offset of the first unit that the files hold."""
        return self.first_slot if self.held_from is None else self.held_from

    @property
    def max_offset(self) -> int:
        """The queue offset that the next message gets."""
        return self.first_slot + len(self.units)

    @property
    def max_phy_offset(self) -> int:
        """End of the record of the last unit, as a physical offset; -1 before the first message."""
        end, step = len(self.units), _LOOKED_AT
        if end:  # the usual case: the last unit leads to a message
            phy_offset, size_bytes, _tags_code = self.units[end - 1].item()
            if phy_offset >= 0 and 0 < size_bytes != PRE_BLANK_BYTES:
                return int(phy_offset + size_bytes)
        while end:
            units = self.units[max(0, end - step) : end]
            at = np.flatnonzero(is_message(units))
            if len(at):
                phy_offset, size_bytes, _tags_code = units[at[-1]].item()
                return int(phy_offset + size_bytes)
            end -= len(units)
        return -1


def overlay_queue(
    topic: str,
    queue_id: int,
    rows: Rows,
    first_slot: int,
    stored: Units,
    facts: LogFacts,
    *,
    has_files: bool,
    room: Room | None = None,
) -> QueueState:
    """Returns the right content of a queue.

    Args:
        topic: Its topic.
        queue_id: Its number.
        rows: ``(n,) ROW``, the log's records of this queue that have a place in it, in log order.
        first_slot: Queue offset of ``stored[0]``.
        stored: Units of the queue's files.
        facts: The log.
        has_files: Whether the queue has any file.
        room: Allocates the units; None for memory.
    """
    # The usual case first, without a copy of the units.
    as_stored = _as_stored(topic, queue_id, rows, first_slot, stored, facts) if has_files else None
    if as_stored is not None:
        return as_stored
    own = rows
    # Flipped bits first: an offset that is 0 by damage would look like a queue that started over.
    rows, damaged = corrected_offsets(rows, first_slot, stored)
    rows = _last_life(rows, first_slot, stored)
    rows, wild, kept = _counted(topic, rows, first_slot, stored, facts)
    slots = rows["queue_offset"]
    edges = [int(slots.min()), int(slots.max()) + 1] if len(slots) else []
    if kept.any():
        edges += [first_slot + int(kept.argmax()), first_slot + len(kept) - int(kept[::-1].argmax())]
    if not edges:
        base = first_slot if len(stored) else 0
        state = QueueState(topic, queue_id, base, stored[:0], base, [], agrees=not len(stored))
        return _with_behind(state, first_slot, stored)
    log = (facts.min_phy_offset, facts.end_phy_offset)
    gaps = find_gaps(topic, rows, own, first_slot, stored, log, facts.holes)
    known_from, top = min([*edges, *(gap.offsets.start for gap in gaps)]), max(edges)
    per_file = facts.file_size_bytes // CQ_UNIT_BYTES
    base = known_from
    if not are_passed_over(stored[: max(0, known_from - first_slot)], facts.min_phy_offset).all():
        base = max(first_slot, known_from // per_file * per_file)  # its file is written from its first unit
    units = _zeros(top - base, room)
    known = _window(stored, first_slot, base, top)
    kept_window = _window(kept, first_slot, base, top)
    # Three layers, each over the one before: units of the files that count, all records in log order (the
    # later one wins), and records that the files lead to (of two with one offset, such a record keeps it).
    np.copyto(units, known, where=kept_window)
    _put_rows(units, rows, base)
    _put_rows(units, rows, base, pointed_to=known)
    for some, of_file in zip(parts(units, _PUT_ROWS), parts(known, _PUT_ROWS), strict=True):
        _keep_own_tags_codes(topic, some, of_file)
    messages = is_message(units) & (units["phy_offset"] >= facts.min_phy_offset)
    min_offset = base + int(messages.argmax()) if messages.any() else top
    # Files are removed if retention removed all their messages, except the file that the next unit belongs
    # to.
    first_kept = min(min_offset, top - 1) // per_file * per_file
    if first_kept > base:
        units, base = units[first_kept - base :], first_kept
    state = QueueState(topic, queue_id, base, units, min_offset, [], agrees=False, gaps=gaps)
    state.findings.extend(_offset_findings(state, np.concatenate([damaged, wild])))
    placed = rows[np.isin(rows["phy_offset"], damaged["phy_offset"])] if len(damaged) else damaged
    state.mended.update(zip(placed["phy_offset"].tolist(), placed["queue_offset"].tolist(), strict=True))
    odd = len(state.findings)
    known_from = max(known_from, base)
    head = stored[: max(0, known_from - first_slot)]
    state.findings.extend(_head_findings(state, first_slot, head, facts))
    state.findings.extend(_compare(state, known_from, first_slot, stored, facts, has_files=has_files))
    state = _with_behind(state, first_slot, stored)
    state.agrees = len(state.findings) == odd and first_slot + len(stored) <= top
    return state


def _counted(
    topic: str, rows: Rows, first_slot: int, stored: Units, facts: LogFacts
) -> tuple[Rows, Rows, _Mask]:
    """Returns the rows with a possible queue offset, the others, and which units of the files count.

    Such units count although the log has no record for them.
    """
    sure, in_hole = kept_units(topic, stored, facts)
    kept = sure | in_hole
    if kept.any():
        # Behind the units of the files there are at most as many messages as the log has room for.
        most = (facts.end_phy_offset - facts.min_phy_offset) // MIN_RECORD_BYTES
        is_within = rows["queue_offset"] <= first_slot + len(stored) + most
        rows = rows if is_within.all() else rows[is_within]
    lost = sum(hole.size_bytes for hole in facts.holes) // MIN_RECORD_BYTES
    rows, wild = _within_reason(rows, len(rows) + len(stored) + lost)
    if len(rows) and not _is_near(rows, first_slot, len(stored), lost):
        kept[:] = False  # files of another life of the queue: none of their units counts
    # A unit that leads into a hole must also fit between the places of its neighbours' records.
    kept &= sure | are_between(rows, first_slot, stored, in_hole)
    if len(rows):
        # Places ascend: behind a record that the log has, no unit of the queue leads before the log.
        low = max(0, int(rows["queue_offset"].min()) - first_slot)
        kept[low:] &= ~are_expired(stored[low:], facts.min_phy_offset)
    return rows, wild, kept


def _zeros(count: int, room: Room | None) -> Units:
    if room is None:
        return np.zeros(count, CQ_UNIT.dtype)
    units = room.empty(count, CQ_UNIT.dtype)
    units.view(np.uint8)[:] = 0
    return units


def _put_rows(units: Units, rows: Rows, base: int, pointed_to: Units | None = None) -> None:
    """Writes the units of rows at their queue offsets, in parts, so that temporary arrays stay small.

    Args:
        units: The units of a queue from slot ``base`` on.
        rows: Its rows.
        base: The slot.
        pointed_to: The units of the files there; if given, writes only units of records that these lead to.
    """
    for some in parts(rows, _PUT_ROWS):
        at, fresh = some["queue_offset"] - base, units_of(some)
        if pointed_to is not None:
            held = pointed_to[at]
            is_held = in_use(held) & (held["phy_offset"] == fresh["phy_offset"])
            at, fresh = at[is_held], fresh[is_held]
        units[at] = fresh


def _as_stored(
    topic: str, queue_id: int, rows: Rows, first_slot: int, stored: Units, facts: LogFacts
) -> QueueState | None:
    """Returns the queue if its files agree with the log, with only expired units before; otherwise None.

    That is the usual case, and fast to check: it needs none of the steps of :func:`overlay_queue`.
    """
    expired = int(rows["queue_offset"][0]) - first_slot if len(rows) else -1
    if not 0 <= expired <= len(stored) or not stand_in(rows, stored[expired:]):
        return None
    if expired:
        sure, _in_hole = kept_units(topic, stored[:expired], facts)
        if not sure.all() or not (stored["phy_offset"][:expired] < facts.min_phy_offset).all():
            return None
    if rows["phy_offset"][0] < facts.min_phy_offset:
        return None
    base, per_file = first_slot, facts.file_size_bytes // CQ_UNIT_BYTES
    min_offset = first_slot + expired
    first_kept = min_offset // per_file * per_file
    if first_kept > base:
        stored, base = stored[first_kept - base :], first_kept
    state = QueueState(topic, queue_id, base, stored, min_offset, [], agrees=True)
    state.behind_slot = state.max_offset
    return state


def behind_findings(state: QueueState, end_phy_offset: int, file_size_bytes: int) -> list[Finding]:
    """Returns the findings about units behind the end of a queue.

    Args:
        state: The queue.
        end_phy_offset: End of the log.
        file_size_bytes: Length of a queue file.
    """
    # RocketMQ counts an empty unit behind a message as one, and serves no message if it is the last.
    extra = in_use(state.behind) if len(state.units) else is_message(state.behind)
    if not extra.any():
        return []
    is_beyond = (state.behind["phy_offset"][extra] >= end_phy_offset).all()
    code = "queue-beyond-log" if is_beyond else "queue-unit-stray"
    queue = queue_directory(state.topic, state.queue_id)
    return [unit_finding(code, queue, state.behind_slot, file_size_bytes, int(extra.sum()))]


def _with_behind(state: QueueState, first_slot: int, stored: Units) -> QueueState:
    state.behind_slot = max(state.max_offset, first_slot)
    state.behind = stored[state.behind_slot - first_slot :].copy()
    return state


def rows_as_placed(rows: Rows, state: QueueState) -> Rows:
    """Returns the records that a queue has, with their queue offsets in the queue.

    Args:
        rows: ``(n,) ROW``, the log's records of the queue, with the queue offsets in their own fields.
        state: The queue.
    """
    slots = np.flatnonzero(is_message(state.units))
    places = state.units["phy_offset"][slots]
    order = np.argsort(places)
    at = np.searchsorted(places[order], rows["phy_offset"]).clip(max=max(len(places) - 1, 0))
    has_place = np.isin(rows["phy_offset"], places)
    placed = rows[has_place].copy()
    placed["queue_offset"] = state.first_slot + slots[order][at[has_place]]
    return placed


def _head_findings(state: QueueState, first_slot: int, head: Units, facts: LogFacts) -> list[Finding]:
    wrong = ~are_passed_over(head, facts.min_phy_offset)
    if not wrong.any():
        return []
    queue, slot = queue_directory(state.topic, state.queue_id), first_slot + int(wrong.argmax())
    return [unit_finding("queue-unit-stray", queue, slot, facts.file_size_bytes, int(wrong.sum()))]


def _offset_findings(state: QueueState, damaged: Rows) -> list[Finding]:
    return [
        Finding(
            "record-queue-offset",
            queue_directory(state.topic, state.queue_id),
            found=f"queue offset {row['queue_offset']} in the record at {row['phy_offset']}",
            expected=f"one within {state.first_slot}..{state.max_offset}",
            messages=1,
        )
        for row in damaged
    ]


def _within_reason(rows: Rows, room: int) -> tuple[Rows, Rows]:
    """Separates rows with a possible queue offset from rows with an impossible one.

    Offsets of a queue have no gaps except for records that cannot be read. If a row's offset differs from the
    course of the others by more than all lost records could explain, bits of it were flipped, and no record
    CRC shows it. At its own offset, the row would make the queue so long that its files fill the disk.
    """
    if not len(rows):
        return rows, rows
    slots = rows["queue_offset"]
    if all((np.diff(slots[at : at + PART_ROWS + 1]) == 1).all() for at in range(0, len(rows), PART_ROWS)):
        return rows, rows[:0]  # offsets without gaps: the usual case
    course = slots - np.arange(len(rows))
    middle = int(np.partition(course, (len(rows) - 1) // 2)[(len(rows) - 1) // 2])
    wild = (course < max(middle - room, _MIN_I64)) | (course > min(middle + room, _MAX_I64))
    return (rows[~wild], rows[wild]) if wild.any() else (rows, rows[:0])


def _is_near(rows: Rows, first_slot: int, stored_count: int, room: int) -> bool:
    """Returns whether units at these offsets can belong to the same stretch of the queue as the rows."""
    low, high = int(rows["queue_offset"].min()), int(rows["queue_offset"].max())
    return first_slot <= high + room and first_slot + stored_count >= low - room


def _last_life(rows: Rows, first_slot: int, stored: Units) -> Rows:
    slots = rows["queue_offset"]
    restarts = np.flatnonzero((slots[1:] == 0) & (slots[:-1] > 0)) + 1
    if not len(restarts):
        return rows
    last = int(restarts[-1])
    if first_slot == 0 and len(stored) and stored["phy_offset"][0] in rows["phy_offset"][:last]:
        # The files still lead to the first records: RocketMQ appended a second "0" at the end of the queue.
        return np.delete(rows, restarts)
    return rows[last:]


def has_own_tags_code(topic: str, stored: Units) -> _Mask:
    """Returns the units whose tags code may be right although it does not follow from the record.

    A broker sets such codes by its own rules: addresses in ConsumeQueueExt, and in the delay topic the time
    of delivery by its own table of levels.
    """
    mask: _Mask = stored["tags_code"] <= MAX_EXT_ADDRESS
    if topic == SCHEDULE_TOPIC:
        mask = mask | (stored["tags_code"] > 0)
    return mask


def may_differ_in_tags_code(topic: str, stored: Units, codes: npt.NDArray[np.int64]) -> _Mask:
    """Returns which units may have another tags code than the code that follows from their records.

    Units of tombstones may not: the tags code of a record is lost with the record. In the delay topic a
    tombstone has no delay level, so no time of delivery follows from it.

    Args:
        topic: The queue's topic.
        stored: Its units.
        codes: ``(n,) i8``, the code that follows from the record of each unit.
    """
    mask: _Mask = has_own_tags_code(topic, stored) & (codes != LOST_TAGS_CODE)
    if topic == SCHEDULE_TOPIC:
        mask &= (stored["tags_code"] <= 0) | (codes > 0)
    return mask


def _keep_own_tags_codes(topic: str, units: Units, known: Units) -> None:
    same = (known["phy_offset"] == units["phy_offset"]) & (known["size_bytes"] == units["size_bytes"])
    own_code = may_differ_in_tags_code(topic, known, units["tags_code"]) & same & (known["size_bytes"] > 0)
    units["tags_code"][own_code] = known["tags_code"][own_code]


def code_of_missing(missing: _Mask, phy_offset: int, facts: LogFacts) -> str:
    """Returns the code of the finding about missing units of a queue; a kill explains missing last units.

    Args:
        missing: Which units of the queue are missing.
        phy_offset: Physical offset of the record of the first missing unit.
        facts: The log.
    """
    may_be_due = may_lack_units(facts.end_phy_offset - phy_offset, is_closed=facts.is_closed)
    is_due = may_be_due and bool(missing.any()) and bool(missing[int(missing.argmax()) :].all())
    return "queue-due" if is_due else "queue-short"


def may_lack_units(behind_bytes: int, *, is_closed: bool) -> bool:
    """Returns whether a kill explains that no queue has a unit for a record.

    Args:
        behind_bytes: How far the record is before the end of the log.
        is_closed: Whether the last writer closed the store.
    """
    return not is_closed and behind_bytes <= _MOST_BEHIND_BYTES


def _window(values: npt.NDArray[_T], first: int, base: int, top: int) -> npt.NDArray[_T]:
    """Returns ``values`` cut, and filled with zeros, to the slots ``base`` to ``top``."""
    start, end = max(first, base), min(first + len(values), top)
    if (start, end) == (base, top):
        return values[base - first : top - first]
    window = np.zeros(top - base, values.dtype)
    if start < end:
        window[start - base : end - base] = values[start - first : end - first]
    return window


def _compare(
    state: QueueState, known_from: int, first_slot: int, stored: Units, facts: LogFacts, *, has_files: bool
) -> list[Finding]:
    queue = queue_directory(state.topic, state.queue_id)
    size = facts.file_size_bytes
    if not has_files:
        return [Finding("queue-missing", queue, messages=int(is_message(state.units).sum()))]
    found: list[Finding] = []
    known = _window(stored, first_slot, state.first_slot, state.max_offset)
    held = in_use(known)
    right = known == state.units
    missing = ~held & is_message(state.units)
    first_missing = int(state.units["phy_offset"][int(missing.argmax())]) if len(missing) else 0
    runs = {
        code_of_missing(missing, first_missing, facts): missing,
        "queue-unit-wrong": held & ~right & is_message(state.units),
        "queue-unit-stray": held & ~right & ~is_message(state.units) & is_message(known),
        "queue-gap": ~in_use(state.units) & ~held,
    }
    # Before the first message of the log, a slot that is all zeros is of one that retention took.
    early = runs["queue-gap"].copy()
    early[max(0, state.min_offset - state.first_slot) :] = False
    runs["queue-unit-stray"] |= early
    runs["queue-gap"] &= ~early
    for gap in state.gaps:
        name = f"{state.topic}/{state.queue_id}"
        found.append(gap_finding(queue, name, gap, gap.offsets.start, size))
    for code, mask in runs.items():
        mask[: known_from - state.first_slot] = False  # the head has findings of its own
        if mask.any():
            found.append(
                unit_finding(code, queue, state.first_slot + int(mask.argmax()), size, int(mask.sum()))
            )
    return found
