"""Findings in words: their places and numbers for people, all of each by name for programs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from seglog.storage.findings.code import WITH_OPTION, Severity
from seglog.storage.findings.findings import Finding, refuses_repair
from seglog.text import count_text, size_text, time_text

MOST_QUOTED: Final = 4096
"""Characters of a file that a finding holds at most: the store may come from others."""
_QUOTING: Final = frozenset(
    {"config-shape", "config-damaged", "own-damaged", "timer-log-damaged", "topic-name"}
)
"""Codes of findings that hold what a file says."""
_MOST_SHOWN: Final = 80
_BYTES: Final = frozenset(
    {
        "checkpoint-size",
        "compaction-file",
        "ext-file",
        "log-file-size",
        "queue-file-size",
        "timer-check-size",
        "timer-log-file",
        "timer-wheel-size",
    }
)
"""Codes whose bare numbers are lengths."""
_OFFSETS: Final = frozenset(
    {"delay-offset-below", "delay-offset-beyond", "offset-below-queue", "offset-beyond-queue"}
)
"""Codes whose bare numbers are queue offsets."""
_TIMES: Final = frozenset({"checkpoint-ahead", "checkpoint-behind"})
"""Codes whose long numbers are times."""
_TIME: Final = re.compile(r"\b[0-9]{12,13}\b")
_COUNTED: Final = {
    Severity.LOSS: ("finding of loss", "findings of loss"),
    Severity.WARNING: ("warning", "warnings"),
    Severity.NOTE: ("note", "notes"),
}


def counts_text(findings: Iterable[Finding]) -> str:
    """Returns ``2 findings of loss, 1 warning``, the worst first; ``nothing`` without any."""
    counts = Counter(finding.severity for finding in findings)
    parts = [count_text(counts[severity], *nouns) for severity, nouns in _COUNTED.items() if counts[severity]]
    return ", ".join(parts) or "nothing"


def place_text(finding: Finding) -> str:
    """Returns ``code file +position``, and what is known of it."""
    text = f"{finding.code} {finding.file}"
    if finding.position_bytes or finding.size_bytes:
        text += f" +{finding.position_bytes}"
    if finding.size_bytes:
        text += f", {size_text(finding.size_bytes)}"
    if finding.messages:
        text += f", {count_text(finding.messages, 'message')}"
    found = finding.found
    if finding.code in _QUOTING and len(found) > _MOST_SHOWN:
        found = f"{found[:_MOST_SHOWN]}…"
    known = (("expected", finding.expected), ("found", found))
    detail = ", ".join(f"{name} {_with_unit(finding.code, value)}" for name, value in known if value)
    return f"{text}: {detail}" if detail else text


def _with_unit(code: str, value: str) -> str:
    if code in _TIMES:
        return _TIME.sub(lambda found: time_text(int(found[0])), value)
    if value.isascii() and value.isdigit():
        if code in _BYTES:
            return count_text(int(value), "byte")
        if code in _OFFSETS:
            return f"queue offset {value}"
    return value


def findings_fields(
    findings: Sequence[Finding], among: Iterable[Finding] = ()
) -> Iterator[dict[str, object]]:
    """Yields findings on a store for programs.

    Args:
        findings: The findings.
        among: Further findings on the store: some refuse a repair, or ask for its options.
    """
    asking = [
        one for one in (*findings, *among) if one.command.startswith(WITH_OPTION) or refuses_repair(one)
    ]
    for finding in findings:
        yield finding_fields(finding, asking)


def finding_fields(finding: Finding, among: Iterable[Finding] = ()) -> dict[str, object]:
    """Returns a finding for programs.

    Args:
        finding: The finding.
        among: As :meth:`Finding.command_among` takes them.
    """
    among = list(among)
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "file": finding.file,
        "pos": finding.position_bytes,
        "size": finding.size_bytes,
        "expected": finding.expected,
        "found": finding.found,
        "messages": finding.messages,
        "meaning": finding.meaning,
        "forMessages": finding.for_messages,
        "fix": finding.fix_among(among),
        "command": finding.command_among(among),
        "rocketmqLogs": list(finding.rocketmq_logs),
    }
