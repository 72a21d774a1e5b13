"""Messages that a certain mend brings back: they are reported as repairable, not as lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from seglog.storage.certain_mends.mend import Mend
from seglog.storage.findings.findings import Finding
from seglog.storage.format.ranges import ranges_of
from seglog.storage.format.record.tombstone import LostRecord
from seglog.storage.overlay import BatchQueueState, QueueState, is_message
from seglog.storage.overlay.lost_messages import LostMessages, Offsets
from seglog.storage.overlay.lost_tail import lost_findings
from seglog.storage.scan.conclusion import Conclusion, WalkedLog
from seglog.storage.scan.file_findings import log_findings
from seglog.storage.scan.listed import ListedStore
from seglog.storage.scan.queue_overlays import Key

_OF_LOST: Final = frozenset({"log-hole", "log-tail-lost", "messages-lost"})


def name_repairable(
    store: ListedStore, log: WalkedLog, found: Conclusion, mends: Sequence[Mend], back: Offsets
) -> Conclusion:
    """Returns a conclusion that reports messages of mends as repairable, not as lost.

    Args:
        store: The listing of the store.
        log: Its log.
        found: The conclusion without mends.
        mends: The mends.
        back: Their queue offsets, from :func:`repairable_offsets`.
    """
    lost = [[left for one in of_hole for left in _without(one, back)] for of_hole in found.lost_in_holes]
    lost_tail = _lost_behind(found.lost_tail, mends)
    segment = store.geometry.segment_size_bytes
    told = log_findings(store.log_files, store.geometry, log.holes, None, log.end_phy_offset, lost)
    told += lost_findings(lost_tail, log.end_phy_offset, segment)
    return Conclusion(_as_repairable(found.findings, told, mends, segment), lost, lost_tail, found.standing)


def _as_repairable(
    findings: Sequence[Finding], told: Sequence[Finding], mends: Sequence[Mend], segment_size_bytes: int
) -> list[Finding]:
    """Returns the findings about a store with messages of mends as repairable, not as lost.

    Args:
        findings: The findings without mends.
        told: The findings about lost messages of the log, without messages of mends.
        mends: The mends.
        segment_size_bytes: Length of the log's files.
    """
    lost = [finding for finding in told if finding.code in _OF_LOST]
    # A hole without other messages needs no finding of its own.
    whole = {_place(finding) for finding in findings if finding.code == "log-hole" and finding.messages} & {
        _place(finding) for finding in lost if finding.code == "log-hole" and not finding.messages
    }
    return [
        *(replace(mend.finding(segment_size_bytes), code="record-repairable") for mend in mends),
        *(finding for finding in lost if finding.code != "log-hole" or _place(finding) not in whole),
        *(finding for finding in findings if finding.code not in _OF_LOST),
    ]


def repairable_offsets(
    mends: Sequence[Mend],
    queues: Mapping[Key, QueueState],
    batch_queues: Mapping[Key, BatchQueueState],
) -> Offsets:
    """Returns the queue offsets of mended records, in every queue with a unit for them.

    Args:
        mends: The mends.
        queues: The right content of each plain queue.
        batch_queues: The same for batch queues.
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


def _lost_behind(lost: Sequence[LostRecord], mends: Sequence[Mend]) -> list[LostRecord]:
    """Returns the lost records behind the end of a log, without those that mends bring back."""
    back = {(mend.topic, mend.queue_id, mend.queue_offset) for mend in mends}
    return [one for one in lost if (one.topic, one.queue_id, one.queue_offset) not in back]


def _place(finding: Finding) -> tuple[str, int]:
    return finding.file, finding.position_bytes


def _without(lost: LostMessages, back: Offsets) -> list[LostMessages]:
    offsets_back = back.get((lost.topic, lost.queue_id), frozenset())
    left = [(offset, 1) for offset in lost.offsets if offset not in offsets_back]
    return [replace(lost, offsets=offsets) for offsets in ranges_of(left)]
