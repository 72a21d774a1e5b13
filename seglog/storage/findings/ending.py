"""How a command ends that looked at a store."""

from __future__ import annotations

from collections.abc import Iterable

from seglog.errors import Ending
from seglog.storage.findings.code import Severity
from seglog.storage.findings.findings import Finding


def ending_of(findings: Iterable[Finding], *, is_strict: bool = False) -> Ending:
    """Returns the exit code of a look at a store.

    Args:
        findings: What was found.
        is_strict: Whether notes count.
    """
    severities = {finding.severity for finding in findings}
    if Severity.LOSS in severities:
        return Ending.LOSS
    if Severity.WARNING in severities:
        return Ending.FINDINGS
    return Ending.NOTES if is_strict and severities else Ending.CLEAN
