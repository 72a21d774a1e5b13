"""Messages behind the end of the log: their records are lost, but queue units still have their offsets.

If the last log file was cut, zeroed or lost, the records at the end of the log are gone, and nothing in the
log shows that they existed. The units of their queues do. Consumers may have seen those messages, so their
offsets must not be assigned again. Units behind the end of a queue are therefore believed under these
conditions:

- the units follow the queue's last message without a gap, and their places ascend with queue offsets;
- each record is in one segment, is large enough for a record of its topic, and overlaps no other;
- the records reach at most one segment beyond the last file, or beyond the last segment of other such units;
- most units of the queue that lead into the log lead to its own records; otherwise the queue is of another
  store. A queue of which neither the log nor ``topics.json`` has the topic must join others: its first record
  begins where the log, or a record of another queue, ends;
- something else shows that the log was longer (a crash, a checkpoint, the index, a recovery point), or the
  records begin at the log's end and take most of the space behind it;
- no unit is a left-over of an earlier log. RocketMQ cuts logs and queues without erasing, so old units may be
  there. If a unit leads to a record that is still whole (the walk decided that it belongs to an earlier log),
  or to a place before the end of the log, which other records use, all units behind the end of that queue are
  old.

Recovery gives each such record a tombstone at its place (:mod:`seglog.storage.format.record.tombstone`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Final, NamedTuple

import numpy as np

from seglog.storage.findings.findings import Finding
from seglog.storage.format.names import COMMIT_LOG, LMQ_PREFIX, segment_file_name
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT, NO_COMPACTED_OFFSET, batch_in_use
from seglog.storage.format.queue.consume_queue import CQ_UNIT
from seglog.storage.format.record.record import FILLER_BYTES
from seglog.storage.format.record.tombstone import (
    LostRecord,
    min_filler_bytes,
    min_tombstone_bytes,
    tombstone_tags_code,
)
from seglog.storage.overlay.batch_overlay import BatchQueueState
from seglog.storage.overlay.kept_units import is_message
from seglog.storage.overlay.queue_overlay import QueueState

MAX_LOST_BYTES: Final = 64 << 20
"""No broker takes messages near this size: a unit with a larger size is damaged."""

_BASE: Final = list(BATCH_UNIT.offsets).index("base_queue_offset")

QueueKey = tuple[str, int]


class KnownUnit(NamedTuple):
    """A unit behind the end of a queue."""

    phy_offset: int
    size_bytes: int
    queue_offset: int
    batch_size: int

    @property
    def end(self) -> int:
        """Former end of its record."""
        return self.phy_offset + self.size_bytes


@dataclass(frozen=True, slots=True)
class TailFacts:
    """The facts about the log that decide about units behind its end.

    Attributes:
        end_phy_offset: Its end.
        files_end: End of its last file.
        segment_size_bytes: Length of a file.
        is_record: Returns whether a whole record starts at a physical offset.
        replaced: Stretches before the end that had other records, by the units that lead there.
        foreign: Queues of another store, as most of their units within the log show.
        unknown: Queues of topics that neither the log nor ``topics.json`` has.
        is_proven: Returns whether anything but the units shows that the log was longer.
    """

    end_phy_offset: int
    files_end: int
    segment_size_bytes: int
    is_record: Callable[[int], bool]
    replaced: tuple[range, ...] = ()
    foreign: Collection[QueueKey] = ()
    unknown: Collection[QueueKey] = ()
    is_proven: Callable[[], bool] = lambda: True


class _Claim(NamedTuple):
    """A unit and its queue."""

    unit: KnownUnit
    key: QueueKey

    @property
    def is_further(self) -> bool:
        """Whether the unit is of an LMQ queue: the record belongs to another queue."""
        return self.key[0].startswith(LMQ_PREFIX)


def find_lost_tail(
    queues: Mapping[QueueKey, QueueState], batch_queues: Mapping[QueueKey, BatchQueueState], facts: TailFacts
) -> list[LostRecord]:
    """Returns the records behind the end of the log that queue units prove, in log order, without overlap.

    Args:
        queues: The right content of each plain queue, by the log.
        batch_queues: The same for batch queues.
        facts: The log.
    """
    runs = {key: run for key, state in queues.items() if (run := _plain_run(state, facts))}
    runs |= {key: run for key, batch in batch_queues.items() if (run := _batch_run(batch, facts))}
    runs = {key: run for key, run in runs.items() if key not in facts.foreign}
    # Repeated, because a shortened run takes away the support of units that agreed with it.
    while doubtful := _doubtful(runs, facts):
        for key, first in doubtful.items():
            runs[key] = [unit for unit in runs[key] if unit.queue_offset < first]
    while apart := [key for key in facts.unknown if runs.get(key) and not _is_joined(key, runs, facts)]:
        for key in apart:
            runs[key] = []
    if not (any(runs.values()) and (_is_tiled(runs, facts) or facts.is_proven())):
        return []
    return list(_placed(_records(runs), facts))


def _is_joined(key: QueueKey, runs: Mapping[QueueKey, list[KnownUnit]], facts: TailFacts) -> bool:
    """Returns whether the first record of a run begins where the log or a record of another run ends."""
    first = runs[key][0]
    ends = [facts.end_phy_offset, *(unit.end for of, run in runs.items() if of != key for unit in run)]
    return any(not _gap(end, first, facts.segment_size_bytes) for end in ends)


def _is_tiled(runs: Mapping[QueueKey, list[KnownUnit]], facts: TailFacts) -> bool:
    """Returns whether the records of runs begin at the end of the log and take most of what is behind it.

    Units of a log that lost its end do so, but where queues were lost as well. Units of another store do not.
    """
    units = sorted({unit.phy_offset: unit for run in runs.values() for unit in run}.items())
    gaps, end = [], facts.end_phy_offset
    for _place, unit in units:
        gaps.append(_gap(end, unit, facts.segment_size_bytes))
        end = max(end, unit.end)
    return bool(gaps) and not gaps[0] and 2 * sum(gaps) <= sum(unit.size_bytes for _place, unit in units)


def _gap(end: int, unit: KnownUnit | LostRecord, segment_size_bytes: int) -> int:
    """Returns the bytes between an end and a record, without the rest of a file that had no room for it."""
    gap = unit.phy_offset - end
    has_blank = not unit.phy_offset % segment_size_bytes and gap < unit.size_bytes + FILLER_BYTES
    return 0 if has_blank and gap > 0 else abs(gap)


def _plain_run(state: QueueState, facts: TailFacts) -> list[KnownUnit]:
    units, slot = state.behind, state.behind_slot
    if not len(units):
        return []
    if not len(state.units):
        # The queue has no message in the log: its run begins with the first unit in use.
        first = int(is_message(units).argmax())
        units, slot = units[first:], slot + first
    elif slot != state.max_offset:
        return []  # a gap behind the last message: the units belong to an earlier log
    known = [
        KnownUnit(phy_offset, size, slot + index, 1)
        for index, (phy_offset, size, _tags_code) in enumerate(units.tolist())
    ]
    used = is_message(units).tolist()
    return _believable(state.topic, known, used, state.max_phy_offset, facts)


def _batch_run(state: BatchQueueState, facts: TailFacts) -> list[KnownUnit]:
    known = [
        KnownUnit(phy_offset, size, base, count)
        for phy_offset, size, _tags_code, _time, base, count, *_ in state.behind.tolist()
    ]
    used = batch_in_use(state.behind).tolist()
    first = known[0].queue_offset if known and not len(state.units) else state.max_offset
    following = [first, *(unit.queue_offset + unit.batch_size for unit in known)]
    used = [
        is_used and unit.queue_offset == wanted
        for is_used, unit, wanted in zip(used, known, following, strict=False)
    ]
    return _believable(state.topic, known, used, state.max_phy_offset + 1, facts)


def _believable(
    topic: str, known: list[KnownUnit], used: list[bool], after: int, facts: TailFacts
) -> list[KnownUnit]:
    """Returns the first units that are possible by themselves; none if any unit is of an earlier log.

    Args:
        topic: Topic of the queue.
        known: All units behind its end.
        used: Which of them are in use.
        after: End of the record before them.
        facts: The log.
    """
    # Units that lead to messages of a replaced file come before those of the lost end.
    old = [unit for unit in known if any(unit.phy_offset in stretch for stretch in facts.replaced)]
    known, used = known[len(old) :], used[len(old) :]
    # A unit that leads below the end of the log, to bytes of other records, shows that the units are old.
    if any(
        is_used and 0 <= unit.phy_offset < facts.end_phy_offset
        for unit, is_used in zip(known, used, strict=True)
    ):
        return []
    least = min_tombstone_bytes(topic.encode("utf-8", "surrogateescape"))
    segment = facts.segment_size_bytes
    after = max(after, facts.end_phy_offset)
    run: list[KnownUnit] = []
    for unit, is_used in zip(known, used, strict=True):
        fits = unit.phy_offset % segment + unit.size_bytes + FILLER_BYTES <= segment
        if not (is_used and fits and least <= unit.size_bytes <= MAX_LOST_BYTES and unit.phy_offset >= after):
            break
        if facts.is_record(unit.phy_offset):
            return []  # the record is whole, but the walk ended before it: it belongs to an earlier log
        run.append(unit)
        after = unit.end
    return run


def _doubtful(runs: Mapping[QueueKey, list[KnownUnit]], facts: TailFacts) -> dict[QueueKey, int]:
    """Returns, by queue, the queue offset from which on its run contradicts runs of other queues."""
    claims = [_Claim(unit, key) for key, run in runs.items() for unit in run]
    claims.sort(key=lambda claim: (claim.unit.phy_offset, claim.unit.size_bytes, claim.is_further))
    groups = [list(group) for _place, group in groupby(claims, lambda claim: claim.unit[:2])]
    starts = {group[0].unit.phy_offset for group in groups}
    ends = {group[0].unit.end for group in groups} | {facts.end_phy_offset}
    doubtful: dict[QueueKey, int] = {}

    def doubt(group: Iterable[_Claim]) -> None:
        for claim in group:
            known = doubtful.get(claim.key, claim.unit.queue_offset)
            doubtful[claim.key] = min(known, claim.unit.queue_offset)

    def support(unit: KnownUnit) -> int:
        begins = unit.phy_offset in ends or unit.phy_offset % facts.segment_size_bytes == 0
        return begins + (unit.end in starts)

    # One segment beyond the last file, then one beyond the last believed record: a place far behind is
    # damaged.
    reach = facts.files_end + facts.segment_size_bytes
    for group in groups:
        phy_offset = group[0].unit.phy_offset
        if phy_offset >= reach or sum(not claim.is_further for claim in group) != 1:
            doubt(group)
        else:
            segment_end = phy_offset - phy_offset % facts.segment_size_bytes + facts.segment_size_bytes
            reach = max(reach, segment_end + facts.segment_size_bytes)
    for group, later in pairwise(groups):
        if later[0].unit.phy_offset < group[0].unit.end:
            # Records have no gaps between them, so the unit that begins or ends at another record is more
            # likely to be right. With equal support both are dropped.
            gap = support(group[0].unit) - support(later[0].unit)
            doubt(group if gap <= 0 else ())
            doubt(later if gap >= 0 else ())
    return doubtful


def _records(runs: Mapping[QueueKey, list[KnownUnit]]) -> list[LostRecord]:
    further: defaultdict[int, list[tuple[str, int]]] = defaultdict(list)
    records: list[LostRecord] = []
    for (topic, queue_id), run in runs.items():
        for unit in run:
            if topic.startswith(LMQ_PREFIX):
                further[unit.phy_offset].append((topic, unit.queue_offset))
            else:
                records.append(
                    LostRecord(
                        topic, queue_id, unit.queue_offset, unit.phy_offset, unit.size_bytes, unit.batch_size
                    )
                )
    records.sort(key=lambda record: record.phy_offset)
    return [replace(record, further=tuple(further[record.phy_offset])) for record in records]


def _placed(records: list[LostRecord], facts: TailFacts) -> Iterator[LostRecord]:
    """Yields the records; a record begins earlier if the gap before it is too small for a filler.

    The gap has room for a filler with ``__CRC32#`` or is none, whether or not the log has record CRCs: an
    audit reads no properties, and must name the same places as a survey.
    """
    least = min_filler_bytes(record_crc=True)
    end = facts.end_phy_offset
    for record in records:
        segment_start = record.phy_offset - record.phy_offset % facts.segment_size_bytes
        gap = record.phy_offset - max(end, segment_start)
        end = record.end
        extra = gap if 0 < gap < least else 0
        yield replace(record, phy_offset=record.phy_offset - extra, size_bytes=record.size_bytes + extra)


def take_up(
    records: list[LostRecord],
    queues: Mapping[QueueKey, QueueState],
    batch_queues: Mapping[QueueKey, BatchQueueState],
    store_timestamp_ms: int,
    *,
    record_crc: bool,
) -> None:
    """Adds the units of lost records to their queues, as dispatching their tombstones would.

    Args:
        records: The lost records, in log order.
        queues: The plain queues; changed in place.
        batch_queues: The batch queues; changed in place.
        store_timestamp_ms: Store time of the tombstones.
        record_crc: Whether the tombstones get ``__CRC32#``.
    """
    plain: defaultdict[QueueKey, list[tuple[int, ...]]] = defaultdict(list)
    batch: defaultdict[QueueKey, list[tuple[int, ...]]] = defaultdict(list)
    first: dict[QueueKey, int] = {}
    for record in records:
        code = tombstone_tags_code(record, store_timestamp_ms, record_crc=record_crc)
        unit = (record.phy_offset, record.size_bytes, code)
        key = (record.topic, record.queue_id)
        if key in batch_queues:
            more = (store_timestamp_ms, record.queue_offset, record.batch_size, NO_COMPACTED_OFFSET, 0)
            batch[key].append(unit + more)
            continue
        for place, offset in ((key, record.queue_offset), *(((name, 0), at) for name, at in record.further)):
            first.setdefault(place, offset)
            plain[place].append(unit)
    for key, units in plain.items():
        _extend(queues[key], first[key], units)
    for key, units in batch.items():
        state = batch_queues[key]
        state.behind = state.behind[len(units) :]
        state.units = np.concatenate([state.units, np.array(units, BATCH_UNIT.dtype)], dtype=BATCH_UNIT.dtype)
        state.agrees = False
        if state.min_offset == int(units[0][_BASE]) or len(state.units) == len(units):
            state.min_offset = int(units[0][_BASE])


def _extend(state: QueueState, first: int, units: list[tuple[int, ...]]) -> None:
    if not len(state.units):
        state.min_offset = first
        state.first_slot = min([first, *(gap.offsets.start for gap in state.gaps)])
    # The minimum of an empty queue is its end, which is the offset of the first of these units: it stays
    # right.
    state.behind = state.behind[first - state.behind_slot + len(units) :]
    state.behind_slot = first + len(units)
    left_out = np.zeros(first - state.max_offset, CQ_UNIT.dtype)
    state.units = np.concatenate([state.units, left_out, np.array(units, CQ_UNIT.dtype)], dtype=CQ_UNIT.dtype)
    state.agrees = False


def lost_findings(records: list[LostRecord], end_phy_offset: int, segment_size_bytes: int) -> list[Finding]:
    """Returns a finding for the lost end of the log, and one for each queue that lost messages with it.

    Args:
        records: The lost records, in log order.
        end_phy_offset: End of the log.
        segment_size_bytes: Length of its files.
    """
    if not records:
        return []
    by_queue: defaultdict[QueueKey, list[LostRecord]] = defaultdict(list)
    for record in records:
        by_queue[record.topic, record.queue_id].append(record)
    position = end_phy_offset % segment_size_bytes
    ends = [end_phy_offset, *(record.end for record in records)]
    has_gap = any(_gap(end, record, segment_size_bytes) for end, record in zip(ends, records, strict=False))
    findings = [
        Finding(
            "log-tail-lost",
            f"{COMMIT_LOG}/{segment_file_name(end_phy_offset - position)}",
            position,
            records[-1].end - end_phy_offset,
            f"records up to {records[-1].end}",
            f"none behind {end_phy_offset}",
            sum(record.batch_size for record in records),
            has_gap,
        )
    ]
    for (topic, queue_id), lost in sorted(by_queue.items()):
        position = lost[0].phy_offset % segment_size_bytes
        last = lost[-1].queue_offset + lost[-1].batch_size - 1
        findings.append(
            Finding(
                "messages-lost",
                f"{COMMIT_LOG}/{segment_file_name(lost[0].phy_offset - position)}",
                position,
                lost[-1].end - lost[0].phy_offset,
                f"queue offsets {lost[0].queue_offset}..{last} of {topic}/{queue_id}",
                "the end of the log",
                sum(record.batch_size for record in lost),
            )
        )
    return findings
