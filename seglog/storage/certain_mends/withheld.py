"""What a reader steps over because a repair would serve it otherwise: named as repairable, not as lost.

A reader writes nothing, so it serves no record that a certain mend would change, wherever a queue, a place or
a key leads to it. Records of which a queue offset alone is wrong are restated when they are read, and served.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from seglog.storage.certain_mends.mend import Mend
from seglog.storage.findings import Finding
from seglog.storage.get import ranges_of
from seglog.storage.lost_messages import LostMessages
from seglog.storage.queue_offsets import with_queue_offset
from seglog.storage.queue_overlay import is_message
from seglog.storage.survey import Offsets, Survey, log_findings


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
    found.repairable = _offsets(found, left_out)
    before = found.lost_in_holes
    found.lost_in_holes = [[left for one in lost for left in _without(one, found)] for lost in before]
    segment = found.geometry.segment_size_bytes
    told = log_findings(
        found.log_files, found.geometry, found.holes, None, found.max_phy_offset, found.lost_in_holes
    )
    holes = [finding for finding in told if finding.code == "log-hole"]
    # Of a hole that took nothing else there is no more to say.
    whole = {
        _place(finding) for finding in found.findings if finding.code == "log-hole" and finding.messages
    } & {_place(finding) for finding in holes if not finding.messages}
    others = [finding for finding in found.findings if finding.code != "log-hole"]
    found.findings = [
        *(replace(mend.finding(segment), code="record-repairable") for mend in mends),
        *(finding for finding in holes if _place(finding) not in whole),
        *others,
    ]


def _is_served_so(slot: int | None, mend: Mend) -> bool:
    """Returns whether reads, which restate it in a queue offset, serve a record as the mend would have it."""
    return slot is not None and with_queue_offset(memoryview(mend.before), slot) == mend.after


def _offsets(found: Survey, mends: Sequence[Mend]) -> Offsets:
    """Returns which queue offsets the records have, in every queue that leads to them."""
    places = sorted(found.withheld)
    offsets: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    for mend in mends:
        offsets[mend.topic, mend.queue_id].add(mend.queue_offset)
    for key, state in found.queues.items():
        at = np.flatnonzero(np.isin(state.units["phy_offset"], places) & is_message(state.units))
        if len(at):
            offsets[key].update((state.first_slot + at).tolist())
    for key, batch in found.batch_queues.items():
        for unit in batch.units[np.isin(batch.units["phy_offset"], places)]:
            first = int(unit["base_queue_offset"])
            offsets[key].update(range(first, first + int(unit["batch_size"])))
    return {key: frozenset(of_queue) for key, of_queue in offsets.items()}


def _place(finding: Finding) -> tuple[str, int]:
    return finding.file, finding.position_bytes


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


def _without(lost: LostMessages, found: Survey) -> list[LostMessages]:
    back = found.repairable.get((lost.topic, lost.queue_id), frozenset())
    left = [(offset, 1) for offset in lost.offsets if offset not in back]
    return [replace(lost, offsets=offsets) for offsets in ranges_of(left)]
