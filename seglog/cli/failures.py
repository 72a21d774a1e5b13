"""What a person or program sees when a command fails, and with which exit code the process ends.

For people two lines on stderr, ``error: what happened`` and ``help: what to do``; with ``--json`` one JSON
object. No command prints errors itself.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import traceback
from typing import Final

import click

from seglog.errors import (
    FullError,
    NotAStoreError,
    NotFoundError,
    ReadOnlyError,
    SeglogError,
    StoreError,
    StoreFailedError,
)

USAGE_EXIT_CODE: Final = 2
INTERNAL_EXIT_CODE: Final = 70
"""``EX_SOFTWARE`` of sysexits.h: a bug."""
INTERRUPTED_EXIT_CODE: Final = 130
BROKEN_PIPE_EXIT_CODE: Final = 141

_BY_ERRNO: Final[dict[int, tuple[type[StoreError], str, str]]] = {
    errno.ENOSPC: (FullError, "the file system is full", ""),
    errno.EDQUOT: (FullError, "the disk quota is used up", ""),
    errno.EROFS: (
        ReadOnlyError,
        "the file system is read-only",
        "reading commands work here; to write, use a file system that is mounted for writing",
    ),
    errno.EACCES: (
        StoreError,
        "permission denied",
        "run as the owner of the store, or change its permissions",
    ),
    errno.EPERM: (StoreError, "not permitted", "run as the owner of the store, or change its permissions"),
    errno.ENOENT: (NotFoundError, "no such file or folder", ""),
    errno.ENOTDIR: (NotAStoreError, "not a folder", ""),
    errno.EMFILE: (StoreError, "too many open files", "raise the limit with `ulimit -n`"),
    errno.EIO: (StoreFailedError, "the disk failed", ""),
}


def exit_code_of(error: BaseException, *, as_json: bool) -> int:
    """Reports an error on stderr and returns the exit code for it.

    Args:
        error: What ended a command.
        as_json: Whether to report it as one JSON object.
    """
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return INTERRUPTED_EXIT_CODE
    if isinstance(error, BrokenPipeError):
        _silence_stdout()
        return BROKEN_PIPE_EXIT_CODE
    if isinstance(error, click.ClickException):
        return _report_usage(error, as_json=as_json)
    if isinstance(error, OSError):
        error = explain_os_error(error)
    if isinstance(error, SeglogError):
        _report(type(error).__name__, str(error), error.help, error.exit_code, as_json=as_json)
        return error.exit_code
    traceback.print_exception(error)
    text = f"{type(error).__name__}: {error}"
    _report(
        "Bug",
        text,
        "this is a bug in seglog: report it with the lines above",
        INTERNAL_EXIT_CODE,
        as_json=as_json,
    )
    return INTERNAL_EXIT_CODE


def explain_os_error(error: OSError) -> SeglogError:
    """Returns the error of ours that says what an error of the operating system means here."""
    reason = error.strerror or str(error)
    kind, text, advice = _BY_ERRNO.get(error.errno or 0, (StoreError, reason, ""))
    where = f"{os.fsdecode(error.filename)}: " if error.filename is not None else ""
    return kind(f"{where}{text}", help=advice or None)


def _report_usage(error: click.ClickException, *, as_json: bool) -> int:
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context is not None else "seglog"
    _report("UsageError", error.format_message(), f"see `{path} --help`", error.exit_code, as_json=as_json)
    return error.exit_code


def _report(kind: str, text: str, advice: str, exit_code: int, *, as_json: bool) -> None:
    if as_json:
        fields = {"error": text, "help": advice, "kind": kind, "exitCode": exit_code}
        click.echo(json.dumps(fields), err=True)
    else:
        click.echo(f"{click.style('error:', fg='red', bold=True)} {text}", err=True)
        click.echo(f"{click.style('help:', bold=True)}  {advice}", err=True)


def _silence_stdout() -> None:
    """Lets the interpreter's last flush of stdout go nowhere instead of into the broken pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
