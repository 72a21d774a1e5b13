"""The verdict at the top of a check: the first questions of an operator whose store does not start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.doctor.check.broker_start import BrokerStart, Start, phy_offset_of, unqueued_messages
from seglog.doctor.check.check_report import CheckReport
from seglog.errors import Ending
from seglog.storage.directory import folder_of_queue
from seglog.storage.files import LINK, NAMES_OF_A_STORE
from seglog.storage.findings import Finding, ending_of, refuses_repair
from seglog.storage.format.names import (
    BATCH_CONSUME_QUEUE,
    COMMIT_LOG,
    CONSUME_QUEUE,
    OURS,
    parse_segment_file_name,
)
from seglog.storage.scan import Doubt, doubt_of

_RECORDS: Final = frozenset({"attic-record", "record-repairable"})
"""Codes of records that a repair, or opening the store for writing, restores, and RocketMQ never does."""

_HALF_DONE: Final = "undo-unfinished"
"""Code of a repair that was stopped half-way, or of the undo of one."""
_DOUBLED: Final = "log-file-doubled"
_NOT_READ: Final = frozenset({"file-kind", "file-unreadable"})
_QUEUE_FOLDERS: Final = frozenset({CONSUME_QUEUE, BATCH_CONSUME_QUEUE})
_QUEUE_DEPTH: Final = 3
"""Parts of the name of a queue's folder: folder of all queues, topic and number."""


@dataclass(frozen=True, slots=True)
class Triage:
    """The verdict.

    Attributes:
        start: What RocketMQ does when it starts on the store.
        lost: Messages that nothing can restore, each counted once; None if that is not known.
        lost_of: Number of them in each topic, the largest first.
        doubt: Whether holes, or a lost end of the log, may have held further messages that no queue has
            a unit for.
        earlier: The same of what earlier recoveries wrote down.
        is_log_unread: Whether the log, or a part of it, cannot be read.
        unread: Folders of queues that cannot be read, sorted; these may have units of further lost messages.
        saved: Messages that RocketMQ does not serve now, or would cut off, and that a repair saves; None
            while a repair is half done, because the next one takes it back first, and 0 where it is refused.
        made_anew: How many of these RocketMQ serves again by itself once it has started.
        do_not: What would do harm, and why; empty if nothing would.
    """

    start: BrokerStart
    lost: int | None
    lost_of: tuple[tuple[str, int], ...]
    doubt: Doubt
    earlier: Doubt
    is_log_unread: bool
    unread: tuple[str, ...]
    saved: int | None
    made_anew: int
    do_not: str

    @property
    def is_at_least(self) -> bool:
        """Whether more messages may be lost than are counted, by damage of now or of earlier times."""
        return bool(self.doubt or self.earlier)

    @property
    def may_be_more(self) -> bool:
        """Whether more messages may be lost than are counted, in queues that cannot be read too."""
        return self.is_at_least or bool(self.unread)


def verdict_on(report: CheckReport) -> Triage:
    """Returns the verdict on a store that was checked."""
    by_topic: Counter[str] = Counter()
    for (topic, _queue_id), count in report.messages.lost_of.items():
        by_topic[topic] += count
    codes = {finding.code for finding in report.findings}
    unqueued = unqueued_messages(report.findings, report.queues, report.messages).total()
    behind = report.start.cut_messages - report.start.cut_counted
    back = sum(finding.messages for finding in report.findings if finding.code in _RECORDS)
    doubt, earlier = doubt_of(report.findings), report.messages.earlier
    is_elsewhere = report.messages.lost > 0 and _may_be_elsewhere(report.findings)
    is_without = bool(codes & {"log-empty", "log-file-packed"})
    is_log_unread = is_without or is_elsewhere or _is_log_unread(report.findings)
    is_unknown = is_log_unread or (not report.messages.lost and bool(doubt or earlier))
    return Triage(
        report.start,
        None if is_unknown else report.messages.lost,
        tuple(sorted(by_topic.items(), key=lambda one: (-one[1], one[0]))),
        doubt,
        earlier,
        is_log_unread,
        tuple(sorted({*_unread_queues(report.findings)})),
        _saved(report, unqueued + back + behind, back),
        max(0, unqueued - _stuck(report)) if _makes_queues_itself(report) else 0,
        _do_not(report, doubt),
    )


def _saved(report: CheckReport, saved: int, back: int) -> int | None:
    codes = {finding.code for finding in report.findings}
    if _HALF_DONE in codes:
        return None
    if _DOUBLED in codes:
        return 0  # a repair is refused
    # Records of a queue that started over after them are no messages of it.
    return 0 if any(map(refuses_repair, report.findings)) else min(saved, report.messages.messages + back)


def ending_of_check(report: CheckReport, *, is_strict: bool = False) -> Ending:
    """Returns the exit code of a check: that of its findings, and that of a loss if one is only probable.

    Args:
        report: The report of the check.
        is_strict: Whether notes count.
    """
    ending = ending_of(report.findings, is_strict=is_strict)
    if ending is not Ending.FINDINGS:
        return ending
    verdict = verdict_on(report)
    # What a repair that is half done has given up is lost as well after it was taken back and done again.
    is_lossy = verdict.doubt or (verdict.saved is None and report.messages.lost)
    return Ending.LOSS if is_lossy else ending


def _is_log_unread(findings: Iterable[Finding]) -> bool:
    """Returns whether a part of the log, or of the list of its earlier losses, cannot be read."""
    return any(
        finding.code == "file-unreadable" and Path(finding.file).parts[:1] in {(), (COMMIT_LOG,), (OURS,)}
        for finding in findings
    )


def _may_be_elsewhere(findings: Iterable[Finding]) -> bool:
    """Returns whether further files of the log may be where nothing is read.

    That is a folder to which a link leads that is not followed, or a file whose name another one has.
    """
    return any(
        finding.code == _DOUBLED
        or (
            finding.code == "file-kind"
            and finding.found.startswith(LINK)
            and "/" not in finding.file
            and finding.file not in NAMES_OF_A_STORE
        )
        for finding in findings
    )


def _unread_queues(findings: Iterable[Finding]) -> Iterator[str]:
    """Yields the folders of queues that cannot be read, or that of all queues of a topic or of the store."""
    for finding in findings:
        parts = Path(finding.file).parts
        is_of_queue = bool(parts) and parts[0] in _QUEUE_FOLDERS
        # A name that no queue file has, such as that of a pipe beside them, holds no units.
        may_hold_units = len(parts) <= _QUEUE_DEPTH or parse_segment_file_name(parts[-1]) is not None
        if finding.code in _NOT_READ and is_of_queue and may_hold_units:
            yield "/".join(parts[:_QUEUE_DEPTH])


def _stuck(report: CheckReport) -> int:
    """Returns how many messages have no right unit though their queue has units of later ones.

    RocketMQ never writes these: it passes over records that are before the end of the last unit's record
    (``ConsumeQueue.java`` putMessagePositionInfo).
    """
    stuck = [finding for finding in report.findings if finding.code in {"queue-short", "queue-unit-wrong"}]
    return unqueued_messages(stuck, report.queues, report.messages).total()


def _makes_queues_itself(report: CheckReport) -> bool:
    """Returns whether RocketMQ, when it starts, rebuilds queues that lack messages.

    It rebuilds units for the records that its recovery walks after a crash. In a store without any queue file
    it follows the log from its start (``DefaultMessageStore.java`` recoverTopicQueueTable).
    """
    walk = report.start.walk
    if walk is None:
        return False
    missing = sum(
        finding.messages
        for finding in report.findings
        if finding.code in {"queue-missing", "queue-due"} and folder_of_queue(finding.file) == finding.file
    )
    walks_all = walk.first_phy_offset <= max(0, report.min_phy_offset)
    return missing == report.messages.messages or (report.state == "crashed" and walks_all)


def _do_not(report: CheckReport, doubt: Doubt) -> str:
    start = report.start
    if start.start is Start.LOSES:
        harm = "it deletes the queues"
        if start.cut_messages:
            harm = f"it deletes {start.cut_messages:,} messages that are whole or can be repaired"
    elif start.start is Start.UNKNOWN and not start.is_assumed:
        harm = "" if report.holder is not None else "what it does is not known"
    elif start.start is Start.NO:
        harm = ""
    elif start.why:
        harm = f"{start.why}, with {start.cut_messages:,} messages"
    else:
        harm = _harm_to_queues(report, doubt)
    return f"start RocketMQ on it: {harm}" if harm else ""


def _harm_to_queues(report: CheckReport, doubt: Doubt) -> str:
    """Returns what RocketMQ does if its queues end after, or before, the end of the log."""
    # Units that lead into the log, be it to a file that is gone, stay, and new messages come after them.
    log_end = report.start.end_phy_offset
    lost = [finding for finding in report.findings if finding.code == "messages-lost"]
    ends = sum(finding.messages for finding in lost if phy_offset_of(finding) >= log_end)
    if ends:
        return f"it gives the queue offsets of {ends:,} lost messages to new ones"
    if doubt.is_at_end or any(phy_offset_of(finding) + finding.size_bytes > log_end for finding in lost):
        return "it may give the queue offsets of lost messages to new ones"
    if any(finding.code == "queue-length-unknown" for finding in report.findings):
        return ""
    if report.state != "clean":
        # It gives queues the units of the records that it walks, behind the units that are there: where a
        # queue lacks one before them, each comes to another queue offset (``ConsumeQueue.java``).
        lacking = max(report.start.unqueued_before, _stuck(report))
        harm = f"its queues lack {lacking:,} messages, and it may serve others in their place"
        return harm if lacking else ""
    unqueued = sum(
        finding.messages for finding in report.findings if finding.code in {"queue-missing", "queue-short"}
    )
    return f"it may not serve {unqueued:,} messages that their queues lack" if unqueued else ""
