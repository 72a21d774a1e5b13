"""``seglog backup``: a copy of a store that may be in use; full files are hard-linked."""

from __future__ import annotations

from pathlib import Path

import click

from seglog.cli.ui import options, render
from seglog.cli.ui.findings import show_findings
from seglog.doctor.copies import Copied, make_backup
from seglog.errors import Ending
from seglog.storage.directory import ReadingRoot, as_stated
from seglog.storage.files import StoreRoot
from seglog.storage.findings import Severity, findings_fields, refuses_repair
from seglog.storage.small_files import stopped_repair
from seglog.storage.survey import Survey, survey


@click.command
@options.store
@click.argument("target", type=click.Path(path_type=Path))
@click.option(
    "--copy", "copies", is_flag=True, help="Share no bytes with STORE: for a broker, or another disk."
)
@click.option("--no-verify", is_flag=True, help="Do not read the backup afterwards.")
@options.as_json
def command(*, path: Path, target: Path, copies: bool, no_verify: bool, as_json: bool) -> None:
    """Back STORE up to the new folder TARGET, also while a broker writes to it.

    Full files are linked, others copied; where TARGET is on another file system all are copied. The backup
    holds everything that was acknowledged before it began. A STORE that cannot be written here is not locked
    meanwhile. Ends with 5 if records of it cannot be read.
    """
    done = make_backup(options.writing(path), path, target, links=not copies)
    found = None
    if not no_verify:
        with render.progress("reading the backup") as tell:
            found = survey(target, as_stated(ReadingRoot(target), target), progress=tell)
    losses = [one for one in found.findings if one.severity is Severity.LOSS] if found is not None else []
    if as_json:
        render.emit(
            {
                "kind": "backup",
                "target": str(target),
                "hot": done.is_hot,
                "locked": done.is_locked,
                "linkedFiles": len(done.linked),
                "linkedBytes": sum(done.linked),
                "copiedFiles": len(done.copied),
                "copiedBytes": sum(done.copied),
                "maxPhyOffset": None if found is None else found.max_phy_offset,
                "records": None if found is None else len(found.rows),
                "leftOut": done.left_out,
                "misnamedFiles": None if found is None else misnamed_count(found),
                "losses": [*findings_fields(losses, [] if found is None else found.findings)],
            }
        )
    else:
        show_copied(done, found)
        if losses:
            render.say()
            show_findings(losses, target, [] if found is None else found.findings)
    if losses:
        raise click.exceptions.Exit(Ending.LOSS)


def misnamed_count(found: Survey) -> int:
    """Returns the number of log files whose name belongs to another place in the log."""
    return sum(finding.code == "log-file-misnamed" for finding in found.findings)


def show_copied(done: Copied, found: Survey | None) -> None:
    """Prints which files were linked and copied, and what a reader finds in the copy."""
    if done.is_hot:
        state = "the store was open"
    elif done.is_locked:
        state = "the store was closed"
    else:
        state = "the store cannot be written here, so it was not locked; no process was seen to have it open"
    named = {
        "copy": f"{done.target} ({state})",
        "linked": f"{render.count_text(len(done.linked), 'file')}, {render.size_text(sum(done.linked))}",
        "copied": f"{render.count_text(len(done.copied), 'file')}, {render.size_text(sum(done.copied))} long",
    }
    if found is not None:
        queues = len(found.queues) + len(found.batch_queues)
        count = render.count_text(len(found.rows), "record")
        named["read back"] = (
            f"{count} of {render.count_text(queues, 'queue')}, the log ends at {found.max_phy_offset}"
        )
    if found is not None and (misnamed := misnamed_count(found)):
        files = render.count_text(misnamed, "file")
        repaired = "" if any(map(refuses_repair, found.findings)) else ": `seglog repair` gives each its name"
        named["misnamed"] = f"{files} of the log, as in the store{repaired}"
    if stopped_repair(StoreRoot(done.target), done.target):
        named["half done"] = "a repair of the store was stopped, so the copy is half repaired too"
    if done.left_out:
        named["left out"] = ", ".join(map(render.printable, done.left_out))
    render.facts(named)
