"""``seglog check``: examines the whole store, and prints what is wrong, what that means, and what to type.

With ``--records-only`` it reads the log and the last units of queues, as ``seglog verify`` does.

Reads only, and takes no lock: it works on a store that was not closed, and beside a running writer. The exit
codes are those of :class:`~seglog.errors.Ending`; the exit code of an error means that the check is
incomplete.
"""

from __future__ import annotations

import time
from pathlib import Path

import click

from seglog.cli.admin import amounts
from seglog.cli.doctor.check_output import emit_check, show_check
from seglog.cli.doctor.verify import show_verified
from seglog.cli.ui import options, pager, render
from seglog.doctor.check import check_store, default_resume_file, ending_of_check
from seglog.errors import Ending, StoppedError
from seglog.storage.directory import FileSizes
from seglog.text import shell_line


@click.command
@options.store
@click.option(
    "--max-duration",
    "max_ms",
    metavar="TIME",
    type=amounts.Duration(),
    help="Stop after a time such as 500ms, 30s, 10m or 2h.",
)
@click.option(
    "--resume",
    "resume_file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Go on where a check was stopped, and keep in FILE how far it is.",
)
@click.option(
    "--records-only",
    is_flag=True,
    help="Read the records of the log and the last units of queues; all else only if the log is damaged."
    " Not with --max-duration or --resume.",
)
@click.option("--strict", "is_strict", is_flag=True, help="End with 4 if there are notes, and nothing else.")
@options.file_sizes
@options.as_json
@pager.paged()
def command(
    *,
    path: Path,
    max_ms: int | None,
    resume_file: Path | None,
    records_only: bool,
    is_strict: bool,
    given: FileSizes,
    as_json: bool,
) -> None:
    """Check STORE: log, queues, index, offsets, timers, files.

    Begins with a verdict: whether RocketMQ starts on it, messages lost for good, messages that a repair
    saves, what not to do, and what to type next; --json has it as `verdict` in its last object.

    Reads only, and works beside a process that has the store open. A finding says what it means for
    messages and what to do.

    \b
    Exit codes:
      0  clean, or only notes (4 with --strict)
      1  no message is lost; a repair, or what a finding says to do by hand, puts it right
      5  messages are lost, or cannot be read
      10 and above: an error; not all was seen

    Ctrl-C, or the end of --max-duration, leaves a file outside of the store with which a later check
    goes on.

    With --records-only sealed segments are held against their seals and others read record by record: how
    many records have a checksum of their body alone is shown. Of queues only the last units are read, for
    records that the log does not have; index and tables are not. If anything about the log is other than it
    was written, the whole store is checked, and what that says of the log is shown.
    """  # noqa: D301 - click takes the character itself
    if records_only:
        if max_ms is not None or resume_file is not None:
            raise click.UsageError("--records-only cannot be stopped and resumed")
        show_verified(path, seal=False, as_json=as_json, given=given, is_strict=is_strict)
        return
    deadline_s = None if max_ms is None else time.monotonic() + max_ms / 1000
    kept = resume_file or default_resume_file(path)
    try:
        with render.progress("checking the log") as tell:
            report = check_store(
                path,
                resume_file=kept,
                resume=resume_file is not None and kept.exists(),
                should_stop=lambda: deadline_s is not None and time.monotonic() >= deadline_s,
                progress=tell,
                given=given,
                follow=options.followed(path),
                log=options.log_paths(),
            )
    except KeyboardInterrupt:
        render.say(f"interrupted; continue with `{_go_on(path, kept)}`", err=True)
        raise click.exceptions.Exit(Ending.INTERRUPTED) from None
    except StoppedError as error:
        if error.resume_file:
            error.help = f"continue with `{_go_on(path, kept)}`"
        raise
    if as_json:
        emit_check(report)
    else:
        show_check(report, path)
    raise click.exceptions.Exit(ending_of_check(report, is_strict=is_strict))


def _go_on(path: Path, kept: Path) -> str:
    return shell_line(["seglog", "check", path, "--resume", kept])
