"""Decides from the log alone whether a record names a wrong queue.

If a unit of a queue file leads to a record that names another queue, either the unit or the record is wrong.
Records of a queue have no gaps in the log. So if the unit's queue has a gap exactly there, and the queue that
the record names has no room for it, the record is damaged. This decision reads no queue files: wrong queue
files never cause a change of an undamaged log.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from seglog.storage.kernels.walk import Rows, places
from seglog.storage.walk.growable_rows import parts


@dataclass(slots=True)
class Neighbours:
    """The records of a queue around a physical offset, without a record at that offset itself.

    Attributes:
        before: Queue offset of the last record before it, -1 if there never was one; None if not known.
        after: Queue offset of the first record behind it; None if there is none, or the queue starts over
            there.
    """

    before: int | None = None
    after: int | None = None

    def leave_out(self, queue_offset: int) -> bool:
        """Returns whether the queue has a gap for a record with this offset."""
        before, after = self.before, self.after
        is_behind = before is None or before == queue_offset - 1 or (queue_offset == 0 and before > 0)
        return is_behind and (after is None or after == queue_offset + 1)

    @property
    def are_both_there(self) -> bool:
        """Whether the queue has known records on both sides."""
        return self.before is not None and self.after is not None

    def have_no_room_for(self, queue_offset: int) -> bool:
        """Returns whether no record with this offset can be between them, or follow one of them."""
        before, after = self.before, self.after
        if queue_offset > 0 and before is not None and before >= queue_offset:
            return True
        if after is not None and after <= queue_offset:
            return True
        goes_on = before is None or queue_offset in {0, before + 1}
        return not goes_on and after != queue_offset + 1


def neighbours(rows: Rows, wanted: Collection[tuple[int, int]]) -> Mapping[tuple[int, int], Neighbours]:
    """Returns the neighbours of places in queues; reads all rows once.

    Args:
        rows: ``(n,) ROW``, in log order.
        wanted: Pairs of a queue's number, as in the rows, and a physical offset.
    """
    found = {one: Neighbours() for one in wanted}
    numbers = sorted({number for number, _place in wanted})
    for part in parts(rows):
        placed = part[np.isin(part["queue"], numbers)]
        placed = placed[places(placed)]
        for number in numbers:
            own = placed[placed["queue"] == number]
            for (queue, place), around in found.items():
                if queue == number and len(own):
                    low, high = np.searchsorted(own["phy_offset"], (place, place + 1)).tolist()
                    if low:
                        around.before = int(own["queue_offset"][low - 1])
                    if high < len(own) and around.after is None:
                        around.after = int(own["queue_offset"][high])
    for around in found.values():
        # A next offset of 0: its topic was deleted and created again.
        around.after = around.after or None
    return found
