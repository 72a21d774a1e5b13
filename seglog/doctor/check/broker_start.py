"""What Apache RocketMQ does when it starts on a store: starts, refuses, or cuts off part of the log.

Only what is known is said. It comes from RocketMQ 5.4.0 (``store/.../CommitLog.java`` recoverNormally and
recoverAbnormally, ``MappedFileQueue.java`` load), and is held against what the real store did
(``tests/interop/repaired/test_triage.py``). Where findings leave a choice, the answer is "not known".
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from seglog.storage.audit import AuditPlan, Stitched
from seglog.storage.directory import LogReader
from seglog.storage.files import Files
from seglog.storage.findings import Finding, Severity
from seglog.storage.format.names import COMMIT_LOG, parse_segment_file_name, segment_file_name
from seglog.storage.format.record import FILLER, FILLER_BYTES
from seglog.storage.walk import MISSING, Hole, record_at

REFUSED: Final = frozenset(
    {
        "compaction-file",
        "ext-file",
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
"""Codes of what RocketMQ does not start with, unless the file is empty or as long as the others."""

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
        "log-file-misnamed",
        "log-file-missing",
        "queue-file-empty",
        "queue-length-unknown",
        "undo-unfinished",
    }
)
"""Codes of what it may not start with, or harms in more than one way."""

_STRAYS: Final = frozenset({"log-file-stray", "queue-file-stray"})

_BEHIND_QUEUES: Final = frozenset(
    {"queue-beyond-log", "queue-due", "queue-missing", "queue-short", "queue-unit-stray", "queue-unit-wrong"}
)
"""After a clean stop the queues say where RocketMQ's walk begins; with these it is not known."""

_UNSEEN: Final = frozenset({"phy-offset", "record-crc", "torn-properties"})
"""Damage that RocketMQ's own look at a record passes over."""

_EARLIER_MS: Final = 3000
"""RocketMQ takes so much from the times of its checkpoint (``StoreCheckpoint.getMinTimestamp``)."""


class Start(enum.Enum):
    """Whether RocketMQ starts on a store."""

    YES = "yes"
    NO = "no"
    LOSES = "loses"
    """It starts, and loses messages that are there."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class BrokerStart:
    """What RocketMQ does when it starts on a store.

    Attributes:
        start: Whether it starts.
        why: The reason; for :attr:`Start.YES` what a crash would lead to, mostly empty.
        cut_at: Physical offset at which it cuts the log, -1 where it does not.
        cut_messages: How many messages that can be read, or repaired, it cuts off; for :attr:`Start.YES`
            after a crash.
        cut_repairable: How many of these cannot be read now.
    """

    start: Start
    why: str = ""
    cut_at: int = -1
    cut_messages: int = 0
    cut_repairable: int = 0


def broker_start(
    store: AuditPlan,
    log: Stitched,
    files: Files,
    findings: Sequence[Finding],
    *,
    is_live: bool,
) -> BrokerStart:
    """Returns what RocketMQ does when it starts on a store as it is.

    Args:
        store: Its files.
        log: Its log.
        files: Where it is.
        findings: What a check found.
        is_live: Whether a process has it open.
    """
    serious = [finding for finding in findings if finding.severity is not Severity.NOTE]
    for finding in serious:
        if finding.code in REFUSED and not _may_pass(store, files, finding):
            return BrokerStart(Start.NO, f"{finding.meaning}: {finding.file}")
    if is_live:
        return BrokerStart(Start.UNKNOWN, "a process has the store open; stop it and check again")
    if any(finding.code == "log-empty" for finding in serious):
        return BrokerStart(Start.LOSES, "there is no commit log: it would delete all queue files")
    has_queues = any(queue.sizes for queue in (*store.queue_files.values(), *store.batch_files.values()))
    for finding in serious:
        is_remade = finding.code == "queue-length-unknown" and not has_queues
        if finding.code in UNCERTAIN | REFUSED and not is_remade:
            return BrokerStart(Start.UNKNOWN, f"{finding.meaning}: {finding.file}")
    with closing(LogReader(files, store.root, store.geometry.segment_size_bytes)) as reader:
        return _of_log(store, log, reader, findings)


def _may_pass(store: AuditPlan, files: Files, finding: Finding) -> bool:
    """Returns whether RocketMQ may start with a file: it compares lengths, and removes an empty last file."""
    path = store.root / finding.file
    size = next((one.size_bytes for one in files.list_dir(path.parent) if one.name == path.name), None)
    lengths = store.geometry.segment_size_bytes, store.geometry.queue_file_size_bytes
    return size == 0 or (finding.code in _STRAYS and size in lengths)


def first_walked(
    store: AuditPlan, reader: LogReader, findings: Sequence[Finding], holes: Collection[Hole]
) -> int | None:
    """Returns the first file of the log that RocketMQ's recovery walks, by its physical offset.

    None where that is not known. After a crash it is the last file that begins with a record not younger
    than the checkpoint; after a clean stop the last one that begins with a record which the queues know.
    """
    firsts = [file.first_offset for file in store.log_files]
    is_closed = store.mode == "normal"
    if is_closed and holes and any(finding.code in _BEHIND_QUEUES for finding in findings):
        return firsts[0] if len(firsts) == 1 else None
    checkpoint = store.checkpoint
    flushed_ms = min(checkpoint.physic_timestamp_ms, checkpoint.logics_timestamp_ms)
    latest_ms = max(0, flushed_ms - _EARLIER_MS)
    for first in reversed(firsts[1:]):
        found = record_at(reader, first)
        if found is None:
            if any(hole.why in _UNSEEN and hole.phy_offset <= first < hole.end for hole in holes):
                return None
            continue
        stored_ms = found[1].store_timestamp_ms
        if stored_ms and (is_closed or stored_ms <= latest_ms):
            return first
    return firsts[0] if firsts else 0


def _of_log(store: AuditPlan, log: Stitched, reader: LogReader, findings: Sequence[Finding]) -> BrokerStart:
    holes = log.log.holes
    if not holes:
        return BrokerStart(Start.YES)
    begin = first_walked(store, reader, findings, holes)
    last = max(file.first_offset for file in store.log_files)
    segment = store.geometry.segment_size_bytes
    after_crash = BrokerStart(Start.YES)
    for hole in holes:
        place = f"{COMMIT_LOG}/{segment_file_name(hole.phy_offset - hole.phy_offset % segment)}"
        place += f" +{hole.phy_offset % segment}"
        if begin is not None and hole.end <= begin:
            if hole.why not in _UNSEEN and not after_crash.why:
                why = f"after a crash it may cut the log at {place}"
                after_crash = BrokerStart(Start.YES, why, -1, *_behind(hole, log, findings))
            continue
        if begin is None and hole.phy_offset < last:
            return BrokerStart(
                Start.UNKNOWN, f"the queues do not say whether it walks the log from before {place}"
            )
        if hole.why == MISSING.kind:
            return BrokerStart(Start.UNKNOWN, f"a file of the log is missing at {place}")
        if hole.why in _UNSEEN:
            if _is_one_record(reader, hole):
                continue
            return BrokerStart(Start.UNKNOWN, f"whether it reads over the damage at {place}")
        cut, repairable = _behind(hole, log, findings)
        if cut == 0:
            return after_crash
        return BrokerStart(Start.LOSES, f"it cuts the log at {place}", hole.phy_offset, cut, repairable)
    return after_crash


def _behind(hole: Hole, log: Stitched, findings: Sequence[Finding]) -> tuple[int, int]:
    """Returns how many messages a cut at a hole costs, and how many of them cannot be read now."""
    repairable = sum(
        finding.code == "record-repairable" and _phy_offset(finding) >= hole.phy_offset
        for finding in findings
    )
    readable = sum(one.records for one in log.log.stretches if one.start >= hole.phy_offset)
    return readable + repairable, repairable


def _is_one_record(reader: LogReader, hole: Hole) -> bool:
    head = reader.read(hole.phy_offset, FILLER_BYTES)
    return len(head) == FILLER_BYTES and FILLER.struct.unpack(head)[0] == hole.size_bytes


def _phy_offset(finding: Finding) -> int:
    first = parse_segment_file_name(finding.file.rpartition("/")[2])
    return finding.position_bytes + (first or 0)
