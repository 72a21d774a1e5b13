"""Predicts where the walk of RocketMQ's recovery begins at a start, and how much of the log it reads.

Source: RocketMQ 5.4.0 and 5.5.0, ``CommitLog.java`` recoverNormally and recoverAbnormally,
``StoreCheckpoint.java``, ``ConsumeQueueStore.java`` isMappedFileMatchedRecover.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from seglog.storage.audit import AuditPlan
from seglog.storage.directory import LogReader
from seglog.storage.findings import Finding
from seglog.storage.walk import Hole, record_at

_BEHIND_QUEUES: Final = frozenset(
    {"queue-beyond-log", "queue-due", "queue-missing", "queue-short", "queue-unit-stray", "queue-unit-wrong"}
)
"""After a clean stop RocketMQ's walk begins where the queues end; with these findings that is not known."""

_UNSEEN: Final = frozenset({"phy-offset", "record-crc", "torn-properties"})
"""Damage that RocketMQ's own check of a record does not detect."""

_EARLIER_MS: Final = 3000
"""RocketMQ subtracts this from the times of its checkpoint (``StoreCheckpoint.getMinTimestamp``)."""

_MOST_FILES: Final = 10
"""So many files of the log RocketMQ 5.5.0 looks at for where to begin (``commitLogRecoverMaxNum``)."""


@dataclass(frozen=True, slots=True)
class RecoveryWalk:
    """The part of the log that RocketMQ reads before it serves a store.

    Attributes:
        first_phy_offset: Its start: the start of a file of the log.
        files: Number of files.
        size_bytes: Bytes of the log in these files.
        since_ms: Store time of the first record in it, 0 if no record can be read there.
    """

    first_phy_offset: int
    files: int
    size_bytes: int
    since_ms: int


def recovery_walk(store: AuditPlan, reader: LogReader, first: int, end_phy_offset: int) -> RecoveryWalk:
    """Returns the part of a log that RocketMQ reads.

    Args:
        store: The files of the store.
        reader: Reads its log.
        first: Physical offset of the first file that it walks.
        end_phy_offset: End of the log.
    """
    files = sum(first <= file.first_offset < end_phy_offset for file in store.log_files)
    found = record_at(reader, first) if files else None
    since_ms = 0 if found is None else found[1].store_timestamp_ms
    return RecoveryWalk(first, files, max(0, end_phy_offset - first), since_ms)


def first_walked(
    store: AuditPlan, reader: LogReader, findings: Sequence[Finding], holes: Collection[Hole]
) -> int | None:
    """Returns the physical offset of the first file of the log that RocketMQ's recovery walks.

    None if that is not known. After a clean stop it is the last file whose first record has a unit in the
    queues. After a crash it is the last file that begins with a record not younger than the checkpoint; for
    5.5.0, the last one that begins with a record not behind the place in the log up to which the checkpoint
    says that queues are on the disk. Older releases leave that field of the checkpoint 0.
    """
    firsts = [file.first_offset for file in store.log_files]
    is_closed = store.mode == "normal"
    if is_closed and holes and any(finding.code in _BEHIND_QUEUES for finding in findings):
        return firsts[0] if len(firsts) == 1 else None
    checkpoint = store.checkpoint
    flushed_ms = min(checkpoint.physic_timestamp_ms, checkpoint.logics_timestamp_ms)
    latest_ms = max(0, flushed_ms - _EARLIER_MS)
    queued_phy_offset = checkpoint.logics_phy_offset
    candidates = firsts[1:] if queued_phy_offset <= 0 else firsts[1:][1 - _MOST_FILES :]
    for first in reversed(candidates):
        found = record_at(reader, first)
        if found is None:
            if any(hole.why in _UNSEEN and hole.phy_offset <= first < hole.end for hole in holes):
                return None
            continue
        stored_ms = found[1].store_timestamp_ms
        is_before = first <= queued_phy_offset if queued_phy_offset > 0 else stored_ms <= latest_ms
        if stored_ms and (is_closed or is_before):
            return first
    return firsts[-1 - len(candidates)] if firsts else 0
