"""Which messages the holes of a log took: what queue units and jumps in queue offsets tell.

A unit that leads into a hole names its message. Where a queue has no unit either but messages before and
behind, the offsets between were given: their records lay in a hole between those of the neighbours. If
there are several such holes, any of them may have held them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from seglog.storage.batch_overlay import BatchQueueState
from seglog.storage.log_scan import Hole
from seglog.storage.queue_overlay import QueueState, is_message
from seglog.words import count_text

UNIT: Final = "unit"
JUMP: Final = "jump"
_MAX_TOLD: Final = 8

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LostMessages:
    """Messages of one queue that lay in a hole.

    Attributes:
        offsets: Their queue offsets.
        evidence: :data:`UNIT`, or :data:`JUMP` where only the offsets of their neighbours tell.
        is_sure: Whether it was this hole and no other.
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
) -> list[list[LostMessages]]:
    """Returns for each hole of a log the messages that it took, by queue and queue offset.

    Args:
        holes: In log order.
        queues: What each plain queue must hold.
        batch_queues: The same of batch queues.
    """
    found: list[list[LostMessages]] = [[] for _hole in holes]
    if not holes:
        return found
    starts = np.array([hole.phy_offset for hole in holes], np.int64)
    ends = np.array([hole.end for hole in holes], np.int64)
    for (topic, queue_id), slots in sorted([*_plain(queues), *_batch(batch_queues)], key=lambda one: one[0]):
        for number, lost in _of_queue(topic, queue_id, slots, starts, ends):
            found[number].append(lost)
    return found


def tell_lost(lost: Sequence[LostMessages]) -> str:
    """Returns messages that were lost in a few words, nothing for none."""
    if not lost:
        return ""
    further = len(lost) - _MAX_TOLD
    more = f" and more in {count_text(further, 'place')}" if further > 0 else ""
    return f"lost: {', '.join(str(one) for one in lost[:_MAX_TOLD])}{more}"


@dataclass(frozen=True, slots=True)
class _Slots:
    """Messages of a queue, by growing queue offset: first offset, number, and place of the record."""

    offsets: _Ints
    counts: _Ints
    places: _Ints


def _plain(queues: Mapping[tuple[str, int], QueueState]) -> Iterator[tuple[tuple[str, int], _Slots]]:
    for key, state in queues.items():
        units = state.units[max(0, state.min_offset - state.first_slot) :]
        at = np.flatnonzero(is_message(units))
        offsets = state.max_offset - len(units) + at
        yield key, _Slots(offsets, np.ones(len(at), np.int64), units["phy_offset"][at].astype(np.int64))


def _batch(queues: Mapping[tuple[str, int], BatchQueueState]) -> Iterator[tuple[tuple[str, int], _Slots]]:
    for key, state in queues.items():
        units = state.units[state.units["base_queue_offset"] >= state.min_offset]
        base, count, place = (
            units[name].astype(np.int64) for name in ("base_queue_offset", "batch_size", "phy_offset")
        )
        yield key, _Slots(base, count, place)


def _of_queue(
    topic: str, queue_id: int, slots: _Slots, starts: _Ints, ends: _Ints
) -> Iterator[tuple[int, LostMessages]]:
    """Yields what a queue lost, each with the number of the hole."""
    hole = np.searchsorted(starts, slots.places, "right") - 1
    inside = (hole >= 0) & (slots.places < ends[hole])
    behind = slots.offsets + slots.counts
    at = np.flatnonzero(inside)
    if len(at):
        # Runs of offsets one behind the other in the same hole.
        cuts = (
            np.flatnonzero((hole[at][1:] != hole[at][:-1]) | (slots.offsets[at][1:] != behind[at][:-1])) + 1
        )
        for run in np.split(at, cuts):
            offsets = range(int(slots.offsets[run[0]]), int(behind[run[-1]]))
            yield int(hole[run[0]]), LostMessages(topic, queue_id, offsets, UNIT)
    for before in np.flatnonzero(slots.offsets[1:] > behind[:-1]).tolist():
        # Holes that begin before the record behind the jump and end after the record before it begins.
        first = int(np.searchsorted(ends, slots.places[before], "right"))
        last = int(np.searchsorted(starts, slots.places[before + 1], "left"))
        offsets = range(int(behind[before]), int(slots.offsets[before + 1]))
        for number in range(first, last):
            yield number, LostMessages(topic, queue_id, offsets, JUMP, is_sure=last - first == 1)
