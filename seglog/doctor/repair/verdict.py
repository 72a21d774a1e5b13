"""What a repair leaves, by the verdict of a check: both say the same of a store.

A plan looks at log, queues, index, tables and timer. What no repair changes only a check sees: kinds, owners
and rights of files, bytes that cannot be read, seals that must be asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from seglog.doctor.check.check import check_store
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
    report = check_store(root, follow=tuple(follow))
    return [finding for finding in report.findings if finding.severity is not Severity.NOTE]


def add_left(plan: Plan, wrong: Sequence[Finding]) -> None:
    """Adds what a check found and no repair changes to what a plan leaves.

    Args:
        plan: A plan for the store as it is.
        wrong: What a check finds wrong with it.
    """
    told = {(finding.code, finding.file) for finding in plan.left}
    moved = {action.file for action in plan.first}
    plan.left += [
        finding
        for finding in wrong
        if finding.code in _NEVER_MENDED
        and (finding.code, finding.file) not in told
        and finding.file not in moved
    ]
