"""Prints findings: grouped by code, the worst first, each with its meaning and with what to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from seglog.cli.ui import render
from seglog.storage.findings import Finding, Severity, bytes_text, counts_text, place_text
from seglog.text import shell_text

_MAX_PLACES: Final = 8
_COLOURS: Final = {Severity.LOSS: "red", Severity.WARNING: "yellow", Severity.NOTE: "blue"}
_INDENT: Final = " " * 10
"""Indentation of the lines below a finding: they align with its meaning."""


def show_findings(findings: Sequence[Finding], store: Path, among: Sequence[Finding] = ()) -> None:
    """Prints findings; findings with the same code are printed together.

    Args:
        findings: The findings.
        store: The store directory, which is written into the commands to type.
        among: Further findings on the store: some refuse a repair, or ask for its options.
    """
    render.say(f"findings: {counts_text(findings)}")
    by_code: dict[str, list[Finding]] = {}
    for finding in sorted(findings, key=lambda finding: -list(Severity).index(finding.severity)):
        by_code.setdefault(finding.code, []).append(finding)
    for same in by_code.values():
        _show_same(same, [*findings, *among], shell_text(store))


def _show_same(same: Sequence[Finding], findings: Sequence[Finding], typed: str) -> None:
    first = same[0]
    severity = render.Styled(f"{first.severity.value:<7}", _COLOURS[first.severity])
    render.say("  ", severity, " ", first.meaning)
    for finding in same[:_MAX_PLACES]:
        render.say(_INDENT, place_text(finding))
    if len(same) > _MAX_PLACES:
        render.say(_INDENT, f"… and {render.count_text(len(same) - _MAX_PLACES)} more; --json prints all")
    if first.severity is Severity.NOTE:
        return
    for number, line in enumerate(first.rocketmq_logs):
        render.say(_INDENT, "or: " if number else "RocketMQ logs: ", line)
    render.say(_INDENT, f"messages: {first.for_messages}")
    if command := first.command_for(typed, findings):
        render.say(_INDENT, f"to do: `{command}`: {first.fix}")
        if text := bytes_text(command):
            render.say(_INDENT, f"BYTES: {text}")
    elif fix := first.fix_among(findings):
        render.say(_INDENT, f"to do: {fix}")
