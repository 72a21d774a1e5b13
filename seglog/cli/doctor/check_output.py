"""How the outcome of a check looks, from `seglog check` and from Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from seglog.cli.ui import render
from seglog.cli.ui.findings import counts_text, next_command, show_findings
from seglog.doctor.check import CheckReport, Start, Triage, verdict_on
from seglog.storage.findings import finding_fields

_COPY: Final = Path("COPY")
_MAX_TOPICS: Final = 3


def emit_check(report: CheckReport) -> None:
    """Prints what was found as JSON: a line for each finding and for what was not seen, then the sum."""
    for finding in report.findings:
        render.emit({"kind": "finding", **finding_fields(finding)})
    for text in report.not_looked_at:
        render.emit({"kind": "unseen", "what": text})
    render.emit({"kind": "check", **check_fields(report)})


def check_fields(report: CheckReport) -> dict[str, object]:
    """Returns the sum of a check for programs."""
    return {
        "path": report.store,
        "clean": report.is_clean,
        "state": report.state,
        "holder": report.holder,
        **{severity.value: count for severity, count in report.counts.items()},
        "mappedFileSizeCommitLog": report.geometry.segment_size_bytes,
        "mappedFileSizeConsumeQueue": report.geometry.queue_file_size_bytes,
        "minPhyOffset": report.min_phy_offset,
        "maxPhyOffset": report.end_phy_offset,
        "records": report.records,
        "withRecordCrc": report.with_record_crc,
        "keys": report.keys,
        "queues": len(report.queues),
        "messages": report.messages.messages,
        "lostMessages": report.messages.lost,
        "placeholders": report.messages.placeholders,
        "sealed": report.sealed,
        "bytes": report.read_bytes,
        "resumedBytes": report.resumed_bytes,
        "elapsedMs": round(report.elapsed_ms, 3),
        "verdict": _verdict_fields(report, verdict_on(report)),
    }


def _verdict_fields(report: CheckReport, verdict: Triage) -> dict[str, object]:
    return {
        "rocketmqStarts": verdict.start.start.value,
        "why": verdict.start.why,
        "cutAt": verdict.start.cut_at if verdict.start.cut_at >= 0 else None,
        "cutMessages": verdict.start.cut_messages,
        "lostForGood": verdict.lost,
        "lostByTopic": dict(verdict.lost_of),
        "mayBeMore": verdict.is_at_least,
        "repairSaves": verdict.saved,
        "doNot": verdict.do_not,
        "next": next_command(report.findings, _COPY if report.address else report.root),
    }


def show_check(report: CheckReport, path: Path | str) -> None:
    """Prints what was found for people.

    Args:
        report: What was found.
        path: The store as it was named, which goes into the commands to type: they take no address.
    """
    typed = _COPY if report.address else Path(path)
    todo = next_command(report.findings, typed)
    _show_verdict(report, todo)
    render.say()
    render.facts(
        {
            "store": render.printable(str(path)),
            "state": _state_text(report),
            "log": _log_text(report),
            "records": f"{render.count_text(report.records)}{_crc_text(report)}",
            "queues": _queues_text(report),
            "index": render.count_text(report.keys, "key") + " in the log",
            "result": "clean" if report.is_clean else f"NOT clean: {counts_text(report.findings)}",
        }
    )
    if report.findings:
        render.say()
        show_findings(report.findings, typed)
    if report.concerned:
        damaged = sum(not message.is_readable for message in report.concerned)
        render.say(
            f"messages in changed blocks: {render.count_text(damaged)} damaged,"
            f" {render.count_text(len(report.concerned) - damaged)} uncertain; `seglog verify` names them"
        )
    render.say()
    render.say("not looked at, or not to be seen:")
    for text in report.not_looked_at:
        render.say(f"  {render.printable(text)}")
    if todo:
        render.say()
        render.say(f"next: {todo}")
        if report.address:
            render.say(f"{_COPY} is a copy of the store on a file system: an address is only read")


def _show_verdict(report: CheckReport, todo: str) -> None:
    """Prints what an operator asks first, in at most eight lines of 80 columns."""
    verdict = verdict_on(report)
    named = {
        "RocketMQ": _start_text(verdict),
        "lost": _lost_text(verdict),
        "repair": _saved_text(report, verdict),
    }
    if verdict.do_not:
        named["do not"] = verdict.do_not
    if todo:
        named["next"] = todo
    elif not report.is_clean:
        named["next"] = "do by hand what the findings say"
    render.facts(named, is_folded=True)


def _saved_text(report: CheckReport, verdict: Triage) -> str:
    if verdict.saved:
        return f"saves {render.count_text(verdict.saved, 'message')}"
    return "nothing to do" if report.is_clean else "saves no message"


def _start_text(verdict: Triage) -> str:
    start = verdict.start
    if start.start is Start.LOSES:
        count = render.count_text(start.cut_messages, "message")
        return f"starts and loses {count if start.cut_messages else 'all messages'}: {start.why}"
    words = {Start.YES: "starts", Start.NO: "does not start", Start.UNKNOWN: "not known whether it starts"}
    is_said = start.why and start.start is not Start.YES
    return words[start.start] + (f": {start.why}" if is_said else "")


def _lost_text(verdict: Triage) -> str:
    if verdict.lost is None:
        return "not known: the log, or a part of it, cannot be read"
    if not verdict.lost:
        return "not known: no queue says what the log's holes held" if verdict.is_at_least else "no message"
    least = "at least " if verdict.is_at_least else ""
    topics = [f"{topic} {count:,}" for topic, count in verdict.lost_of[:_MAX_TOPICS]]
    more = len(verdict.lost_of) - len(topics)
    text = f"{least}{render.count_text(verdict.lost, 'message')} for good: {', '.join(topics)}"
    return text + (f" and {render.count_text(more, 'more topic')}" if more > 0 else "")


def _state_text(report: CheckReport) -> str:
    if report.holder is not None:
        return "open for writing by " + (f"process {report.holder}" if report.holder > 0 else "a process")
    return (
        "closed cleanly" if report.state == "clean" else "not closed: its last writer crashed or was killed"
    )


def _log_text(report: CheckReport) -> str:
    start = max(0, report.min_phy_offset)
    size = render.size_text(report.end_phy_offset - start)
    files = render.count_text(len(report.log_files), "file")
    seconds = report.elapsed_ms / 1000
    rate = render.size_text(report.read_bytes / max(seconds, 1e-3))
    text = f"{start}..{report.end_phy_offset}, {size} in {files}; read in {seconds:.1f} s, {rate}/s"
    if report.resumed_bytes:
        text += f", {render.size_text(report.resumed_bytes)} of it in an earlier check"
    return text


def _crc_text(report: CheckReport) -> str:
    by_seal = f"; {render.count_text(report.sealed, 'segment')} held against seals" if report.sealed else ""
    if not report.records:
        return by_seal
    if report.with_record_crc == report.records:
        return ", all with record CRC" + by_seal
    count = render.count_text(report.with_record_crc) if report.with_record_crc else "none"
    return f", {count} with record CRC" + by_seal


def _queues_text(report: CheckReport) -> str:
    topics = len({queue.topic for queue in report.queues})
    counts = report.messages
    messages = render.messages_text(counts.messages, counts.lost, counts.placeholders)
    groups = len({lag.group for lag in report.lags})
    return (
        f"{render.count_text(len(report.queues))} of {render.count_text(topics, 'topic')},"
        f" {messages}, {render.count_text(groups, 'group')}"
    )
