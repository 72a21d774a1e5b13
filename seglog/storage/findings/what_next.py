"""What to type next about a store in which something was found."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from seglog.storage.findings.code import WITH_OPTION, Severity
from seglog.storage.findings.findings import Finding, refuses_repair
from seglog.storage.format.names import OURS
from seglog.text import shell_text

_BYTES_OF: Final[Mapping[str, str]] = {
    "--queue-file-bytes": "mappedFileSizeConsumeQueue of broker.conf; 6000000 if it is not set there",
    "--segment-bytes": "mappedFileSizeCommitLog of broker.conf; 1073741824 if it is not set there",
}
"""What stands for ``BYTES`` behind an option; the numbers are RocketMQ's defaults."""


def next_command(findings: Sequence[Finding], store: str | os.PathLike[str]) -> str:
    """Returns the command that puts most right, empty if there is nothing to type.

    Where a repair is refused it is the one that saves what can be read.

    Args:
        findings: What was found.
        store: The store directory.
    """
    serious = [finding for finding in findings if finding.severity is not Severity.NOTE and finding.command]
    if not serious or any(map(_blocks_repair, findings)):
        return ""
    typed = shell_text(store)
    if any(map(refuses_repair, findings)):
        serious = [finding for finding in serious if finding.command_among(findings)]
        if not serious:
            return f"seglog export --allow-lost -o FILE {typed}"
    # Without the option the same command is refused, or does less.
    for finding in serious:
        if finding.command.startswith(WITH_OPTION):
            return finding.command_for(typed)
    worst = max(list(Severity).index(finding.severity) for finding in serious)
    commands = Counter(
        finding.command_for(typed) for finding in serious if list(Severity).index(finding.severity) == worst
    )
    return commands.most_common(1)[0][0]


def bytes_text(command: str) -> str:
    """Returns what has to replace ``BYTES`` in a command, and where it is found; empty without ``BYTES``."""
    return next((text for option, text in _BYTES_OF.items() if f"{option} BYTES" in command), "")


def repair_with_length(option: str, store: str | os.PathLike[str]) -> str:
    """Returns the repair that needs a length, in words: the command, and what has to replace ``BYTES``.

    Args:
        option: ``--queue-file-bytes`` or ``--segment-bytes``.
        store: The store directory.
    """
    return f"`seglog repair {option} BYTES {shell_text(store)}` (BYTES: {_BYTES_OF[option]})"


def _blocks_repair(finding: Finding) -> bool:
    """Returns whether a person must put this right first: a repair takes for lost what it does not read."""
    is_other = finding.code == "file-kind" and not finding.file.startswith(f"{OURS}/")
    return is_other or finding.code in {"file-unreadable", "log-file-doubled"}
