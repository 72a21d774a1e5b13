"""``seglog check``: looks at everything in a store, says what is wrong, what that means, and what to type.

Reads only, and takes no lock: it works on a store that was not closed, and beside a running writer. Ends
with 0 if nothing was found but notes, as ``git fsck`` does; with 1 after a finding; with 3 or more if it
could not see all.
"""

from __future__ import annotations

import re
import shlex
import time
from pathlib import Path
from typing import Final

import click

from seglog.cli import options, render
from seglog.cli.failures import INTERRUPTED_EXIT_CODE
from seglog.cli.findings import counts_text, finding_fields, next_command, show_findings
from seglog.doctor.check import check_store
from seglog.doctor.check_report import CheckReport
from seglog.doctor.resume_file import default_resume_file
from seglog.errors import InvalidArgumentError, StoppedError

_DURATION: Final = re.compile(r"([0-9]{1,9})(s|m|h)")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}


@click.command
@options.store
@click.option("--max-duration", metavar="TIME", help="Stop after a time such as 30s, 10m or 2h.")
@click.option(
    "--resume",
    "resume_file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Go on where a check was stopped, and keep in FILE how far it is.",
)
@options.as_json
def command(*, path: Path, max_duration: str | None, resume_file: Path | None, as_json: bool) -> None:
    """Look at everything in STORE: log, queues, index, offsets, timers, files.

    Reads only, and works beside a process that has the store open. A finding says what it means for
    messages and what to do. Notes are no findings: with nothing else the exit code is 0, else 1.

    Ctrl-C, or the end of --max-duration, leaves a file outside of the store with which a later check
    goes on.
    """
    deadline_s = None if max_duration is None else time.monotonic() + _seconds(max_duration)
    kept = resume_file or default_resume_file(path)
    try:
        with render.progress("checking the log") as tell:
            report = check_store(
                path,
                resume_file=kept,
                resume=resume_file is not None and kept.exists(),
                should_stop=lambda: deadline_s is not None and time.monotonic() >= deadline_s,
                progress=tell,
            )
    except KeyboardInterrupt:
        click.echo(f"interrupted; go on with `{_go_on(path, kept)}`", err=True)
        raise click.exceptions.Exit(INTERRUPTED_EXIT_CODE) from None
    except StoppedError as error:
        if error.resume_file:
            error.help = f"go on with `{_go_on(path, kept)}`"
        raise
    if as_json:
        _emit(report)
    else:
        _show(report, path)
    if not report.is_clean:
        raise click.exceptions.Exit(1)


def _go_on(path: Path, kept: Path) -> str:
    return f"seglog check {shlex.quote(str(path))} --resume {shlex.quote(str(kept))}"


def _seconds(text: str) -> int:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise InvalidArgumentError(
            f"--max-duration {text!r} is no time", help="give one such as 30s, 10m or 2h"
        )
    return int(match[1]) * _SECONDS[match[2]]


def _emit(report: CheckReport) -> None:
    for finding in report.findings:
        render.emit({"kind": "finding", **finding_fields(finding)})
    for text in report.not_looked_at:
        render.emit({"kind": "unseen", "what": text})
    render.emit(
        {
            "kind": "check",
            "path": str(report.root),
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
            "sealed": report.sealed,
            "bytes": report.read_bytes,
            "resumedBytes": report.resumed_bytes,
            "elapsedMs": round(report.elapsed_ms, 3),
        }
    )


def _show(report: CheckReport, path: Path) -> None:
    render.facts(
        {
            "store": render.printable(str(path)),
            "state": _state_text(report),
            "log": _log_text(report),
            "records": f"{render.count_text(report.records)}, {_crc_text(report)}",
            "queues": _queues_text(report),
            "index": render.count_text(report.keys, "key") + " in the log",
            "result": "clean" if report.is_clean else f"NOT clean: {counts_text(report.findings)}",
        }
    )
    if report.findings:
        render.say()
        show_findings(report.findings, path)
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
    todo = next_command(report.findings, path)
    if todo:
        render.say()
        render.say(f"next: {todo}")


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
    if report.with_record_crc == report.records:
        return "all with record CRC" + by_seal
    count = render.count_text(report.with_record_crc) if report.with_record_crc else "none"
    return f"{count} with record CRC" + by_seal


def _queues_text(report: CheckReport) -> str:
    topics = len({queue.topic for queue in report.queues})
    messages = sum(queue.max_offset - queue.min_offset for queue in report.queues)
    groups = len({lag.group for lag in report.lags})
    return (
        f"{render.count_text(len(report.queues))} of {render.count_text(topics, 'topic')},"
        f" {render.count_text(messages, 'message')}, {render.count_text(groups, 'group')}"
    )
