"""Checks the bytes after the end of the log: they are zeros, unless the log was cut or damaged."""

from __future__ import annotations

from collections.abc import Sequence

from seglog.storage.directory import LogFile, LogReader, last_data_end
from seglog.storage.findings import Finding
from seglog.storage.seals import segment_path


def behind_end_findings(
    reader: LogReader, log_files: Sequence[LogFile], segment_bytes: int, end_phy_offset: int
) -> list[Finding]:
    """Returns a finding for each file with bytes other than zero after the end of the log.

    Args:
        reader: Reads the log.
        log_files: Its files.
        segment_bytes: Length of a segment.
        end_phy_offset: End of the log.
    """
    findings: list[Finding] = []
    for file in log_files:
        first = file.first_offset
        start = max(end_phy_offset, first)
        if start >= first + segment_bytes:
            continue
        size = last_data_end(reader, start, first + segment_bytes) - start
        if size:
            findings.append(Finding("log-behind-end", segment_path(first), start - first, size))
    return findings
