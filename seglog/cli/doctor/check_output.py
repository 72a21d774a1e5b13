"""Prints the result of a check, for `seglog check` and for `seglog spark audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from seglog.cli.ui import render
from seglog.cli.ui.findings import show_findings
from seglog.doctor.check import CheckReport, RecoveryWalk, Triage, verdict_facts, verdict_on
from seglog.storage.findings import bytes_text, findings_fields, next_command

_COPY: Final = Path("COPY")


def emit_check(report: CheckReport) -> None:
    """Prints a check as JSON: a line for each finding and each part that was not checked, then a summary."""
    for fields in findings_fields(report.findings):
        render.emit({"kind": "finding", **fields})
    for text in report.not_looked_at:
        render.emit({"kind": "unseen", "what": text})
    render.emit({"kind": "check", **check_fields(report)})


def check_fields(report: CheckReport) -> dict[str, object]:
    """Returns the summary of a check for programs."""
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
        "why": verdict.start.reason or verdict.start.why,
        "cutAt": verdict.start.cut_at if verdict.start.cut_at >= 0 else None,
        "cutMessages": verdict.start.cut_messages,
        "recoveryReads": _walk_fields(verdict.start.walk),
        "lostForGood": verdict.lost,
        "lostByTopic": dict(verdict.lost_of),
        "mayBeMore": verdict.may_be_more,
        "repairSaves": verdict.saved,
        "rocketmqMakesAnew": verdict.made_anew,
        "doNot": verdict.do_not,
        "next": next_command(report.findings, _COPY if report.address else report.root),
    }


def _walk_fields(walk: RecoveryWalk | None) -> dict[str, object] | None:
    if walk is None:
        return None
    return {
        "fromPhyOffset": walk.first_phy_offset,
        "files": walk.files,
        "bytes": walk.size_bytes,
        "sinceTimestamp": walk.since_ms or None,
    }


def show_check(report: CheckReport, path: Path | str) -> None:
    """Prints a check for people.

    Args:
        report: The check.
        path: The store as the user named it, for the commands to type: those take no address.
    """
    typed = _COPY if report.address else Path(path)
    todo = next_command(report.findings, typed)
    render.facts(verdict_facts(report, typed))
    render.say()
    render.facts(
        {
            "store": render.printable(str(path)),
            "state": _state_text(report),
            "log": _log_text(report),
            **_recovery_facts(report.start.walk, len(report.log_files)),
            "records": f"{render.count_text(report.records)}{_crc_text(report)}",
            "queues": _queues_text(report),
            "index": render.count_text(report.keys, "key") + " in the log",
            "result": "clean" if report.is_clean else "NOT clean",
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
        render.say("  ", text)
    if todo:
        render.say()
        render.say(f"next: {todo}")
        if text := bytes_text(todo):
            render.say(f"BYTES: {text}")
        if report.address:
            render.say(f"{_COPY} is a copy of the store on a file system: an address is only read")


def _recovery_facts(walk: RecoveryWalk | None, log_files: int) -> dict[str, str]:
    if walk is None or not walk.files:
        return {}
    files = f"{walk.files:,} of {render.count_text(log_files, 'file')}"
    since = f", stored since {render.time_text(walk.since_ms)}" if walk.since_ms else ""
    return {"start": f"RocketMQ reads {files}, {render.size_text(walk.size_bytes)}{since}"}


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
    messages = render.messages_text(
        counts.messages, counts.lost, counts.placeholders, may_be_more=verdict_on(report).may_be_more
    )
    groups = len({lag.group for lag in report.lags})
    return (
        f"{render.count_text(len(report.queues))} of {render.count_text(topics, 'topic')},"
        f" {messages}, {render.count_text(groups, 'group')}"
    )
