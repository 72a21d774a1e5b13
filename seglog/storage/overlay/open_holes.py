"""Holes of a log that are larger than the queue units that lead into them explain.

Records follow each other without gaps, so units that take all of a hole name all that was there. Where bytes
are left, there may have been messages of queues whose units are lost as well: nothing can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import numpy.typing as npt

from seglog.storage.format.record.record import FILLER_BYTES
from seglog.storage.overlay.batch_overlay import BatchQueueState
from seglog.storage.overlay.queue_overlay import QueueState
from seglog.storage.walk.behind_damage import Hole

_Ints = npt.NDArray[np.int64]


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
