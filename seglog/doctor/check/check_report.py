"""What a check found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from seglog.doctor.check.broker_start import BrokerStart
from seglog.doctor.parts.offset_check import GroupLag
from seglog.storage.audit import AuditQueue
from seglog.storage.directory import LogFile, StoreGeometry
from seglog.storage.findings import Finding, Severity
from seglog.storage.scan import MessageCounts
from seglog.storage.seals import Concerned
from seglog.storage.walk import Hole


@dataclass(frozen=True, slots=True)
class CheckReport:
    """A store as a check found it.

    Attributes:
        root: The store directory.
        geometry: Lengths of its files.
        state: ``clean`` (closed), ``crashed``, or ``open``: a process writes to it.
        holder: That process, -1 if the system does not name it, None without one.
        log_files: Its commit-log files in order.
        holes: Stretches of the log that cannot be read.
        min_phy_offset: Where the log starts; -1 without any segment.
        end_phy_offset: Where it ends.
        records: Records that can be read.
        with_record_crc: How many of them have a record CRC.
        queues: Its queues, sorted.
        messages: How many messages these hold, and how many they lost.
        lags: How far each group is in each queue.
        minutes: Records and bytes by the minute since 1970 in which they were stored.
        sealed: How many segments were held against their seals.
        keys: How many keys the records have.
        findings: Everything that is wrong, and what is worth a note.
        concerned: Messages in places of sealed segments that changed.
        not_looked_at: What this check cannot tell or did not look at, a sentence each.
        read_bytes: How much of the log was read by this run.
        resumed_bytes: How much an earlier run had read.
        elapsed_ms: How long it took.
        start: What RocketMQ does when it starts on it.
        address: How the store is named if not by ``root``: that of an object store.
    """

    root: Path
    geometry: StoreGeometry
    state: str
    holder: int | None
    log_files: tuple[LogFile, ...]
    holes: tuple[Hole, ...]
    min_phy_offset: int
    end_phy_offset: int
    records: int
    with_record_crc: int
    queues: tuple[AuditQueue, ...]
    messages: MessageCounts
    lags: tuple[GroupLag, ...]
    minutes: tuple[tuple[int, int, int], ...]
    sealed: int
    keys: int
    findings: tuple[Finding, ...]
    concerned: tuple[Concerned, ...]
    not_looked_at: tuple[str, ...]
    read_bytes: int
    resumed_bytes: int
    elapsed_ms: float
    start: BrokerStart
    address: str = ""

    @override
    def __repr__(self) -> str:
        return f"<CheckReport of {self.address or self.root}: {self.state}, {len(self.findings)} findings>"

    @property
    def store(self) -> str:
        """Path or address of the store."""
        return self.address or str(self.root)

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing to find but notes."""
        return all(finding.severity is Severity.NOTE for finding in self.findings)

    @property
    def counts(self) -> dict[Severity, int]:
        """How many findings there are of each severity."""
        counted = Counter(finding.severity for finding in self.findings)
        return {severity: counted[severity] for severity in Severity}

    @property
    def lost_messages(self) -> int:
        """How many messages are known to be lost; holes may hold more."""
        return sum(
            finding.messages
            for finding in self.findings
            # The end of the log as a whole is told beside each queue's part of it.
            if finding.severity is Severity.LOSS and finding.code != "log-tail-lost"
        )
