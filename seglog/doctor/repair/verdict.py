"""Completes a repair's plan by the verdict of a check, so that both report the same on a store.

A plan covers log, queues, index, tables and timer. Only a check sees faults that no repair changes: kinds,
owners and rights of files, bytes that cannot be read, seals that the user must request.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from seglog.doctor.check import CheckReport, check_store, verdict_on
from seglog.doctor.repair.repair import Plan
from seglog.storage.directory import LogPaths
from seglog.storage.findings import Finding, Severity

_NEVER_MENDED: Final = frozenset(
    {
        "file-kind",
        "file-owner",
        "file-permission",
        "file-unreadable",
        "seal-rot-unused",
        "seal-stale",
        "seal-unreadable",
    }
)


def wrong_now(root: Path, follow: Collection[str] = (), log: LogPaths | None = None) -> list[Finding]:
    """Returns the findings of a check on a store, without notes; the arguments are those of the check."""
    return _wrong(check_store(root, follow=tuple(follow), log=log))


def judge(plan: Plan, report: CheckReport) -> list[Finding]:
    """Adds the results of a check of the unrepaired store to a plan; returns its findings without notes.

    The plan gets the number of messages that the repair saves, and the findings that no repair changes.

    Args:
        plan: A plan for the store.
        report: The check of the store.
    """
    wrong = _wrong(report)
    plan.rescued = verdict_on(report).saved
    told = {(finding.code, finding.file) for finding in plan.left}
    moved = {action.file for action in plan.first}
    changed = {action.file for action in plan.actions}
    plan.left += [
        finding
        for finding in wrong
        # A block of a sealed segment that changed where no record shows it: nothing says what it held.
        if (finding.code in _NEVER_MENDED or (finding.code == "seal-rot" and finding.file not in changed))
        and (finding.code, finding.file) not in told
        and finding.file not in moved
    ]
    return wrong


def _wrong(report: CheckReport) -> list[Finding]:
    return [finding for finding in report.findings if finding.severity is not Severity.NOTE]
