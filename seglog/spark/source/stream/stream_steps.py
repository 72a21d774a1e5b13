"""The end of a stream's next batch: found by a walk over a short stretch, by queue units over a long one.

The units of all queues show how many messages are before a place, so the place after a number of messages is
found with a few reads for each queue. A short stretch is walked, because a walk depends on the log alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import numpy as np

from seglog.spark.source.read.log_end import holes_of
from seglog.spark.source.read.losses import Loss
from seglog.spark.source.read.queue_units import Queue, StoreQueues
from seglog.spark.source.stream.store_view import StoreView
from seglog.spark.source.stream.stream_offset import Key, StoreOffset, by_key
from seglog.spark.source.wanted.selection import Chooser, Selection
from seglog.storage.kernels.walk import QueueTable, Rows, are_dispatched, places

_FEW_UNITS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Step:
    """How far a batch extends.

    Attributes:
        place: Its end, after a filler if one is at the end.
        last_phy_offset: Physical offset of its last record; -1 if the batch has none.
        queues: Next queue offset of each queue.
        taken: Number of its messages.
        reaches_end: Whether it extends to the end of the log.
        holes: Stretches without records in it, if it was walked.
    """

    place: int
    last_phy_offset: int
    queues: Mapping[Key, int]
    taken: int
    reaches_end: bool
    holes: tuple[Loss, ...] | None


def step_by_walk(
    view: StoreView, start: StoreOffset, selection: Selection, limit: int, most: int | None
) -> Step:
    """Walks on from the start of a batch.

    Args:
        view: The store.
        start: Start of the batch.
        selection: The messages that count.
        limit: Place that it does not pass.
        most: Most messages of the batch; None for all.
    """
    place = start["physicalOffset"]
    with closing(view.scan()) as scan:
        scan.resume(place, (place - 1, start["storeTimestamp"]), by_key(start["queues"]))
        steps = _Steps(start, Chooser(selection, scan.queues.names), scan.queues)
        for rows in scan.iter_rows():
            if not steps.add(rows, limit, most):
                reaches_end = False
                break
        else:
            steps.reach(min(scan.end_phy_offset, limit))
            reaches_end = steps.end == scan.end_phy_offset
        holes = tuple(hole for hole in holes_of(scan) if hole.phy_offset < steps.end)
    return Step(steps.end, steps.last_phy_offset, steps.next, steps.taken, reaches_end, holes)


def step_by_units(
    view: StoreView, start: StoreOffset, selection: Selection, limit: int, most: int | None
) -> Step:
    """Finds the end of a batch by queue units; the arguments are those of :func:`step_by_walk`."""
    queues, begin = view.queues, start["physicalOffset"]
    rooms: dict[Queue, range] = {}
    for queue in queues.ends:
        span = selection.of_queue(*queue.key)
        if span is not None:
            first = max(queues.number_at(queue, begin), queues.number_of(queue, span.first))
            end = min(queues.number_at(queue, limit), queues.number_of(queue, span.last + 1))
            rooms[queue] = range(first, max(first, end))
    total = sum(map(len, rooms.values()))
    place = limit if most is None or total <= most else _place_behind(queues, rooms, begin, limit, most)
    following: dict[Key, int] = {}
    last_phy_offset = -1
    for queue in queues.ends:
        number = queues.first_at(queue, place)
        following[queue.key] = queues.queue_offset(queue, number)
        if number:
            last = int(queues.units(queue, number - 1, number)["phy_offset"][0])
            last_phy_offset = max(last_phy_offset, last if last >= begin else -1)
    if place == view.end.phy_offset:
        last_phy_offset = max(last_phy_offset, view.end.last_phy_offset)
        following |= view.end.following
    taken = total if place == limit else min(total, most or total)
    return Step(place, last_phy_offset, following, taken, place == view.end.phy_offset, None)


def _place_behind(
    queues: StoreQueues, rooms: Mapping[Queue, range], begin: int, limit: int, most: int
) -> int:
    """Returns the end of the record that is the last of a number of messages, in the order of the log.

    Args:
        queues: The queues.
        rooms: Numbers of the units that count; together more than ``most``.
        begin: A place before all of them.
        limit: A place after all of them.
        most: The number of messages.
    """
    left, low, high = dict(rooms), begin, limit
    taken = 0
    while sum(map(len, left.values())) > _FEW_UNITS and high - low > 1:
        middle = (low + high) // 2
        cuts = {queue: queues.number_at(queue, middle, within=room) for queue, room in left.items()}
        count = sum(cut - left[queue].start for queue, cut in cuts.items())
        if taken + count >= most:
            left = {queue: range(room.start, cuts[queue]) for queue, room in left.items()}
            high = middle
        else:
            left = {queue: range(cuts[queue], room.stop) for queue, room in left.items()}
            taken, low = taken + count, middle
    units = [queues.units(queue, room.start, room.stop) for queue, room in left.items() if room]
    starts = np.concatenate([one["phy_offset"].astype(np.int64) for one in units])
    sizes = np.concatenate([one["size_bytes"].astype(np.int64) for one in units])
    last = np.argsort(starts, kind="stable")[most - taken - 1]
    return int(starts[last] + sizes[last])


class _Steps:
    """Follows a walk row by row, to the end of a batch."""

    def __init__(self, start: StoreOffset, chooser: Chooser, queues: QueueTable) -> None:
        self.end = start["physicalOffset"]
        self.last_phy_offset = -1
        self.taken = 0
        self.next: dict[Key, int] = by_key(start["queues"])
        self._chooser = chooser
        self._queues = queues

    def add(self, rows: Rows, limit: int, most: int | None) -> bool:
        """Adds rows that follow; returns whether the batch may continue after them."""
        is_whole = True
        inside = int(np.searchsorted(rows["phy_offset"], limit))
        if inside < len(rows):
            rows, is_whole = rows[:inside], False
        chosen = self._chooser.choose(rows[are_dispatched(rows)])
        if most is not None and self.taken + len(chosen) >= most:
            last = chosen[most - self.taken - 1]["phy_offset"]
            rows = rows[: int(np.searchsorted(rows["phy_offset"], last)) + 1]
            chosen, is_whole = chosen[: most - self.taken], False
        self.taken += len(chosen)
        if len(rows):
            self._take(rows)
        return is_whole

    def reach(self, end: int) -> None:
        """Adds the rest up to where the log continues: a filler."""
        self.end = max(self.end, end)

    def _take(self, rows: Rows) -> None:
        self.last_phy_offset = int(rows["phy_offset"][-1])
        self.end = self.last_phy_offset + int(rows["size_bytes"][-1])
        own = rows[places(rows)][::-1]
        numbers, last = np.unique(own["queue"], return_index=True)
        following = own["queue_offset"][last] + 1
        for number, queue_offset in zip(numbers.tolist(), following.tolist(), strict=True):
            self.next[self._queues.names[number]] = queue_offset
