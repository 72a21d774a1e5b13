"""What a reader steps over because a repair would serve it otherwise: named as repairable, not as lost.

A reader writes nothing, so it serves no record that a certain mend would change, wherever a queue, a place or
a key leads to it. Records of which a queue offset alone is wrong are restated when they are read, and served.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from seglog.storage.batch_overlay import BatchQueueState
from seglog.storage.certain_mends.mend import Mend
from seglog.storage.findings import Finding
from seglog.storage.format.ranges import ranges_of
from seglog.storage.format.tombstone import LostRecord
from seglog.storage.lost_messages import LostMessages
from seglog.storage.lost_tail import lost_findings
from seglog.storage.queue_offsets import with_queue_offset
from seglog.storage.queue_overlay import QueueState, is_message
from seglog.storage.survey import Offsets, Survey, log_findings

Key: TypeAlias = tuple[str, int]
"""Topic and number of a queue."""
_OF_LOST: Final = frozenset({"log-hole", "log-tail-lost", "messages-lost"})


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
    found.lost_in_holes = still_lost(found.lost_in_holes, found.repairable)
    found.lost_tail = lost_behind(found.lost_tail, mends)
    end, segment = found.max_phy_offset, found.geometry.segment_size_bytes
    told = log_findings(found.log_files, found.geometry, found.holes, None, end, found.lost_in_holes)
    told += lost_findings(found.lost_tail, end, segment)
    found.findings = as_repairable(found.findings, told, mends, segment)


def as_repairable(
    findings: Sequence[Finding], told: Sequence[Finding], mends: Sequence[Mend], segment_size_bytes: int
) -> list[Finding]:
    """Returns the findings about a store that do not call lost what a mend brings back.

    Args:
        findings: What was found, before anybody asked for mends.
        told: What to say of lost messages of the log, without those that mends bring back.
        mends: What can be mended.
        segment_size_bytes: Length of the log's files.
    """
    lost = [finding for finding in told if finding.code in _OF_LOST]
    # Of a hole that took nothing else there is no more to say.
    whole = {_place(finding) for finding in findings if finding.code == "log-hole" and finding.messages} & {
        _place(finding) for finding in lost if finding.code == "log-hole" and not finding.messages
    }
    return [
        *(replace(mend.finding(segment_size_bytes), code="record-repairable") for mend in mends),
        *(finding for finding in lost if finding.code != "log-hole" or _place(finding) not in whole),
        *(finding for finding in findings if finding.code not in _OF_LOST),
    ]


def _is_served_so(slot: int | None, mend: Mend) -> bool:
    """Returns whether reads, which restate it in a queue offset, serve a record as the mend would have it."""
    return slot is not None and with_queue_offset(memoryview(mend.before), slot) == mend.after


def repairable_offsets(
    mends: Sequence[Mend],
    queues: Mapping[Key, QueueState],
    batch_queues: Mapping[Key, BatchQueueState],
) -> Offsets:
    """Returns which queue offsets records have that can be mended, in every queue that leads to them.

    Args:
        mends: Their mends.
        queues: What each plain queue must hold.
        batch_queues: The same of batch queues.
    """
    places = sorted({mend.phy_offset for mend in mends})
    offsets: defaultdict[Key, set[int]] = defaultdict(set)
    for mend in mends:
        offsets[mend.topic, mend.queue_id].add(mend.queue_offset)
    for key, state in queues.items():
        at = np.flatnonzero(np.isin(state.units["phy_offset"], places) & is_message(state.units))
        if len(at):
            offsets[key].update((state.first_slot + at).tolist())
    for key, batch in batch_queues.items():
        for unit in batch.units[np.isin(batch.units["phy_offset"], places)]:
            first = int(unit["base_queue_offset"])
            offsets[key].update(range(first, first + int(unit["batch_size"])))
    return {key: frozenset(of_queue) for key, of_queue in offsets.items()}


def still_lost(lost: Sequence[Sequence[LostMessages]], back: Offsets) -> list[list[LostMessages]]:
    """Returns what holes took, without the messages that mends bring back."""
    return [[left for one in of_hole for left in _without(one, back)] for of_hole in lost]


def lost_behind(lost: Sequence[LostRecord], mends: Sequence[Mend]) -> list[LostRecord]:
    """Returns the records behind the end of a log that queues know, without those that mends bring back."""
    back = {(mend.topic, mend.queue_id, mend.queue_offset) for mend in mends}
    return [one for one in lost if (one.topic, one.queue_id, one.queue_offset) not in back]


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


def _without(lost: LostMessages, back: Offsets) -> list[LostMessages]:
    offsets_back = back.get((lost.topic, lost.queue_id), frozenset())
    left = [(offset, 1) for offset in lost.offsets if offset not in offsets_back]
    return [replace(lost, offsets=offsets) for offsets in ranges_of(left)]
