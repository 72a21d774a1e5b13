"""A finding in words: its place for people, all of it by name for programs."""

from __future__ import annotations

from typing import Final

from seglog.storage.findings.findings import Finding
from seglog.text import count_text, size_text

MOST_QUOTED: Final = 4096
"""Characters of a file that a finding holds at most: the store may come from others."""
_QUOTING: Final = frozenset(
    {"config-shape", "config-damaged", "own-damaged", "timer-log-damaged", "topic-name"}
)
"""Codes of findings that hold what a file says."""
_MOST_SHOWN: Final = 80


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
    detail = ", ".join(f"{name} {value}" for name, value in known if value)
    return f"{text}: {detail}" if detail else text


def finding_fields(finding: Finding) -> dict[str, object]:
    """Returns a finding for programs."""
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
        "fix": finding.fix,
        "command": finding.command,
    }
