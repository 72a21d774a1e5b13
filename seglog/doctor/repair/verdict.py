"""What a repair leaves, by the verdict of a check: both say the same of a store.

A plan looks at log, queues, index, tables and timer. What no repair changes only a check sees: kinds, owners
and rights of files, bytes that cannot be read, seals that must be asked for.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from seglog.doctor.check import CheckReport, check_store, verdict_on
from seglog.doctor.repair.repair import Plan
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


def wrong_now(root: Path, follow: Collection[str] = ()) -> list[Finding]:
    """Returns what a check finds wrong with a store: all but notes."""
    return _wrong(check_store(root, follow=tuple(follow)))


def judge(plan: Plan, report: CheckReport) -> list[Finding]:
    """Adds to a plan what a check says of the store as it is; returns what that found wrong.

    That is how many messages the repair saves, and what no repair changes.

    Args:
        plan: A plan for the store.
        report: The check of it.
    """
    wrong = _wrong(report)
    plan.rescued = verdict_on(report).saved
    told = {(finding.code, finding.file) for finding in plan.left}
    moved = {action.file for action in plan.first}
    plan.left += [
        finding
        for finding in wrong
        if finding.code in _NEVER_MENDED
        and (finding.code, finding.file) not in told
        and finding.file not in moved
    ]
    return wrong


def _wrong(report: CheckReport) -> list[Finding]:
    return [finding for finding in report.findings if finding.severity is not Severity.NOTE]
