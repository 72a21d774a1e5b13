"""What the log itself says of a record that may name a wrong queue: does it lack it here, does it fit there?

A queue file that leads to a record of another queue is wrong itself, or the record is. Records of a queue
follow each other in the log without gaps, so where both the queue that the file is of has its gap just there
and the queue that the record names has no room for it, the log is damaged. Nothing of this reads queue files:
however those are mended, a sound log is never written over for their sake.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from seglog.storage.kernels.walk import Rows, places
from seglog.storage.walk.growable_rows import parts


@dataclass(slots=True)
class Neighbours:
    """The records of a queue around a place of the log; one at the place itself is left out.

    Attributes:
        before: Queue offset of the last one in front of it, -1 if there never was one; None if not known.
        after: Queue offset of the first one behind it; None if there is none, or the queue begins anew there.
    """

    before: int | None = None
    after: int | None = None

    def leave_out(self, queue_offset: int) -> bool:
        """Returns whether the queue may lack a record of just that offset."""
        before, after = self.before, self.after
        is_behind = before is None or before == queue_offset - 1 or (queue_offset == 0 and before > 0)
        return is_behind and (after is None or after == queue_offset + 1)

    @property
    def are_both_there(self) -> bool:
        """Whether something is known of the queue on both sides."""
        return self.before is not None and self.after is not None

    def have_no_room_for(self, queue_offset: int) -> bool:
        """Returns whether no record of that offset can stand between them, or follow one of them."""
        before, after = self.before, self.after
        if queue_offset > 0 and before is not None and before >= queue_offset:
            return True
        if after is not None and after <= queue_offset:
            return True
        goes_on = before is None or queue_offset in {0, before + 1}
        return not goes_on and after != queue_offset + 1


def neighbours(rows: Rows, wanted: Collection[tuple[int, int]]) -> Mapping[tuple[int, int], Neighbours]:
    """Returns the neighbours of each of some places in each of some queues; looks through all rows once.

    Args:
        rows: ``(n,) ROW``, in log order.
        wanted: Number of a queue, as the rows have it, and a place.
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
        # Its topic was deleted and created anew.
        around.after = around.after or None
    return found
