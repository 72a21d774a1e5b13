"""Findings: one value per fact about a store, with a stable code that programs can match.

Holds the table of codes (severity, meaning, advice), the value, and its text.

Called by everything that looks at a store, and by what shows the outcome.
Truth: the table; docs/findings.md is written from it.
"""

from __future__ import annotations

from seglog.storage.findings.code import Severity
from seglog.storage.findings.finding_text import MOST_QUOTED, finding_fields, place_text
from seglog.storage.findings.findings import Finding

__all__ = [
    "MOST_QUOTED",
    "Finding",
    "Severity",
    "finding_fields",
    "place_text",
]
