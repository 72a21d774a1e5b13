"""What a reader steps over because a repair would serve it otherwise: named as repairable, not as lost.

A reader writes nothing, so it serves no record that a certain mend would change, wherever a queue, a place or
a key leads to it. Records of which a queue offset alone is wrong are restated when they are read, and served.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seglog.storage.certain_mends.mend import Mend
from seglog.storage.certain_mends.repairable import name_repairable, repairable_offsets
from seglog.storage.overlay.queue_overlay import is_message
from seglog.storage.scan.conclusion import Conclusion, WalkedLog
from seglog.storage.survey.survey import Survey
from seglog.storage.walk.queue_offsets import with_queue_offset


def withhold(found: Survey, mends: Sequence[Mend]) -> None:
    """Takes what mends would change out of a survey, and says so in its findings.

    Args:
        found: The survey, which is changed.
        mends: Its certain mends, none of which is made.
    """
    if not mends:
        return
    restated = found.mended
    left_out = [mend for mend in mends if not _is_served_so(restated.get(mend.phy_offset), mend)]
    found.withheld = frozenset(mend.phy_offset for mend in left_out)
    for mend in left_out:
        _leave_out(found, mend)
    found.repairable = repairable_offsets(left_out, found.queues, found.batch_queues)
    log = WalkedLog(found.holes, None, found.max_phy_offset, None, found.scan.last_store_ms)
    seen = Conclusion(found.findings, found.lost_in_holes, found.lost_tail, found.standing)
    seen = name_repairable(found, log, seen, mends, found.repairable)
    found.findings, found.lost_in_holes, found.lost_tail = seen.findings, seen.lost_in_holes, seen.lost_tail


def _is_served_so(slot: int | None, mend: Mend) -> bool:
    """Returns whether reads, which restate it in a queue offset, serve a record as the mend would have it."""
    return slot is not None and with_queue_offset(memoryview(mend.before), slot) == mend.after


def _leave_out(found: Survey, mend: Mend) -> None:
    """Takes a record out of the queue that it names, where that is not the one that it belongs to."""
    at = int(np.searchsorted(found.rows["phy_offset"], mend.phy_offset))
    if at == len(found.rows) or int(found.rows["phy_offset"][at]) != mend.phy_offset:
        return
    key = found.scan.queues.names[int(found.rows["queue"][at])]
    state = found.queues.get(key)
    if state is None or key == (mend.topic, mend.queue_id):
        return
    state.units = state.units.copy()
    state.units[state.units["phy_offset"] == mend.phy_offset] = 0
    if not is_message(state.units).any():
        del found.queues[key]
