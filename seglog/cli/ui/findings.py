"""How findings look: by what they are, the worst first, each with what it means and what to do."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from seglog.cli.ui import render
from seglog.storage.findings import Finding, Severity, place_text
from seglog.storage.format.names import OURS

_MAX_PLACES: Final = 8
_COLOURS: Final = {Severity.LOSS: "red", Severity.WARNING: "yellow", Severity.NOTE: "blue"}


def counts_text(findings: Sequence[Finding]) -> str:
    """Returns ``2 losses, 1 warning``, the worst first; ``nothing`` without any."""
    counts = Counter(finding.severity for finding in findings)
    words = {Severity.LOSS: "losses", Severity.WARNING: "warnings", Severity.NOTE: "notes"}
    parts = [
        render.count_text(counts[severity], severity.value, plural)
        for severity, plural in words.items()
        if counts[severity]
    ]
    return ", ".join(parts) or "nothing"


def show_findings(findings: Sequence[Finding], store: Path) -> None:
    """Prints findings, those with the same code together.

    Args:
        findings: What was found.
        store: The store directory, which goes into the commands to type.
    """
    render.say(f"findings: {counts_text(findings)}")
    by_code: dict[str, list[Finding]] = {}
    for finding in sorted(findings, key=lambda finding: -list(Severity).index(finding.severity)):
        by_code.setdefault(finding.code, []).append(finding)
    for same in by_code.values():
        _show_same(same, store)


def next_command(findings: Sequence[Finding], store: Path) -> str:
    """Returns the command that puts most right, empty if there is nothing to type."""
    serious = [finding for finding in findings if finding.severity is not Severity.NOTE and finding.command]
    if not serious or any(map(_blocks_repair, findings)):
        return ""
    # Without the option the same command is refused, or does less.
    for finding in serious:
        if finding.command.startswith("seglog repair --"):
            return finding.command_for(_quoted(store))
    worst = max(list(Severity).index(finding.severity) for finding in serious)
    commands = Counter(
        finding.command_for(_quoted(store))
        for finding in serious
        if list(Severity).index(finding.severity) == worst
    )
    return commands.most_common(1)[0][0]


def _blocks_repair(finding: Finding) -> bool:
    """Returns whether a person must put this right first: a repair takes for lost what it cannot read."""
    is_other = finding.code == "file-kind" and not finding.file.startswith(f"{OURS}/")
    return is_other or finding.code == "file-unreadable"


def _quoted(store: Path) -> str:
    return shlex.quote(render.printable(str(store)))


def _show_same(same: Sequence[Finding], store: Path) -> None:
    first = same[0]
    severity = render.Styled(f"{first.severity.value:<7}", _COLOURS[first.severity])
    render.say("  ", severity, f" {first.meaning}")
    for finding in same[:_MAX_PLACES]:
        render.say(f"          {render.printable(place_text(finding))}")
    if len(same) > _MAX_PLACES:
        render.say(f"          … and {render.count_text(len(same) - _MAX_PLACES)} more; --json prints all")
    if first.severity is Severity.NOTE:
        return
    render.say(f"          messages: {first.for_messages}")
    if first.command:
        render.say(f"          to do: `{first.command_for(_quoted(store))}`: {first.fix}")
    elif first.fix:
        render.say(f"          to do: {first.fix}")
