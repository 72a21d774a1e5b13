"""``seglog verify``: checks by checksums and seals whether the log is as it was written.

Sealed segments are compared with the checksums of their blocks, at the speed of the disk; other segments are
walked record by record. If anything differs, a check of the whole store states what that means. The command
works beside a process that has the store open, and writes only with ``--seal``. ``seglog check
--records-only`` and ``seglog seal`` do the same under other names.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from seglog.cli.ui import options, render
from seglog.cli.ui.findings import show_findings
from seglog.doctor.check import CheckReport, VerifyReport, verdict_facts, verdict_on, verify_store
from seglog.storage.directory import NOTHING_KNOWN, FileSizes
from seglog.storage.findings import ending_of, findings_fields
from seglog.storage.seals import Concerned

_MAX_MESSAGES_SHOWN: Final = 20


@click.command
@options.store
@click.option("--seal", is_flag=True, help="Seal full segments that have no seal, or a stale one.")
@options.as_json
def command(*, path: Path, seal: bool, as_json: bool) -> None:
    """Verify the commit log of STORE.

    The exit code is 0 if everything is as it was written, 5 if messages are lost or cannot be read, and 1
    after anything else that is not as it was written. Records without __CRC32# have a
    checksum of their body alone until their segment is sealed: their number is shown. Of queues only
    the last units are read, for records that the log does not have; index and tables are not. If anything is
    other than it was written, the whole store is checked, and what `seglog check` says of the log is shown. A
    segment that is damaged is never sealed.
    """
    show_verified(path, seal=seal, as_json=as_json)


def show_verified(
    path: Path, *, seal: bool, as_json: bool, given: FileSizes = NOTHING_KNOWN, is_strict: bool = False
) -> None:
    """Verifies the log of a store and prints the result.

    Args:
        path: The store directory.
        seal: Whether to seal full segments that have no seal or a stale one.
        as_json: Whether to print JSON.
        given: Lengths of files that the caller knows.
        is_strict: Whether notes alone have an exit code of their own.

    Raises:
        click.exceptions.Exit: Always at the end, with the exit code for the state of the log.
        SeglogError: There is no log, or it cannot be read.
    """
    with render.progress("verifying the log") as tell:
        report = verify_store(
            path,
            progress=tell,
            seal=seal,
            given=given,
            follow=options.followed(path),
            log=options.log_paths(),
        )
    if as_json:
        render.emit({"kind": "verify", "path": str(path), **_fields(report)})
    else:
        _show(report, path)
    raise click.exceptions.Exit(ending_of(report.findings, is_strict=is_strict))


def _fields(report: VerifyReport) -> dict[str, object]:
    return {
        "clean": report.is_clean,
        "mappedFileSizeCommitLog": report.segment_size_bytes,
        "bySeal": len(report.by_seal),
        "byRecords": len(report.by_records),
        "sealed": len(report.sealed),
        "records": report.records,
        "bareRecords": report.bare_records,
        "bytes": report.read_bytes,
        "elapsedMs": round(report.elapsed_ms, 3),
        **_loss_fields(report.checked),
        "findings": [*findings_fields(report.findings)],
        "concerned": [
            {
                "file": message.file,
                "pos": message.position_bytes,
                "size": message.size_bytes,
                "topic": message.topic,
                "queueId": message.queue_id,
                "queueOffset": message.queue_offset,
                "readable": message.is_readable,
            }
            for message in report.concerned
        ],
    }


def _loss_fields(checked: CheckReport | None) -> dict[str, object]:
    """Returns what is lost, which only a check of the whole store says."""
    if checked is None:
        return {"lostForGood": None, "mayBeMore": None}
    verdict = verdict_on(checked)
    return {"lostForGood": verdict.lost, "mayBeMore": verdict.may_be_more}


def _show(report: VerifyReport, path: Path) -> None:
    ways = {"by seal": report.by_seal, "by records": report.by_records, "sealed now": report.sealed}
    segments = ", ".join(f"{render.count_text(len(firsts))} {way}" for way, firsts in ways.items() if firsts)
    rate = render.size_text(report.read_bytes / max(report.elapsed_ms, 1) * 1000)
    render.facts(
        {
            "log": f"{render.size_text(report.read_bytes)} in {report.elapsed_ms / 1000:.1f} s, {rate}/s",
            "segments": segments or "none",
            "records": render.count_text(report.records),
            "result": _result(report),
            **({} if report.checked is None else {"lost": verdict_facts(report.checked, path)["lost"]}),
        }
    )
    if report.findings:
        render.say()
        show_findings(report.findings, path)
    if report.concerned:
        render.say()
        _show_concerned(report.concerned)


def _result(report: VerifyReport) -> str:
    """Returns the claim that the run supports: no more than it checked."""
    if not report.is_clean:
        return "not as it was written"
    if not report.bare_records:
        sealed = " (in sealed segments: as it was sealed)" if report.by_seal else ""
        return f"every byte as it was written{sealed}"
    records = render.count_text(report.bare_records, "record")
    return f"every body as it was written; heads and properties of {records} have no checksum"


def _show_concerned(messages: Sequence[Concerned]) -> None:
    readable = sum(message.is_readable for message in messages)
    render.say(
        f"messages in damaged blocks: {render.count_text(len(messages) - readable)} damaged,"
        f" {render.count_text(readable)} with a whole body whose properties nothing vouches for"
    )
    for message in messages[:_MAX_MESSAGES_SHOWN]:
        place = f"{render.printable(message.topic)}/{message.queue_id} {message.queue_offset}"
        state = "uncertain" if message.is_readable else "damaged"
        render.say(f"  {state:<9} ", f"{place} in {message.file} +{message.position_bytes}")
    if len(messages) > _MAX_MESSAGES_SHOWN:
        render.say(f"… and {render.count_text(len(messages) - _MAX_MESSAGES_SHOWN)} more; --json prints all")
