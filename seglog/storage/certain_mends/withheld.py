"""What a reader steps over because a repair would serve it otherwise: named as repairable, not as lost.

A reader writes nothing, so it leaves a record out that a certain mend would give to another queue, and a
record in a hole or at the torn end that a mend would bring back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from seglog.storage.certain_mends.mend import Mend
from seglog.storage.findings import Finding
from seglog.storage.get import ranges_of
from seglog.storage.lost_messages import LostMessages
from seglog.storage.queue_overlay import is_message
from seglog.storage.survey import Survey, log_findings


def withhold(found: Survey, mends: Sequence[Mend]) -> None:
    """Takes what mends would change out of a survey, and says so in its findings.

    Args:
        found: The survey, which is changed.
        mends: Its certain mends, none of which is made.
    """
    if not mends:
        return
    for mend in mends:
        _leave_out(found, mend)
    back = {(mend.topic, mend.queue_id, mend.queue_offset) for mend in mends}
    before = found.lost_in_holes
    found.lost_in_holes = [[left for one in lost for left in _without(one, back)] for lost in before]
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


def _without(lost: LostMessages, back: set[tuple[str, int, int]]) -> list[LostMessages]:
    left = [(offset, 1) for offset in lost.offsets if (lost.topic, lost.queue_id, offset) not in back]
    return [replace(lost, offsets=offsets) for offsets in ranges_of(left)]
