"""Reports each fault once: keeps the finding that describes it best, drops findings that follow from it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from seglog.storage.findings import Finding
from seglog.storage.format.names import COMMIT_LOG

_OF_RIGHTS: Final = frozenset({"file-unreadable", "file-kind", "file-owner", "file-permission"})
_OF_LOST_LOG: Final = frozenset(
    {"checkpoint-ahead", "index-entry-stray", "log-empty", "log-tail-lost", "messages-lost", "queue-gap"}
)
_OF_NO_LOG: Final = frozenset(
    {
        "queue-beyond-log",
        "offset-beyond-queue",
        "delay-offset-beyond",
        "index-entry-stray",
        "timer-check-ahead",
        "timer-unit-stray",
    }
)
"""Findings that follow from the absence of the whole log alone."""


def each_once(findings: Iterable[Finding]) -> list[Finding]:
    """Returns findings without those that another finding describes better."""
    each = _without_unreadable(list(dict.fromkeys(findings)))
    if any(finding.code == "log-empty" for finding in each):
        each = [finding for finding in each if finding.code not in _OF_NO_LOG]
    gone = {finding.file for finding in each if finding.code in {"config-lost", "file-unreadable"}}
    return [
        finding
        for finding in each
        if not (finding.code == "config-damaged" and finding.file.removesuffix(".bak") in gone)
    ]


def _without_unreadable(each: list[Finding]) -> list[Finding]:
    """Returns findings without those that a file or folder which could not be read explains."""
    unread = {
        finding.file for finding in each if finding.code == "file-unreadable" and not finding.size_bytes
    }
    if not unread:
        return each
    is_of_log = any(Path(name).parts[0] == COMMIT_LOG for name in unread)
    return [
        finding
        for finding in each
        if finding.code in _OF_RIGHTS
        or not (
            unread & {finding.file, *map(str, Path(finding.file).parents)}
            or (is_of_log and (finding.code in _OF_NO_LOG or finding.code in _OF_LOST_LOG))
        )
    ]
