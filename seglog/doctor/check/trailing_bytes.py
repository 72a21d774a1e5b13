"""What lies behind the end of the log: zeros, if nobody cut it and nothing was damaged."""

from __future__ import annotations

from contextlib import closing

from seglog.storage.audit import AuditPlan
from seglog.storage.directory import LogReader, last_data_end
from seglog.storage.files import Files
from seglog.storage.findings import Finding
from seglog.storage.seals import segment_path


def behind_end_findings(files: Files, plan: AuditPlan, end_phy_offset: int) -> list[Finding]:
    """Returns a finding for each file with bytes other than zero behind the end of the log.

    Args:
        files: Where the store is.
        plan: The store.
        end_phy_offset: Where its log ends.
    """
    segment = plan.geometry.segment_size_bytes
    findings: list[Finding] = []
    with closing(LogReader(files, plan.root, segment)) as reader:
        for file in plan.log_files:
            first = file.first_offset
            start = max(end_phy_offset, first)
            if start >= first + segment:
                continue
            size = last_data_end(reader, start, first + segment) - start
            if size:
                findings.append(Finding("log-behind-end", segment_path(first), start - first, size))
    return findings
