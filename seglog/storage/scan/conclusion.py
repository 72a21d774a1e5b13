"""The findings about a store whose log was walked: the only place that collects them.

A survey, a survey from a recovery point, and an audit differ in their walk of the log and in the data that
they keep. All three get their findings here, so that they report the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from seglog.storage.directory import LogReader, no_queue_length
from seglog.storage.directory.log_facts import MOST_RECORD_BYTES
from seglog.storage.directory.log_gone import log_gone
from seglog.storage.files.files import Files
from seglog.storage.findings.findings import Finding
from seglog.storage.format.record.record import Damage
from seglog.storage.format.record.tombstone import LostRecord
from seglog.storage.overlay.batch_overlay import batch_behind_findings
from seglog.storage.overlay.lost_messages import LostMessages, lost_in_holes, open_holes
from seglog.storage.overlay.lost_tail import TailFacts, find_lost_tail, lost_findings, take_up
from seglog.storage.overlay.queue_overlay import behind_findings
from seglog.storage.scan.derived_findings import LogTail, checkpoint_findings, config_findings
from seglog.storage.scan.file_findings import (
    empty_file_findings,
    log_findings,
    queue_file_findings,
    tombstone_findings,
)
from seglog.storage.scan.foreign_queues import stray_queues, unknown_queues, was_longer, with_strays
from seglog.storage.scan.holes_file import KnownHole
from seglog.storage.scan.listed import ListedStore
from seglog.storage.scan.message_counts import standing_losses
from seglog.storage.scan.new_queues import excuse_new_queues
from seglog.storage.scan.queue_overlays import Overlays
from seglog.storage.scan.replaced_log import ReplacedLog, close_queues, find_replaced
from seglog.storage.scan.rocksdb_findings import with_rocksdb
from seglog.storage.walk.behind_damage import Hole
from seglog.storage.walk.log_records import RecordsBehind, record_at


@dataclass(frozen=True, slots=True)
class WalkedLog:
    """A log that was walked to its end.

    Attributes:
        holes: Its unreadable stretches, in order.
        tail: The damage at its end, None if nothing was written there.
        end_phy_offset: Its end.
        newest_ms: Latest store time of all records, None without any.
        last_ms: Store time of the last record.
        record_crc: Whether the last record has ``__CRC32#``; of findings none depends on it.
    """

    holes: Sequence[Hole]
    tail: Damage | None
    end_phy_offset: int
    newest_ms: int | None
    last_ms: int
    record_crc: bool = False


@dataclass(slots=True)
class Conclusion:
    """The conclusion of a walk.

    Attributes:
        findings: The findings.
        lost_in_holes: The messages that were in each hole of the log.
        lost_tail: Records behind the end of the log that only queue units prove, in log order.
        standing: Stretches of the log whose losses earlier recoveries have written down.
        replaced: The files of the log that were replaced.
    """

    findings: list[Finding]
    lost_in_holes: list[list[LostMessages]]
    lost_tail: list[LostRecord]
    standing: list[KnownHole]
    replaced: ReplacedLog


def conclude(store: ListedStore, log: WalkedLog, queues: Overlays, files: Files) -> Conclusion:
    """Returns the conclusion of a walk.

    Args:
        store: The listing of the store.
        log: Its log.
        queues: Its queues; lost records behind the end of the log are added to them.
        files: The file layer of the store.
    """
    root, geometry, end = store.root, store.geometry, log.end_phy_offset
    segment = geometry.segment_size_bytes
    replaced = find_replaced(store, queues, log.holes, end, files)
    lost = lost_in_holes(log.holes, queues.plain, queues.batch)
    open_at = _open_holes(store, log, queues, files)
    lost_tail = _take_up_lost(store, log, queues, replaced, files)
    strays = stray_queues(store, queues, files)
    extent = max(0, store.log_start(end)), end
    standing = standing_losses(files, root, segment, extent, log.holes)
    findings = [
        *store.findings,
        *log_findings(store.log_files, geometry, log.holes, log.tail, end, lost, open_at),
        *replaced.findings,
        *queues.findings,
        *lost_findings(lost_tail, end, segment),
        *tombstone_findings(standing, segment),
    ]
    if log.newest_ms is not None:
        log_end = LogTail(log.newest_ms, log.last_ms, end)
        findings += checkpoint_findings(files, root, store.checkpoint, log_end, store.mode)
    findings += config_findings(files, root)
    if queues.plain:
        findings += no_queue_length(geometry, findings)
    findings += _of_queue_files(store)
    excuse_new_queues(store, queues, end, files)
    for key, state in queues.plain.items():
        state.findings += behind_findings(state, end, geometry.queue_file_size_bytes)
        if key in store.queue_files:
            state.findings += empty_file_findings(
                files, store.queue_files[key], state.max_offset, is_closed=store.mode == "normal"
            )
        findings += state.findings
    for batch in queues.batch.values():
        batch.findings += batch_behind_findings(batch, end, geometry.batch_file_size_bytes)
        findings += batch.findings
    findings = with_strays(findings, strays)
    with_files = [*store.queue_files.values(), *store.batch_files.values()]
    if not store.log_files and (gone := log_gone(files, root, with_files)):
        findings = gone + [one for one in findings if one.code != "queue-beyond-log"]
    findings = with_rocksdb(store, findings, queues, files)
    return Conclusion(findings, lost, lost_tail, standing, replaced)


def _of_queue_files(store: ListedStore) -> list[Finding]:
    findings: list[Finding] = []
    if store.geometry.is_queue_file_known:
        for queue in store.queue_files.values():
            findings += queue_file_findings(queue, store.geometry.queue_file_size_bytes)
    for queue in store.batch_files.values():
        findings += queue_file_findings(queue, store.geometry.batch_file_size_bytes)
    return findings


def _open_holes(store: ListedStore, log: WalkedLog, queues: Overlays, files: Files) -> frozenset[int]:
    segment = store.geometry.segment_size_bytes
    with closing(LogReader(files, store.root, segment)) as reader:

        def size_at(phy_offset: int) -> int:
            found = record_at(reader, phy_offset, verify=False, most_bytes=MOST_RECORD_BYTES)
            return 0 if found is None else found[1].size_bytes

        return open_holes(log.holes, queues.plain, queues.batch, segment, size_at)


def _take_up_lost(
    store: ListedStore, log: WalkedLog, queues: Overlays, replaced: ReplacedLog, files: Files
) -> list[LostRecord]:
    """Adds the lost records after the end of the log to their queues; returns them.

    The records that close queues which end in a replaced file come behind these.
    """
    if not store.log_files:
        return []
    segment = store.geometry.segment_size_bytes
    with closing(LogReader(files, store.root, segment)) as reader:
        facts = TailFacts(
            log.end_phy_offset,
            max(file.first_offset for file in store.log_files) + segment,
            segment,
            RecordsBehind(reader, log.end_phy_offset, segment).has_record,
            tuple(replaced.marks),
            replaced.foreign,
            unknown_queues(store, queues, files),
            partial(was_longer, store, log.tail, log.newest_ms, log.end_phy_offset, files),
        )
        lost = find_lost_tail(queues.plain, queues.batch, facts)
    last_ms = max(1, log.last_ms)
    take_up(lost, queues.plain, queues.batch, last_ms, record_crc=log.record_crc)
    end = lost[-1].end if lost else log.end_phy_offset
    replaced.closing.extend(close_queues(queues, end, segment, last_ms, record_crc=log.record_crc))
    take_up(replaced.closing, queues.plain, queues.batch, last_ms, record_crc=log.record_crc)
    return lost
