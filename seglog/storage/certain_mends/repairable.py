"""Messages that a certain mend brings back: they are reported as repairable, not as lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from seglog.storage.certain_mends.mend import Mend
from seglog.storage.directory.queue_files import queue_directory
from seglog.storage.findings.findings import Finding
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.format.queue.consume_queue import in_use
from seglog.storage.format.ranges import ranges_of
from seglog.storage.format.record.tombstone import LostRecord
from seglog.storage.overlay import BatchQueueState, QueueState, is_message
from seglog.storage.overlay.lost_messages import LostMessages, Offsets
from seglog.storage.overlay.lost_tail import lost_findings
from seglog.storage.scan.conclusion import Conclusion, WalkedLog
from seglog.storage.scan.file_findings import log_findings
from seglog.storage.scan.listed import ListedStore
from seglog.storage.scan.queue_overlays import Key
from seglog.storage.walk.behind_damage import Hole

_OF_LOST: Final = frozenset({"log-hole", "log-tail-lost", "messages-lost"})


def name_repairable(
    store: ListedStore,
    log: WalkedLog,
    found: Conclusion,
    mends: Sequence[Mend],
    back: Offsets,
    queues: Mapping[Key, QueueState],
) -> Conclusion:
    """Returns a conclusion that reports messages of mends as repairable, not as lost.

    Args:
        store: The listing of the store.
        log: Its log.
        found: The conclusion without mends.
        mends: The mends.
        back: Their queue offsets, from :func:`repairable_offsets`.
        queues: The right content of each plain queue.
    """
    lost = [[left for one in of_hole for left in _without(one, back)] for of_hole in found.lost_in_holes]
    lost_tail = _lost_behind(found.lost_tail, mends)
    segment = store.geometry.segment_size_bytes
    told = log_findings(store.log_files, store.geometry, log.holes, None, log.end_phy_offset, lost)
    told += lost_findings(lost_tail, log.end_phy_offset, segment)
    filled = {_place_of(hole, segment) for hole in log.holes if _is_filled(hole, mends)}
    others = [*_without_gaps(found.findings, queues, back)]
    may_be_more = {_place(one) for one in found.findings if one.may_be_more}
    told = [replace(one, may_be_more=_place(one) in may_be_more) for one in told]
    findings = _as_repairable(others, told, mends, filled, segment)
    return Conclusion(findings, lost, lost_tail, found.standing, found.replaced)


def _as_repairable(
    findings: Sequence[Finding],
    told: Sequence[Finding],
    mends: Sequence[Mend],
    filled: set[tuple[str, int]],
    segment_size_bytes: int,
) -> list[Finding]:
    """Returns the findings about a store with messages of mends as repairable, not as lost.

    Args:
        findings: The findings without mends.
        told: The findings about lost messages of the log, without messages of mends.
        mends: The mends.
        filled: File and position of each hole that the mends fill.
        segment_size_bytes: Length of the log's files.
    """
    lost = [finding for finding in told if finding.code in _OF_LOST]
    # A hole without other messages needs no finding of its own.
    with_messages = {
        _place(finding) for finding in findings if finding.code == "log-hole" and finding.messages
    }
    whole = (with_messages | filled) & {
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


def _is_filled(hole: Hole, mends: Sequence[Mend]) -> bool:
    """Returns whether mends bring back every byte of a hole."""
    inside = [mend for mend in mends if hole.phy_offset <= mend.phy_offset < hole.end]
    return sum(len(mend.after) for mend in inside) == hole.size_bytes


def _without_gaps(
    findings: Iterable[Finding], queues: Mapping[Key, QueueState], back: Offsets
) -> Iterator[Finding]:
    """Yields findings; a ``queue-gap`` without the repairable messages, which have no unit either."""
    repairable: dict[str, int] = {}
    for key, offsets in back.items():
        state = queues.get(key)
        if state is not None and len(state.units):
            slots = np.array([*offsets]) - state.first_slot
            slots = slots[(slots >= 0) & (slots < len(state.units))]
            repairable[queue_directory(*key)] = int((~in_use(state.units[slots])).sum())
    for finding in findings:
        count = repairable.get(finding.file.rpartition("/")[0], 0)
        # A gap with an expected record is at the place of other records, which no mend changes.
        if finding.code != "queue-gap" or finding.expected or not count:
            yield finding
        elif finding.messages > count:
            yield replace(finding, messages=finding.messages - count)


def _lost_behind(lost: Sequence[LostRecord], mends: Sequence[Mend]) -> list[LostRecord]:
    """Returns the lost records behind the end of a log, without those that mends bring back."""
    back = {(mend.topic, mend.queue_id, mend.queue_offset) for mend in mends}
    return [one for one in lost if (one.topic, one.queue_id, one.queue_offset) not in back]


def _place(finding: Finding) -> tuple[str, int]:
    return finding.file, finding.position_bytes


def _place_of(hole: Hole, segment_size_bytes: int) -> tuple[str, int]:
    position = hole.phy_offset % segment_size_bytes
    return f"{COMMIT_LOG}/{segment_file_name(hole.phy_offset - position)}", position


def _without(lost: LostMessages, back: Offsets) -> list[LostMessages]:
    offsets_back = back.get((lost.topic, lost.queue_id), frozenset())
    left = [(offset, 1) for offset in lost.offsets if offset not in offsets_back]
    return [replace(lost, offsets=offsets) for offsets in ranges_of(left)]
