"""What an audit found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from typing_extensions import override

from seglog.storage.findings.findings import Finding
from seglog.storage.scan.message_counts import MessageCounts
from seglog.storage.walk.behind_damage import Hole

_ORDINARY: Final = frozenset({"log-spare", "queue-deleted", "rocksdb-queues", "rocksdb-tables"})
"""Findings that a healthy store has too."""


@dataclass(frozen=True, slots=True)
class AuditQueue:
    """One queue.

    Attributes:
        min_offset: Queue offset of the first message that the store serves.
        max_offset: Queue offset that the next message gets.
        records: Records in the log that stand in this queue, also those of other topics (``%LMQ%``) and
            batches, which are one record for several messages.
        bytes: Their sizes together.
        first_queue_offset: Smallest queue offset of a message in the log, -1 without any.
        last_queue_offset: Largest.
        gaps: Places where the next record's queue offset leaves some out.
        backwards: Places where the next record's queue offset is not above the one before.
        first_store_timestamp_ms: Earliest store time, 0 without records.
        last_store_timestamp_ms: Latest.
        kind: ``plain`` or ``batch``.
    """

    topic: str
    queue_id: int
    min_offset: int
    max_offset: int
    records: int
    bytes: int
    first_queue_offset: int
    last_queue_offset: int
    gaps: int
    backwards: int
    first_store_timestamp_ms: int
    last_store_timestamp_ms: int
    kind: str = "plain"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """A store as an audit found it.

    Attributes:
        path: The store directory.
        mode: ``normal`` after a clean stop, ``abnormal`` with an ``abort`` file (a crash, or a live writer).
        verified: Whether checksums were computed.
        records: Valid records in the log.
        bytes: Their sizes together.
        queues: Sorted by topic and number.
        holes: Stretches of the log, between readable records, that hold none.
        min_phy_offset: Where the log starts; -1 without any segment.
        end_phy_offset: Where it ends: the place of the next record.
        findings: Everything that is wrong.
        splits: In how many splits the log was read.
        walked_again: How many splits the driver had to walk again.
        counts: How many messages its queues hold, and how many they lost.
    """

    path: Path
    mode: str
    verified: bool
    records: int
    bytes: int
    queues: tuple[AuditQueue, ...]
    holes: tuple[Hole, ...]
    min_phy_offset: int
    end_phy_offset: int
    findings: tuple[Finding, ...]
    splits: int
    walked_again: int
    counts: MessageCounts

    @override
    def __repr__(self) -> str:
        return f"<AuditReport of {self.path}: {self.records} records, {len(self.findings)} findings>"

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found but what healthy stores have too."""
        return all(finding.code in _ORDINARY for finding in self.findings)
