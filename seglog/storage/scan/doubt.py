"""Whether a store may have lost more messages than anything counts: the only module that decides it.

Check, plan, export and recovery ask here. Recovery writes the answer to ``seglog/holes``, since after it the
evidence of a lost end of the log (a checkpoint, an index or an offset that knew more) is gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from seglog.storage.findings.code import ROCKSDB_QUEUES
from seglog.storage.findings.findings import Finding
from seglog.storage.scan.holes_file import LOST_END, KnownHole

_HOLES: Final = frozenset({"log-file-missing", "log-hole"})
_REPLACED: Final = "log-file-foreign"
"""Code of a log file of another store: no unit may be left of some messages that were in its place."""
_LOST_END: Final = "log-tail-lost"
_GAP: Final = "queue-gap"
"""With an expected record: the log has another one at its place."""
_STRAY: Final = "index-entry-stray"
_BEHIND_END: Final = frozenset(
    {
        "checkpoint-ahead",
        "delay-offset-beyond",
        _STRAY,
        "log-tail-lost",
        "offset-beyond-queue",
        "timer-check-ahead",
    }
)
"""Codes of files that knew of records behind the end of the log."""
_UNCOUNTED: Final = frozenset({"queue-due", "queue-missing", "queue-short"})
"""Codes of queues that have no units behind the end of the log, and so cannot count what was lost there."""
_ALL_UNCOUNTED: Final = "queue-length-unknown"
_QUEUE_PARTS: Final = slice(1, 3)
"""Topic and number in the path of a queue's file."""

Key: TypeAlias = tuple[str, int]
"""Topic and number of a queue."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Whether more messages may be lost than are counted; true if so.

    Attributes:
        is_in_hole: Whether a hole of the log, or a place where it has a file of another store, may have held
            messages that nothing names.
        is_at_end: Whether the log lost its end, and queues have no units that would name the messages.
        queues: These queues; empty for all.
    """

    is_in_hole: bool = False
    is_at_end: bool = False
    queues: frozenset[Key] = frozenset()

    def __bool__(self) -> bool:
        """Returns whether there is a doubt."""
        return self.is_in_hole or self.is_at_end

    def __or__(self, other: Doubt) -> Doubt:
        """Returns both doubts as one."""
        at_end = [one for one in (self, other) if one.is_at_end]
        is_of_all = any(not one.queues for one in at_end)
        queues = frozenset[Key]() if is_of_all else self.queues | other.queues
        return Doubt(self.is_in_hole or other.is_in_hole, bool(at_end), queues)

    def concerns(self, topic: str, queue_id: int) -> bool:
        """Returns whether a queue may have lost more messages than are counted."""
        return self.is_in_hole or (self.is_at_end and (not self.queues or (topic, queue_id) in self.queues))


def doubt_of(findings: Iterable[Finding]) -> Doubt:
    """Returns the doubt about damage that is in a store now; the more files were examined, the better.

    Args:
        findings: Findings about the store.
    """
    findings = list(findings)
    # Only stray entries behind the end of the log have places that the index should not have.
    is_behind = any(one.code in _BEHIND_END and (one.expected or one.code != _STRAY) for one in findings)
    is_of_all = any(map(_counts_none, findings))
    uncounted = frozenset(_queue_of(one) for one in findings if one.code in _UNCOUNTED)
    # Units of the lost end leave room for others: those of queues without units there, if there are such.
    has_room = any(one.code == _LOST_END and one.may_be_more for one in findings)
    is_of_all = is_of_all or (has_room and not uncounted)
    is_at_end = is_behind and (is_of_all or bool(uncounted))
    # The last messages of a queue leave no gap: without units nothing counts those that a hole held.
    is_apart = any(one.code == ROCKSDB_QUEUES and one.messages for one in findings)
    return Doubt(
        any(
            finding.code == _REPLACED
            or (finding.code == _GAP and finding.expected)
            or (finding.code in _HOLES and (is_apart or finding.may_be_more or not finding.messages))
            for finding in findings
        ),
        is_at_end,
        uncounted if is_at_end and not is_of_all else frozenset(),
    )


def has_uncounted(findings: Iterable[Finding]) -> bool:
    """Returns whether a queue has no units behind the end of the log; without one a lost end is counted."""
    return any(one.code in _UNCOUNTED or _counts_none(one) for one in findings)


def _counts_none(finding: Finding) -> bool:
    """Returns whether a finding says that no queue has units that count what was lost at the log's end.

    That on RocksDB has a number of messages if these are in no queue file.
    """
    return finding.code == _ALL_UNCOUNTED or (finding.code == ROCKSDB_QUEUES and finding.messages > 0)


def earlier_doubt(standing: Iterable[KnownHole]) -> Doubt:
    """Returns the doubt that earlier recoveries wrote down.

    Args:
        standing: The result of :func:`~seglog.storage.scan.message_counts.standing_losses`.
    """
    doubt = Doubt()
    for hole in standing:
        if hole.is_open:
            is_at_end = hole.why == LOST_END
            doubt |= Doubt(not is_at_end, is_at_end, frozenset(hole.queues))
    return doubt


def lost_end(doubt: Doubt, end_phy_offset: int, now_ms: int) -> list[KnownHole]:
    """Returns the entry of ``seglog/holes`` for a lost end of the log that nothing counts; none without one.

    Args:
        doubt: The doubt about the store as it is now.
        end_phy_offset: End of the log.
        now_ms: The time.
    """
    if not doubt.is_at_end:
        return []
    queues = tuple(sorted(doubt.queues))
    return [
        KnownHole(end_phy_offset, 0, LOST_END, first_seen_ms=now_ms, is_open=True, queues=queues),
    ]


def _queue_of(finding: Finding) -> Key:
    topic, queue_id = Path(finding.file).parts[_QUEUE_PARTS]
    return topic, int(queue_id)
