"""Reports the error with which a command fails, and chooses the exit code of the process.

For people the report is two lines on stderr, ``error: what happened`` and ``help: what to do``; with
``--json`` it is one JSON object. No other module prints errors.
"""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress
from typing import Final, TextIO

import click

from seglog.cli.ui import render
from seglog.errors import Ending, OutputError, SeglogError


def exit_code_of(error: BaseException, *, as_json: bool) -> int:
    """Reports an error on stderr and returns the exit code for it.

    Args:
        error: The error that ended a command.
        as_json: Whether to report it as one JSON object.
    """
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return Ending.INTERRUPTED
    if isinstance(error, BrokenPipeError):
        _silence(sys.stdout)
        return Ending.NO_READER
    if isinstance(error, click.ClickException):
        return _report_usage(error, as_json=as_json)
    if isinstance(error, OSError):
        from seglog.storage.files import explain_os_error  # the engine; no help text needs it

        error = explain_os_error(error)
    if isinstance(error, OutputError):
        _silence(sys.stdout)
    if isinstance(error, SeglogError):
        _report(type(error).__name__, str(error), error.help, error.exit_code, as_json=as_json)
        return error.exit_code
    with suppress(OSError):
        for line in "".join(traceback.format_exception(error)).splitlines():
            render.say(line, err=True)
    text = f"{type(error).__name__}: {error}"
    _report(
        "Bug",
        text,
        "this is a bug in seglog: report it with the lines above",
        Ending.BUG,
        as_json=as_json,
    )
    return Ending.BUG


_INSTEAD: Final = (
    ("dlq show", "unexpected extra argument", "a group is named with --group GROUP"),
    ("offsets reset", "'--to'", "--to takes a queue offset; --start and --end go to the ends of the queue"),
)
"""Hints for wrong arguments: the end of the command's name, words of the usage error, and the hint."""
_PREVIEWS: Final = ("--dry-run", "--dryrun", "--dry", "--preview")
_BEFORE: Final = ("--wide", "--color", "--no-pager")


def _report_usage(error: click.ClickException, *, as_json: bool) -> int:
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context is not None else "seglog"
    text, advice = error.format_message(), f"see `{path} --help`"
    for command, words, instead in _INSTEAD:
        if path.endswith(command) and words in text:
            advice = f"{instead}; {advice}"
    if isinstance(error, click.NoSuchOption) and error.option_name in _BEFORE:
        advice = f"it stands before the command: `seglog {error.option_name} ...`"
    if isinstance(error, click.NoSuchOption) and error.option_name in _PREVIEWS and _has_apply(context):
        advice = f"without --apply it shows what it would do, and changes nothing; {advice}"
    _report("UsageError", text, advice, error.exit_code, as_json=as_json)
    return error.exit_code


def _has_apply(context: click.Context | None) -> bool:
    return context is not None and any("--apply" in each.opts for each in context.command.params)


def _report(kind: str, text: str, advice: str, exit_code: int, *, as_json: bool) -> None:
    """Prints the report; where stderr cannot be written, only the exit code is left to say what failed."""
    try:
        _print_report(kind, text, advice, exit_code, as_json=as_json)
        sys.stderr.flush()
    except OSError:
        _silence(sys.stderr)


def _print_report(kind: str, text: str, advice: str, exit_code: int, *, as_json: bool) -> None:
    if as_json:
        fields = {"error": text, "help": advice, "kind": kind, "exitCode": exit_code}
        render.say(render.spaced_json_text(fields), err=True)
    else:
        render.say(render.Styled("error:", "red"), f" {text}", err=True)
        render.say(render.Styled("help:"), f"  {advice}", err=True)


def _silence(stream: TextIO) -> None:
    """Points a stream at the null device, so that the interpreter's last flush does not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
