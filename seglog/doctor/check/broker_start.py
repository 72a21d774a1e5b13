"""Predicts what RocketMQ does when it starts on a store: it starts, refuses, or cuts off part of the log.

The prediction follows RocketMQ 5.4.0 (``store/.../CommitLog.java`` recoverNormally and recoverAbnormally,
``MappedFileQueue.java`` load), and a test compares it with what RocketMQ did with real stores
(``tests/interop/repaired/test_triage.py``). If the findings allow several outcomes, the answer is "not
known".
"""

from __future__ import annotations

import enum
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

from seglog.doctor.check.recovery_walk import RecoveryWalk, first_walked, recovery_walk
from seglog.storage.audit import AuditPlan, AuditQueue, Stitched
from seglog.storage.directory import LogFile, LogReader, StoreGeometry, folder_of_queue, queue_directory
from seglog.storage.files import Files
from seglog.storage.findings import Finding, Severity
from seglog.storage.format.layout import I32, I64
from seglog.storage.format.names import (
    BATCH_CONSUME_QUEUE,
    COMMIT_LOG,
    CONSUME_QUEUE,
    LMQ_PREFIX,
    parse_segment_file_name,
    segment_file_name,
)
from seglog.storage.format.record import (
    CRC_MASK,
    FILLER,
    FILLER_BYTES,
    HEAD_V4,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    PHY_OFFSET_AT,
    Damage,
    examine,
)
from seglog.storage.scan import MessageCounts
from seglog.storage.splits import Stretch, UnitState
from seglog.storage.walk import MISSING, Hole, LogScan, record_at

REFUSED: Final = frozenset(
    {
        "compaction-file",
        "ext-file",
        "log-file-packed",
        "log-file-size",
        "log-file-stray",
        "log-length-unknown",
        "queue-file-size",
        "queue-file-stray",
        "queue-kind",
        "timer-log-file",
        "timer-wheel-size",
    }
)
"""Codes of findings with which RocketMQ does not start, unless the file is empty or as long as the others."""

UNCERTAIN: Final = frozenset(
    {
        "compaction-leftover",
        "compaction-pair",
        "config-lost",
        "config-shape",
        "erase-unfinished",
        "file-kind",
        "file-owner",
        "file-permission",
        "file-unreadable",
        "log-file-doubled",
        "log-file-misnamed",
        "log-file-missing",
        "log-folder",
        "queue-file-due",
        "queue-file-empty",
        "queue-length-unknown",
        "rocksdb-damaged",
        "undo-unfinished",
    }
)
"""Codes of findings with which it may not start, or which it makes worse in several ways."""

UNQUEUED: Final = frozenset({"queue-due", "queue-missing", "queue-short", "queue-unit-wrong"})
"""Codes of findings that count readable messages which their queues lack."""

_ASSUMED: Final = "how long its files must be is not stated"

_STRAYS: Final = frozenset({"log-file-stray", "queue-file-stray"})


class Start(enum.Enum):
    """Whether RocketMQ starts on a store."""

    YES = "yes"
    NO = "no"
    LOSES = "loses"
    """It starts, and loses messages that could be read."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class BrokerStart:
    """What RocketMQ does when it starts on a store.

    Attributes:
        start: Whether it starts.
        why: The reason; for :attr:`Start.YES` what a later crash would cost, empty if nothing.
        cut_at: Physical offset at which it cuts the log, -1 if it does not cut.
        cut_messages: Number of readable or repairable messages that it cuts off. For :attr:`Start.LOSES` at
            this start; otherwise at a start after a crash.
        cut_counted: How many of these have findings of their own: they cannot be read now, or their queues
            lack them.
        end_phy_offset: End of the log after this start, which is not that of a check if RocketMQ cuts the log
            or reads on in a file that does not follow; -1 if it does not start, or if that is not known.
        walk: The part of the log that it reads before it serves the store; None if it does not start, or if
            that is not known.
        unqueued_before: Number of messages before that part which their queues lack, or lead past.
        is_assumed: Whether it is not known only because nothing states how long the files are; the rest is
            what it does if they are as long as they should be.
    """

    start: Start
    why: str = ""
    cut_at: int = -1
    cut_messages: int = 0
    cut_counted: int = 0
    end_phy_offset: int = -1
    walk: RecoveryWalk | None = None
    unqueued_before: int = 0
    is_assumed: bool = False

    @property
    def reason(self) -> str:
        """Why it does that; empty if it starts."""
        if self.is_assumed:
            return _ASSUMED
        return "" if self.start is Start.YES else self.why


def broker_start(
    store: AuditPlan,
    log: Stitched,
    files: Files,
    findings: Sequence[Finding],
    unqueued: Counter[str],
    *,
    is_live: bool,
) -> BrokerStart:
    """Returns what RocketMQ does when it starts on a store in its present state.

    That is if its files are as long as they should be; see :func:`if_as_long`.

    Args:
        store: The files of the store.
        log: The log.
        files: Access to the files.
        findings: The findings of a check.
        unqueued: What :func:`unqueued_messages` returns for these.
        is_live: Whether a process has the store open.
    """
    # Of a note, too, RocketMQ may make more than seglog does.
    serious = [one for one in findings if one.severity is not Severity.NOTE or one.code in UNCERTAIN]

    def behind(hole: Hole) -> tuple[int, int]:
        return _behind(hole, log, findings, unqueued)

    def without_walk(start: Start, finding: Finding) -> BrokerStart:
        why = f"{finding.meaning}: {finding.file}"
        with closing(LogReader(files, store.root, store.geometry.segment_size_bytes)) as reader:
            firsts = _firsts(store)
            hole = next((one for one in log.log.holes if _cut_at(reader, firsts, one) is not None), None)
        return BrokerStart(start, why, -1, *((0, 0) if hole is None else behind(hole)))

    for finding in serious:
        # A broker with queues in RocksDB may not load the queue files that are left beside them.
        is_unused = bool(store.rocksdb_queues) and finding.code.startswith("queue-")
        if finding.code in REFUSED and not is_unused and not _may_pass(store, files, finding):
            return without_walk(Start.NO, finding)
    if is_live:
        return BrokerStart(Start.UNKNOWN, "a process has the store open; stop it and check again")
    if any(finding.code == "log-empty" for finding in serious):
        why = "there is no commit log: it would delete all queue files"
        return BrokerStart(Start.LOSES, why, end_phy_offset=0)
    for finding in serious:
        is_remade = finding.code == "queue-length-unknown" and not store.has_queue_files
        if finding.code in UNCERTAIN | REFUSED and not is_remade:
            return without_walk(Start.UNKNOWN, finding)
    if store.rocksdb_queues:
        return _with_rocksdb(store, log, behind)
    with closing(LogReader(files, store.root, store.geometry.segment_size_bytes)) as reader:
        first = first_walked(store, reader, findings, log.log.holes)
        answer = _of_log(store, log, reader, first, behind)
        if first is None or not store.log_files:
            return answer
        end = log.log.end_phy_offset
        if answer.end_phy_offset >= 0:
            end = min(end, answer.end_phy_offset)
        before = [one for one in log.log.stretches if one.start < first]
        lacking = _by_queue(before, lacks_unit=True, end_phy_offset=first) & unqueued
        return replace(answer, walk=recovery_walk(store, reader, first, end), unqueued_before=lacking.total())


def if_as_long(found: BrokerStart, geometry: StoreGeometry) -> BrokerStart:
    """Returns what RocketMQ does as far as it is known how long the files of a store must be.

    Args:
        found: What it does if they are as long as they should be.
        geometry: Their lengths.
    """
    if found.start is not Start.YES or not geometry.is_assumed:
        return found
    return replace(found, start=Start.UNKNOWN, is_assumed=True)


def _with_rocksdb(
    store: AuditPlan, log: Stitched, behind_of: Callable[[Hole], tuple[int, int]]
) -> BrokerStart:
    """Returns what RocketMQ does with queues in RocksDB, which say from where on it walks the log."""
    if log.log.holes:
        why = f"it walks the log from where {store.rocksdb_queues[0].name}/ (RocksDB) says"
        return BrokerStart(Start.UNKNOWN, why, -1, *behind_of(log.log.holes[0]))
    return BrokerStart(Start.YES, end_phy_offset=log.log.end_phy_offset)


def _may_pass(store: AuditPlan, files: Files, finding: Finding) -> bool:
    """Returns whether RocketMQ may start with a file: it compares lengths, and removes an empty last file."""
    if finding.code == "queue-kind":  # it is about a folder, also if that is empty
        return False
    path = store.root / finding.file
    sizes = {one.name: one.size_bytes for one in files.list_dir(path.parent)}
    size = sizes.pop(path.name, None)
    if finding.code == "timer-log-file":
        return size == 0 or size in sizes.values()
    lengths = store.geometry.segment_size_bytes, store.geometry.queue_file_size_bytes
    return size == 0 or (finding.code in _STRAYS and size in lengths)


def _of_log(
    store: AuditPlan,
    log: Stitched,
    reader: LogReader,
    begin: int | None,
    behind_of: Callable[[Hole], tuple[int, int]],
) -> BrokerStart:
    firsts = _firsts(store)
    last = max(firsts, default=0)
    segment = store.geometry.segment_size_bytes
    after_crash = BrokerStart(Start.YES, end_phy_offset=_end_uncut(log, reader, firsts, begin))
    for hole in log.log.holes:
        place = f"{COMMIT_LOG}/{segment_file_name(hole.phy_offset - hole.phy_offset % segment)}"
        place += f" +{hole.phy_offset % segment}"
        cut_at = _cut_at(reader, firsts, hole)
        if cut_at is None:
            continue
        behind = behind_of(hole)
        if begin is not None and hole.end <= begin:
            if not after_crash.why:
                why = f"after a crash it may cut the log at {place}"
                after_crash = BrokerStart(
                    Start.YES, why, -1, *behind, end_phy_offset=after_crash.end_phy_offset
                )
            continue
        if begin is None and hole.phy_offset < last:
            why = f"the queues do not say whether it walks the log from before {place}"
            return BrokerStart(Start.UNKNOWN, why, -1, *behind)
        if hole.why == MISSING.kind:
            return BrokerStart(Start.UNKNOWN, f"a file of the log is missing at {place}", -1, *behind)
        if behind[0] == 0:
            return replace(after_crash, end_phy_offset=cut_at)
        why = f"it cuts the log at {place}"
        return BrokerStart(Start.LOSES, why, cut_at, *behind, end_phy_offset=cut_at)
    return after_crash


def _firsts(store: AuditPlan) -> list[int]:
    return sorted(file.first_offset for file in store.log_files)


def _cut_at(reader: LogReader, firsts: Sequence[int], hole: Hole) -> int | None:
    """Returns the physical offset within a hole at which RocketMQ cuts the log; None if it reads on."""
    place = hole.phy_offset
    while hole.why != MISSING.kind and place < hole.end:
        following = _following(reader, firsts, place)
        if following is None:
            return place
        place = following
    return None if place == hole.end else hole.phy_offset


def _end_uncut(log: Stitched, reader: LogReader, firsts: Sequence[int], begin: int | None) -> int:
    """Returns the physical offset at which RocketMQ ends a log in whose holes it does not cut it."""
    place = max(log.log.end_phy_offset, begin or 0)
    if firsts and place not in firsts and place - log.plan.geometry.segment_size_bytes in firsts:
        place = _behind_last(log, reader, place)
    while (following := _following(reader, firsts, place)) is not None:
        place = following
    return place


def _behind_last(log: Stitched, reader: LogReader, end: int) -> int:
    """Returns the physical offset behind the last record of a full file, where its filler is.

    Args:
        log: The log.
        reader: Reads it.
        end: Physical offset behind the file.
    """
    segment = log.plan.geometry.segment_size_bytes
    first = end - segment
    with closing(LogScan(reader, [LogFile(first, segment)], segment, verify=False)) as scan:
        for _rows in scan.iter_rows():
            pass  # only the last record matters here
        last = max(first, scan.last_phy_offset)
        found = record_at(reader, last, verify=False)
    return first if found is None else last + found[1].size_bytes


def _following(reader: LogReader, firsts: Sequence[int], phy_offset: int) -> int | None:
    """Returns the place that RocketMQ's recovery reads after a place; None if the log ends there for it.

    After the filler of a file it reads the next file that there is, without a look at its name. If there is
    none, the log ends before the filler.

    Args:
        reader: Reads the log.
        firsts: Physical offsets of the first bytes of its files, sorted.
        phy_offset: The place.
    """
    if size_bytes := _taken_bytes(reader, phy_offset):
        return phy_offset + size_bytes
    head = reader.read(phy_offset, FILLER_BYTES)
    size_bytes, magic = FILLER.struct.unpack(head) if len(head) == FILLER_BYTES else (0, 0)
    if magic != MAGIC_BLANK or size_bytes > reader.available(phy_offset):
        return None
    return next((first for first in firsts if first > phy_offset), None)


def _taken_bytes(reader: LogReader, phy_offset: int) -> int:
    """Returns the length of the record that RocketMQ's recovery accepts at a place; 0 if it accepts none.

    RocketMQ checks magic, lengths and the CRC of the body (``CommitLog.checkMessageAndReturnSize``). It
    checks neither the place that a record states nor its queue.
    """
    head = reader.read(phy_offset, FILLER_BYTES)
    size_bytes, magic = FILLER.struct.unpack(head) if len(head) == FILLER_BYTES else (0, 0)
    if magic not in (MAGIC_V1, MAGIC_V2):
        return 0  # a filler may be as long as its file: it is not read
    record = bytearray(reader.read(phy_offset, max(0, size_bytes)))
    if len(record) != size_bytes or size_bytes < HEAD_V4.size_bytes:
        return 0
    for at in (HEAD_V4.offsets["queue_id"], HEAD_V4.offsets["queue_offset"]):
        record[at] &= 0x7F  # it takes negative ones
    I64.pack_into(record, PHY_OFFSET_AT, phy_offset)
    row = examine(memoryview(record), 0, phy_offset, verify=False)
    if isinstance(row, Damage) or row.size_bytes != size_bytes:
        return 0
    body = record[row.body_at : row.body_at + row.body_bytes]
    (said,) = I32.unpack_from(record, HEAD_V4.offsets["body_crc"])
    return size_bytes if not body or zlib.crc32(body) & CRC_MASK == said else 0


def unqueued_messages(
    findings: Iterable[Finding], queues: Iterable[AuditQueue], counts: MessageCounts
) -> Counter[str]:
    """Returns the number of readable messages that each queue lacks, by the queue's folder.

    Args:
        findings: The findings of a check; they count tombstones too.
        queues: The queues.
        counts: Their messages.
    """
    lacking: Counter[str] = Counter()
    for finding in findings:
        if finding.code in UNQUEUED:
            lacking[folder_of_queue(finding.file)] += finding.messages
    held: Counter[str] = Counter()
    for queue in queues:
        folder = BATCH_CONSUME_QUEUE if queue.kind == "batch" else CONSUME_QUEUE
        of_queue = counts.messages_of.get((queue.topic, queue.queue_id), 0)
        held[queue_directory(queue.topic, queue.queue_id, folder)] += of_queue
    return lacking & held


def _behind(
    hole: Hole, log: Stitched, findings: Sequence[Finding], unqueued: Counter[str]
) -> tuple[int, int]:
    """Returns how many messages a cut at a hole loses, and how many of them findings count as well."""
    at_hole = [finding for finding in findings if phy_offset_of(finding) >= hole.phy_offset]
    repairable = sum(finding.code == "record-repairable" for finding in at_hole)
    tombstones = sum(finding.messages for finding in at_hole if finding.code == "tombstones")
    stretches = [one for one in log.log.stretches if one.start >= hole.phy_offset]
    stored = _by_queue(stretches)
    readable = max(0, stored.total() - tombstones)
    return readable + repairable, repairable + (_by_queue(stretches, lacks_unit=True) & unqueued).total()


def _by_queue(
    stretches: Iterable[Stretch], *, lacks_unit: bool = False, end_phy_offset: int = sys.maxsize
) -> Counter[str]:
    """Returns the number of records of each queue's folder, all or those without a right unit.

    A record in LMQ queues is counted in the queue of its own topic. Runs of records that begin at
    ``end_phy_offset`` or later are left out.
    """
    counted: Counter[str] = Counter()
    for stretch in stretches:
        for interval in stretch.intervals:
            is_lmq = interval.topic.startswith(LMQ_PREFIX)
            if interval.first_phy_offset >= end_phy_offset:
                continue
            if not is_lmq and not (lacks_unit and interval.unit_state is UnitState.AGREES):
                counted[queue_directory(interval.topic, interval.queue_id)] += interval.records
        for run in stretch.batch_runs:
            if run.units or not lacks_unit:
                counted[queue_directory(run.topic, run.queue_id, BATCH_CONSUME_QUEUE)] += run.records
    return counted


def phy_offset_of(finding: Finding) -> int:
    """Returns the physical offset that a finding about the log names."""
    first = parse_segment_file_name(finding.file.rpartition("/")[2])
    return finding.position_bytes + (first or 0)
