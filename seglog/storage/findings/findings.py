"""What a look at a store found: one value per fact, with a stable code that programs can match."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from typing_extensions import override

from seglog.storage.findings.code import REFUSED_REPAIR, REPAIR, ROCKSDB_QUEUES, WITH_OPTION, Severity
from seglog.storage.findings.finding_codes import CODES
from seglog.storage.findings.rocketmq_lines import lines_of
from seglog.storage.format.names import parse_segment_file_name

__all__ = ["CODES", "Finding", "Severity"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about a store.

    Attributes:
        code: Stable short word, a key of :data:`CODES`.
        file: Relative to the store.
        position_bytes: Where in the file.
        size_bytes: How much of it is concerned, 0 where that says nothing.
        expected: What should be there.
        found: What the file has.
        messages: How many messages are concerned, 0 where none or unknown.
        may_be_more: Whether further messages may be concerned, of which nothing is known.
    """

    code: str
    file: str
    position_bytes: int = 0
    size_bytes: int = 0
    expected: str = ""
    found: str = ""
    messages: int = 0
    may_be_more: bool = False

    @property
    def place(self) -> tuple[str, str, int]:
        """Code, file and position: what a second look at the same damage finds again."""
        return self.code, self.file, self.position_bytes

    @property
    def severity(self) -> Severity:
        """How much it matters."""
        return CODES[self.code].severity

    @property
    def meaning(self) -> str:
        """What the code stands for, in a sentence."""
        return CODES[self.code].meaning

    @property
    def for_messages(self) -> str:
        """What it means for messages."""
        return CODES[self.code].for_messages

    @property
    def fix(self) -> str:
        """What would put it right; empty where nothing need be done."""
        return CODES[self.code].fix

    @property
    def command(self) -> str:
        """What to type for that, as :class:`~seglog.storage.findings.finding_codes.Code` has it."""
        return CODES[self.code].command

    @property
    def rocketmq_logs(self) -> tuple[str, ...]:
        """What RocketMQ logs when it meets it, with ``…`` for values; empty where it does not notice."""
        return lines_of(self.code)

    def command_among(self, findings: Iterable[Finding]) -> str:
        """Returns :attr:`command`; a repair has the option without which it is refused, or does less.

        Args:
            findings: The findings on the store, or those of them that ask for an option or refuse a repair;
                a command that is refused is left out.
        """
        findings = list(findings)
        if self.command.startswith((REPAIR, WITH_OPTION)) and any(map(refuses_repair, findings)):
            return ""
        if self.command != REPAIR:
            return self.command
        return next((one.command for one in findings if one.command.startswith(WITH_OPTION)), self.command)

    def fix_among(self, findings: Iterable[Finding]) -> str:
        """Returns :attr:`fix`, or that there is none where a repair of the store is refused.

        Args:
            findings: As for :meth:`command_among`.
        """
        return self.fix if self.command_among(findings) or not self.command else REFUSED_REPAIR

    def command_for(self, store: str, among: Iterable[Finding] = ()) -> str:
        """Returns what to type about this finding.

        Args:
            store: The store directory, as a shell takes it.
            among: As for :meth:`command_among`.
        """
        first = parse_segment_file_name(self.file.rpartition("/")[2])
        place = self.position_bytes + (first or 0)
        return self.command_among(among).replace("PLACE", str(place)).replace("STORE", store)

    @override
    def __str__(self) -> str:
        said = {"expected": self.expected, "found": self.found}
        known = ", ".join(f"{word} {text}" for word, text in said.items() if text)
        detail = f": {known}" if known else ""
        return f"{self.code} {self.file} +{self.position_bytes}{detail} ({self.meaning})"


def refuses_repair(finding: Finding) -> bool:
    """Returns whether a repair of the store is refused because of a finding."""
    return finding.code == ROCKSDB_QUEUES
