"""The messages that were in the holes of a log, as queue units and jumps in queue offsets prove.

A unit that leads into a hole names its message. If a queue has offsets without a unit, but messages before
and behind them, those offsets were assigned: their records were in a hole between the records of the
neighbours. If there are several such holes, the records may have been in any of them.

Records follow each other without gaps, so units that take all of a hole name all that was there. Where bytes
are left, there may have been messages of queues whose units are lost as well: nothing can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from seglog.storage.format.record.record import FILLER_BYTES
from seglog.storage.overlay.batch_overlay import BatchQueueState
from seglog.storage.overlay.kept_units import is_message
from seglog.storage.overlay.queue_gaps import QueueGap
from seglog.storage.overlay.queue_overlay import QueueState
from seglog.storage.walk.behind_damage import Hole
from seglog.storage.walk.growable_rows import parts
from seglog.text import count_text

UNIT: Final = "unit"
JUMP: Final = "jump"
_MAX_TOLD: Final = 8
_NO_GAPS: Final[Mapping[tuple[str, int], Sequence[QueueGap]]] = {}

Offsets: TypeAlias = dict[tuple[str, int], frozenset[int]]
"""Queue offsets by topic and queue."""

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LostMessages:
    """Messages of one queue that were in a hole.

    Attributes:
        offsets: Their queue offsets.
        evidence: :data:`UNIT`, or :data:`JUMP` if only the offsets of their neighbours prove them.
        is_sure: Whether no other hole is possible.
    """

    topic: str
    queue_id: int
    offsets: range
    evidence: str
    is_sure: bool = True

    @override
    def __str__(self) -> str:
        last = f"..{self.offsets.stop - 1}" if len(self.offsets) > 1 else ""
        return f"{self.topic}/{self.queue_id} {self.offsets.start}{last}{'' if self.is_sure else '?'}"


def lost_in_holes(
    holes: Sequence[Hole],
    queues: Mapping[tuple[str, int], QueueState],
    batch_queues: Mapping[tuple[str, int], BatchQueueState],
    elsewhere: Mapping[tuple[str, int], Sequence[QueueGap]] = _NO_GAPS,
) -> list[list[LostMessages]]:
    """Returns for each hole of a log the messages that were in it, by queue and queue offset.

    Args:
        holes: The holes, in log order.
        queues: The right content of each plain queue.
        batch_queues: The same for batch queues.
        elsewhere: Messages of queues that were not in a hole, beside the gaps of the queues.
    """
    found: list[list[LostMessages]] = [[] for _hole in holes]
    if not holes:
        return found
    starts = np.array([hole.phy_offset for hole in holes], np.int64)
    ends = np.array([hole.end for hole in holes], np.int64)
    for key in sorted({*queues, *batch_queues}):
        slots = _plain(queues[key]) if key in queues else _batch(batch_queues[key])
        state = queues[key] if key in queues else batch_queues[key]
        gaps = [gap.offsets for gap in (*state.gaps, *elsewhere.get(key, ()))]
        for number, lost in _of_queue(*key, slots, starts, ends):
            found[number] += _without(lost, gaps) if lost.evidence == JUMP else [lost]
    return found


def _without(lost: LostMessages, gaps: Iterable[range]) -> list[LostMessages]:
    """Returns lost messages without those of gaps."""
    left = [lost.offsets]
    for gap in gaps:
        left = [
            part
            for one in left
            for part in (
                range(one.start, min(one.stop, gap.start)),
                range(max(one.start, gap.stop), one.stop),
            )
            if part
        ]
    return [replace(lost, offsets=one) for one in left]


def lost_in_gaps(state: QueueState | BatchQueueState) -> list[LostMessages]:
    """Returns the messages of a queue at whose places the log has other records."""
    return [LostMessages(state.topic, state.queue_id, gap.offsets, UNIT) for gap in state.gaps]


def tell_lost(lost: Sequence[LostMessages]) -> str:
    """Returns a short text about lost messages, empty if there are none."""
    if not lost:
        return ""
    further = len(lost) - _MAX_TOLD
    more = f" and more in {count_text(further, 'place')}" if further > 0 else ""
    return f"lost: {', '.join(str(one) for one in lost[:_MAX_TOLD])}{more}"


@dataclass(frozen=True, slots=True)
class _Slots:
    """Messages of a queue, by ascending queue offset: first offset, number, and place of the record."""

    offsets: _Ints
    counts: _Ints
    places: _Ints


def _plain(state: QueueState) -> Iterator[_Slots]:
    """Yields the messages of a queue in parts."""
    units = state.units[max(0, state.min_offset - state.first_slot) :]
    first = state.max_offset - len(units)
    for part in parts(units):
        at = np.flatnonzero(is_message(part))
        if len(at):
            places = part["phy_offset"][at].astype(np.int64)
            yield _Slots(first + at, np.ones(len(at), np.int64), places)
        first += len(part)


def _batch(state: BatchQueueState) -> Iterator[_Slots]:
    for part in parts(state.units):
        units = part[part["base_queue_offset"] >= state.min_offset]
        if len(units):
            names = ("base_queue_offset", "batch_size", "phy_offset")
            yield _Slots(*(units[name].astype(np.int64) for name in names))


def _of_queue(
    topic: str, queue_id: int, slots: Iterable[_Slots], starts: _Ints, ends: _Ints
) -> Iterator[tuple[int, LostMessages]]:
    """Yields the lost messages of a queue, each with the number of the hole."""
    by_units: list[tuple[int, range]] = []
    by_jumps: list[tuple[int, LostMessages]] = []
    before: _Slots | None = None
    for part in slots:
        for number, run in _in_holes(part, starts, ends):
            is_cut = bool(by_units) and by_units[-1][0] == number and by_units[-1][1].stop == run.start
            first = by_units.pop()[1].start if is_cut else run.start  # joins a run that the parts have cut
            by_units.append((number, range(first, run.stop)))
        for offsets, holes in _jumps(part if before is None else _joined(before, part), starts, ends):
            is_sure = len(holes) == 1
            by_jumps += [
                (number, LostMessages(topic, queue_id, offsets, JUMP, is_sure=is_sure)) for number in holes
            ]
        # A jump may be between two parts.
        before = _Slots(part.offsets[-1:], part.counts[-1:], part.places[-1:])
    yield from ((number, LostMessages(topic, queue_id, offsets, UNIT)) for number, offsets in by_units)
    yield from by_jumps


def _joined(first: _Slots, second: _Slots) -> _Slots:
    return _Slots(
        np.concatenate([first.offsets, second.offsets]),
        np.concatenate([first.counts, second.counts]),
        np.concatenate([first.places, second.places]),
    )


def _in_holes(slots: _Slots, starts: _Ints, ends: _Ints) -> Iterator[tuple[int, range]]:
    """Yields the runs of consecutive offsets whose units lead into one hole, with the number of the hole."""
    hole = np.searchsorted(starts, slots.places, "right") - 1
    at = np.flatnonzero((hole >= 0) & (slots.places < ends[hole]))
    if not len(at):
        return
    behind = slots.offsets[at] + slots.counts[at]
    cuts = np.flatnonzero((hole[at][1:] != hole[at][:-1]) | (slots.offsets[at][1:] != behind[:-1])) + 1
    for run in np.split(np.arange(len(at)), cuts):
        yield int(hole[at[run[0]]]), range(int(slots.offsets[at[run[0]]]), int(behind[run[-1]]))


def _jumps(slots: _Slots, starts: _Ints, ends: _Ints) -> Iterator[tuple[range, range]]:
    """Yields offsets without a message between offsets with one, and the holes that may have held them."""
    behind = slots.offsets + slots.counts
    for before in np.flatnonzero(slots.offsets[1:] > behind[:-1]).tolist():
        # Holes that begin before the record behind the jump and end after the record before it begins.
        first = int(np.searchsorted(ends, slots.places[before], "right"))
        last = int(np.searchsorted(starts, slots.places[before + 1], "left"))
        yield range(int(behind[before]), int(slots.offsets[before + 1])), range(first, last)


def open_holes(
    holes: Iterable[Hole],
    queues: Mapping[tuple[str, int], QueueState],
    batch_queues: Mapping[tuple[str, int], BatchQueueState],
    segment_size_bytes: int,
    size_at: Callable[[int], int],
) -> frozenset[int]:
    """Returns the physical offsets of the holes that may have held messages of which no unit is left.

    Args:
        holes: The holes.
        queues: The right content of each plain queue.
        batch_queues: The same for batch queues.
        segment_size_bytes: Length of a log file.
        size_at: Returns the length of the record at a physical offset, 0 if there is none.
    """
    units = [state.units for state in queues.values()] + [state.units for state in batch_queues.values()]
    return frozenset(
        hole.phy_offset
        for hole in holes
        if _is_open(hole, _inside(hole, units), segment_size_bytes, size_at(hole.end))
    )


def _inside(hole: Hole, queues: Iterable[npt.NDArray[np.void]]) -> tuple[_Ints, _Ints]:
    """Returns places and sizes of the records that units show in a hole, by place."""
    places, sizes = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for units in queues:
        phy = units["phy_offset"]
        here = units[(phy >= hole.phy_offset) & (phy < hole.end) & (units["size_bytes"] > 0)]
        places.append(here["phy_offset"].astype(np.int64))
        sizes.append(here["size_bytes"].astype(np.int64))
    found, first = np.unique(np.concatenate(places), return_index=True)
    return found, np.concatenate(sizes)[first]


def _is_open(hole: Hole, records: tuple[_Ints, _Ints], segment_size_bytes: int, next_bytes: int) -> bool:
    places, sizes = records
    starts, wanted = np.append(places, hole.end), np.append(sizes, next_bytes)
    ends = np.concatenate([[hole.phy_offset], np.maximum.accumulate(places + sizes)])
    gaps = starts - ends
    # The rest of a file in which the next record found no room.
    is_blank = (starts % segment_size_bytes == 0) & (gaps < wanted + FILLER_BYTES)
    return bool(((gaps > 0) & ~is_blank).any())
