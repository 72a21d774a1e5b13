"""Holds all queues of a store against what the splits saw of them, and what they know behind the log's end.

As :func:`seglog.storage.survey.survey` does it, kind by kind; then records that only queues know of are
taken up, for which all queues are looked at together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from seglog.storage.audit.batch_audit import overlay_batch
from seglog.storage.audit.intact_queue import NO_UNITS, is_intact
from seglog.storage.audit.log_lookup import LogLookup
from seglog.storage.audit.queue_audit import LogView, audit_queue, overlay
from seglog.storage.audit.report import AuditQueue
from seglog.storage.audit.stitch import LogOutcome
from seglog.storage.audit.stretches import BatchRun, Interval
from seglog.storage.batch_overlay import BatchQueueState, batch_behind_findings
from seglog.storage.certain_mends.bits import DamagedLog, mends_of_records
from seglog.storage.certain_mends.mend import Mend
from seglog.storage.certain_mends.withheld import lost_behind, repairable_offsets, still_lost
from seglog.storage.files import Files
from seglog.storage.findings import Finding
from seglog.storage.format import names
from seglog.storage.format.batch_consume_queue import BATCH_UNIT
from seglog.storage.format.tombstone import LostRecord
from seglog.storage.log_files import LogReader
from seglog.storage.log_records import RecordsBehind
from seglog.storage.lost_messages import LostMessages, lost_in_holes
from seglog.storage.lost_tail import TailFacts, find_lost_tail, lost_findings, take_up
from seglog.storage.queue_files import QueueFiles
from seglog.storage.queue_overlay import QueueState, behind_findings
from seglog.storage.survey import empty_file_findings, living_queues, queue_file_findings

if TYPE_CHECKING:
    from seglog.storage.audit.plan import AuditPlan

_QueueKey = tuple[str, int]


class Concluded(NamedTuple):
    """The queues of a store.

    Attributes:
        queues: All, sorted.
        findings: What is not as it should be about them.
        lost: What each hole of the log took.
        left: What of that no mend brings back.
        lost_tail: Records behind the end of the log that no mend brings back.
        mends: Records in the holes, and at the end, that can be mended.
        states: What the plain queues must hold that are not as they should be.
    """

    queues: list[AuditQueue]
    findings: list[Finding]
    lost: list[list[LostMessages]]
    left: list[list[LostMessages]]
    lost_tail: list[LostRecord]
    mends: list[Mend]
    states: list[QueueState]


def conclude_queues(plan: AuditPlan, log: LogOutcome, start: int, files: Files) -> Concluded:
    """Returns all queues, what is not as it should be about them, and what each hole took.

    Args:
        plan: What the listing shows.
        log: What the splits saw.
        start: Where the log starts.
        files: Where the store is.
    """
    intervals: defaultdict[_QueueKey, list[Interval]] = defaultdict(list)
    runs: defaultdict[_QueueKey, list[BatchRun]] = defaultdict(list)
    for stretch in log.stretches:
        for interval in stretch.intervals:
            intervals[interval.topic, interval.queue_id].append(interval)
        for run in stretch.batch_runs:
            runs[run.topic, run.queue_id].append(run)
    plain_bytes, batch_bytes = plan.geometry.queue_file_size_bytes, plan.geometry.batch_file_size_bytes
    living, findings = living_queues(files, plan.root, plan.mode, intervals.keys(), plan.queue_files.keys())
    folder = names.BATCH_CONSUME_QUEUE
    living_batch, wrong = living_queues(
        files, plan.root, plan.mode, runs.keys(), plan.batch_files.keys(), folder
    )
    findings += wrong
    findings += _size_findings(plan)
    states: dict[_QueueKey, QueueState] = {}
    intact: dict[_QueueKey, QueueState] = {}
    batch_states: dict[_QueueKey, BatchQueueState] = {}
    queues: list[AuditQueue] = []
    lookup = LogLookup(files, plan.root, plan.geometry, log.stretches)
    try:
        view = LogView(start, log.end_phy_offset, log.holes, lookup)
        for key in living:
            if key[0] in plan.batch_topics:
                continue
            queue = plan.queue_files.get(key) or QueueFiles(*key, plan.root)
            if is_intact(queue, intervals[key], view, files, plain_bytes):
                # Its units need not be held, which they are of all queues that are not as they should be.
                first, end = intervals[key][0].first_queue_offset, intervals[key][-1].end_queue_offset
                intact[key] = QueueState(*key, end, NO_UNITS, first, [], agrees=True)
            else:
                states[key] = overlay(queue, intervals[key], view, files, plain_bytes)
        for key in living_batch:
            queue = plan.batch_files.get(key) or QueueFiles(*key, plan.root, BATCH_UNIT, folder)
            batch_states[key], audited = overlay_batch(queue, runs[key], view, files, batch_bytes)
            queues.append(audited)
    finally:
        lookup.close()
    lost = lost_in_holes(log.holes, states, batch_states)
    lost_tail = _take_up_lost(plan, log, states, batch_states, files)
    findings += lost_findings(lost_tail, log.end_phy_offset, plan.geometry.segment_size_bytes)
    torn_at = None if log.tail is None else log.end_phy_offset
    segment = plan.geometry.segment_size_bytes
    mends = list(
        mends_of_records(DamagedLog(plan.root, segment, log.holes, torn_at, states, batch_states), files)
    )
    left = still_lost(lost, repairable_offsets(mends, states, batch_states)) if mends else lost
    for at, key in enumerate(batch_states):
        batch = batch_states[key]
        queues[at] = replace(queues[at], min_offset=batch.min_offset, max_offset=batch.max_offset)
        findings += batch.findings + batch_behind_findings(batch, log.end_phy_offset, batch_bytes)
    for key, state in states.items():
        queues.append(audit_queue(state, intervals[key]))
        findings += state.findings + behind_findings(state, log.end_phy_offset, plain_bytes)
    queues += [audit_queue(state, intervals[key]) for key, state in intact.items()]
    findings += _empty_file_findings(plan, files, {**states, **intact})
    in_order = sorted(queues, key=lambda queue: (queue.topic, queue.queue_id))
    return Concluded(in_order, findings, lost, left, lost_behind(lost_tail, mends), mends, [*states.values()])


def _size_findings(plan: AuditPlan) -> list[Finding]:
    """Returns what is not as it should be about names and lengths of queue files."""
    findings: list[Finding] = []
    if plan.geometry.is_queue_file_known:
        for queue in plan.queue_files.values():
            findings += queue_file_findings(queue, plan.geometry.queue_file_size_bytes)
    for queue in plan.batch_files.values():
        findings += queue_file_findings(queue, plan.geometry.batch_file_size_bytes)
    return findings


def _empty_file_findings(
    plan: AuditPlan, files: Files, states: Mapping[_QueueKey, QueueState]
) -> list[Finding]:
    return [
        finding
        for key, state in states.items()
        if key in plan.queue_files
        for finding in empty_file_findings(files, plan.queue_files[key], state.max_offset)
    ]


def _take_up_lost(
    plan: AuditPlan,
    log: LogOutcome,
    states: Mapping[_QueueKey, QueueState],
    batch_states: Mapping[_QueueKey, BatchQueueState],
    files: Files,
) -> list[LostRecord]:
    """Takes up what the queues know of records behind the end of the log, as the survey does."""
    if not plan.log_files:
        return []
    segment = plan.geometry.segment_size_bytes
    reader = LogReader(files, plan.root, segment)
    behind = RecordsBehind(reader, log.end_phy_offset, segment)
    files_end = max(file.first_offset for file in plan.log_files) + segment
    # Only the exact places of tombstones depend on the record CRC, and nothing here does on those.
    facts = TailFacts(log.end_phy_offset, files_end, segment, record_crc=False, is_record=behind.has_record)
    try:
        lost = find_lost_tail(states, batch_states, facts)
    finally:
        reader.close()
    last_ms = log.stretches[-1].last_store_timestamp_ms if log.stretches else 0
    take_up(lost, states, batch_states, facts, max(1, last_ms))
    return lost
