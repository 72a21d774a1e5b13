"""The report of a check."""

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
    """The result of a check of a store.

    Attributes:
        root: The store directory.
        geometry: Lengths of its files.
        state: ``clean`` (closed), ``crashed``, or ``open``: a process writes to it.
        holder: Process id of that process, -1 if the system does not report it, None if there is none.
        log_files: The files of its commit log, in order.
        holes: Stretches of the log that cannot be read.
        min_phy_offset: Start of the log; -1 without any segment.
        end_phy_offset: End of the log.
        records: Number of records that can be read.
        with_record_crc: Number of them that have a record CRC.
        queues: Its queues, sorted.
        messages: Number of messages in the queues, and number of lost messages.
        lags: The position of each group in each queue.
        minutes: Records and bytes by the minute since 1970 in which they were stored.
        sealed: Number of segments that were compared with their seals.
        keys: Number of keys of the records.
        findings: Everything that is wrong, and notes.
        concerned: Messages in damaged places of sealed segments.
        not_looked_at: What this check cannot detect or did not read, one sentence each.
        read_bytes: Bytes of the log that this run read.
        resumed_bytes: Bytes of the log that an earlier run read.
        elapsed_ms: Duration of the check.
        start: What RocketMQ does when it starts on the store.
        address: Address of the store in an object store; empty if it is at ``root``.
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
        """Whether there are no findings but notes."""
        return all(finding.severity is Severity.NOTE for finding in self.findings)

    @property
    def counts(self) -> dict[Severity, int]:
        """The number of findings of each severity."""
        counted = Counter(finding.severity for finding in self.findings)
        return {severity: counted[severity] for severity in Severity}

    @property
    def lost_messages(self) -> int:
        """The number of messages that are known to be lost; holes may hold more."""
        return sum(
            finding.messages
            for finding in self.findings
            # The lost end of the log is also reported for each queue, with its messages.
            if finding.severity is Severity.LOSS and finding.code != "log-tail-lost"
        )
