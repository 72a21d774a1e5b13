"""Formats the verdict of a check as text, for the terminal and for HTML pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from seglog.doctor.check.broker_start import Start
from seglog.doctor.check.check_report import CheckReport
from seglog.doctor.check.triage import Triage, verdict_on
from seglog.storage.findings import bytes_text, next_command, refuses_repair
from seglog.text import count_text, shell_text

_MAX_TOPICS: Final = 3


def verdict_facts(report: CheckReport, store: Path) -> dict[str, str]:
    """Returns the verdict as names and values: at most eight lines of 80 columns.

    Args:
        report: The report of a check.
        store: The store directory as the user types it.
    """
    verdict = verdict_on(report)
    named = {
        "RocketMQ": _start_text(verdict),
        "lost": _lost_text(report, verdict),
        "repair": _saved_text(report, verdict),
    }
    if verdict.do_not:
        named["do not"] = verdict.do_not
    if todo := next_command(report.findings, store):
        named["next"] = todo
        if text := bytes_text(todo):
            named["BYTES"] = text
    elif not report.is_clean:
        named["next"] = "do by hand what the findings say"
    elif verdict.start.is_assumed:
        named["next"] = f"seglog check --broker-conf FILE {shell_text(store)}"
    return named


def _saved_text(report: CheckReport, verdict: Triage) -> str:
    if verdict.saved is None:
        return "takes back the one that was stopped, and starts over: its plan says what it saves"
    if verdict.saved:
        own = f"; RocketMQ rebuilds the queues of {verdict.made_anew:,} itself" if verdict.made_anew else ""
        return f"saves {count_text(verdict.saved, 'message')}{own}"
    if not report.is_clean and any(map(refuses_repair, report.findings)):
        return "refused: seglog does not write to a store with queues in RocksDB"
    return "nothing to do" if report.is_clean else "saves no message"


def _start_text(verdict: Triage) -> str:
    start = verdict.start
    if start.start is Start.LOSES:
        count = count_text(start.cut_messages, "message")
        return f"starts and loses {count if start.cut_messages else 'all messages'}: {start.why}"
    words = {Start.YES: "starts", Start.NO: "does not start", Start.UNKNOWN: "not known whether it starts"}
    return words[start.start] + (f": {start.reason}" if start.reason else "")


def _lost_text(report: CheckReport, verdict: Triage) -> str:
    if verdict.is_log_unread:
        return "not known: the log, or a part of it, cannot be read"
    if verdict.lost is None:
        text = "says what the log lost" if verdict.doubt else "said what the log lost earlier"
        return f"not known: no queue {text}"
    unread = f"; not known of {_unread_text(verdict.unread)}" if verdict.unread else ""
    if not verdict.lost:
        # What was before it may have left with retention or been lost: no file says which.
        start = report.min_phy_offset
        return f"no message{f' from {start:,} on, where the log begins' if start > 0 else ''}{unread}"
    least = "at least " if verdict.may_be_more else ""
    topics = [f"{topic} {count:,}" for topic, count in verdict.lost_of[:_MAX_TOPICS]]
    more = len(verdict.lost_of) - len(topics)
    text = f"{least}{count_text(verdict.lost, 'message')} for good: {', '.join(topics)}"
    return text + (f" and {count_text(more, 'more topic')}" if more > 0 else "") + unread


def _unread_text(unread: Sequence[str]) -> str:
    more = len(unread) - 1
    return f"{unread[0]}, which cannot be read" + (f", and {count_text(more, 'more queue')}" if more else "")
