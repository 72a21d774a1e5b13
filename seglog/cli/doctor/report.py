"""``seglog report``: a check as an HTML page, and as a short text."""

from __future__ import annotations

from pathlib import Path

import click

from seglog.cli.ui import options, render
from seglog.clock import SystemClock
from seglog.doctor.check import check_store, ending_of_check
from seglog.doctor.report import render_report
from seglog.storage.files import new_file_outside
from seglog.storage.findings import counts_text


@click.command
@options.store
@click.option(
    "--html",
    "html_file",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the page here; it needs no other file and no network.",
)
@options.force
@options.as_json
def command(*, path: Path, html_file: Path, force: bool, as_json: bool) -> None:
    """Check STORE, and draw it: findings, holes on a map of the log, writes over time, size, lag.

    \b
    Exit codes, as those of `check`:
      0  clean, or only notes
      1  no message is lost; a repair, or what a finding says to do by hand, puts it right
      5  messages are lost, or cannot be read
      10 and above: an error; not all was seen
    """  # noqa: D301 - click takes the character itself
    files = options.reading(path)
    with new_file_outside(files, html_file, replace=force, advice=options.EXISTS_ADVICE) as file:
        with render.progress("checking the log") as tell:
            report = check_store(path, progress=tell, follow=options.followed(path))
        page = render_report(report, SystemClock().now_ms()).encode("utf-8", "backslashreplace")
        file.write(page)
    if as_json:
        render.emit(
            {
                "kind": "report",
                "path": str(report.root),
                "html": str(html_file),
                "bytes": len(page),
                "clean": report.is_clean,
                **{severity.value: count for severity, count in report.counts.items()},
            }
        )
    else:
        render.facts(
            {
                "store": render.printable(str(path)),
                "result": "clean" if report.is_clean else f"NOT clean: {counts_text(report.findings)}",
                "report": f"{render.printable(str(html_file))}, {render.size_text(len(page))}",
            }
        )
    raise click.exceptions.Exit(ending_of_check(report))
