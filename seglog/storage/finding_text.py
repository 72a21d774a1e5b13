"""A finding's place, in words."""

from __future__ import annotations

from seglog.storage.findings import Finding
from seglog.words import count_text, size_text


def place_text(finding: Finding) -> str:
    """Returns ``code file +position``, and what is known of it."""
    text = f"{finding.code} {finding.file}"
    if finding.position_bytes or finding.size_bytes:
        text += f" +{finding.position_bytes}"
    if finding.size_bytes:
        text += f", {size_text(finding.size_bytes)}"
    if finding.messages:
        text += f", {count_text(finding.messages, 'message')}"
    known = (("expected", finding.expected), ("found", finding.found))
    detail = ", ".join(f"{name} {value}" for name, value in known if value)
    return f"{text}: {detail}" if detail else text
