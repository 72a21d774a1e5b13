"""The entry point of the command line: the table of all commands; a command is loaded when it is called.

``seglog --help`` and ``seglog version`` must be quick, so this module imports neither numpy nor rich nor the
engine. All errors of all commands end in :class:`SeglogGroup`, which prints the error and sets the exit code.
The exit codes are in :mod:`seglog.errors`.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final

import click
from typing_extensions import override

from seglog.cli.ui import changing, pager, render
from seglog.cli.ui.failures import exit_code_of
from seglog.cli.ui.lazy_group import LazyGroup
from seglog.cli.ui.standard_output import take_standard_output
from seglog.errors import OutputError

COMMANDS: Final[Mapping[str, str]] = {
    "demo": "Show everything at work in under a minute.",
    "info": "Show what a store holds and what state it is in.",
    "check": "Check the whole store: what is wrong, and what to do.",
    "doctor": "Check, try the repair on a branch, and repair.",
    "report": "Write a check as an HTML page, with drawings.",
    "put": "Store messages.",
    "get": "Read messages of a topic by queue offset.",
    "query": "Find messages by key or by id.",
    "explain": "Show the history of a message, from send to dead letter.",
    "tail": "Show the newest messages, and follow.",
    "dump": "Print everything that a store serves.",
    "inspect": "Show the files of a store: log, queues, cq, index, config.",
    "verify": "Verify the checksums of the log; seal it.",
    "seal": "Seal full segments of the log.",
    "repair": "Repair a damaged store; shows the plan first.",
    "undo": "Undo a repair, bit for bit.",
    "serve": "Serve a store to RocketMQ's clients, as broker and name server.",
    "clients": "Show the clients of a broker.",
    "top": "Show the activity of a broker, refreshed.",
    "topic": "List, create, alter and delete topics of a store.",
    "group": "List, create, alter and delete consumer groups of a store.",
    "offsets": "Show, move and trace the offsets of groups.",
    "retention": "Delete old messages that no group needs.",
    "dlq": "Show dead letters, and send them again.",
    "locks": "Show the queue locks of orderly consumers.",
    "skip": "Move a group past a message.",
    "park": "Copy a message aside for a group, and move the group past it.",
    "tx": "List open transactions, and commit or roll back one.",
    "erase": "Erase the body of a message and all its copies.",
    "export": "Write messages to a JSONL or Parquet file.",
    "import": "Append the messages of an exported file.",
    "backup": "Back up a store, also while it is open.",
    "branch": "Make branches of a store that share its files; compare them.",
    "spark": "Jobs over whole stores on Apache Spark.",
    "bench": "Measure the disk for a store.",
    "version": "Show versions and which parts are present.",
}
"""Name of each command and one line of help."""

SECTIONS: Final[Mapping[str, str]] = {
    "A store that does not start": "doctor check repair undo report explain verify seal",
    "Read": "info get query tail dump export inspect",
    "Write": "put import topic group",
    "Groups and single messages": "offsets dlq skip park tx erase retention locks",
    "Copies": "backup branch",
    "Brokers and Spark": "serve clients top spark",
    "About seglog": "demo bench version",
}
"""The headings of the help text, and the commands under each."""

_ROOMS: Final[Mapping[str, str]] = {
    "admin": "bench clients dlq group locks offsets park put retention skip top topic tx",
    "demo": "demo",
    "doctor": "backup branch check doctor erase explain export import repair report seal undo verify",
    "read": "dump get info inspect query tail",
    "serving": "serve",
    "ui": "version",
}
"""The room of each command: module ``seglog.cli.<room>.<name>`` holds it. ``spark`` is a room of its own."""
_ALIASES: Final = "checkpoint config cq du id index log queues segments"
"""What ``inspect`` has, by the names that it had alone; the help text does not list them."""


class SeglogGroup(LazyGroup):
    """The group of all commands, which turns errors into text and exit codes."""

    @override
    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: object,
    ) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except (KeyboardInterrupt, BrokenPipeError) as error:  # --help prints here
            raise click.exceptions.Exit(exit_code_of(error, as_json=False)) from error

    @override
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[changing.WORDS] = tuple(args)
        return super().parse_args(ctx, args)

    @override
    def invoke(self, ctx: click.Context) -> object:
        as_json = "--json" in takewhile(lambda argument: argument != "--", ctx.args)
        try:
            try:
                result: object = super().invoke(ctx)
            finally:
                # Flush here, not when the process ends: at that point a broken pipe could no longer be
                # silenced.
                sys.stdout.flush()
        except (click.exceptions.Exit, click.exceptions.NoArgsIsHelpError):
            raise
        # The top of every command: an unexpected error is reported as a bug, with its traceback.
        except (Exception, KeyboardInterrupt) as error:
            raise click.exceptions.Exit(exit_code_of(error, as_json=as_json)) from error
        return result


def _show_version(ctx: click.Context, _option: click.Parameter, is_wanted: bool) -> None:
    if is_wanted:
        from seglog.cli.ui.version import version_line

        render.say(version_line())
        ctx.exit()


@click.group(
    cls=SeglogGroup,
    homes={name: f"seglog.cli.{room}.{name}" for room, names in _ROOMS.items() for name in names.split()}
    | {"spark": "seglog.cli.spark"},
    aliases={name: f"seglog.cli.read.{name}" for name in _ALIASES.split()},
    summaries=COMMANDS,
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="STORE is a folder that holds commitlog/ (RocketMQ's storePathRootDir), or a file or folder of"
    " RocketMQ's in it. Reading commands change nothing, also on a store that was not closed; what changes or"
    " removes shows it first, and does it with --apply. With --json every line of output is one JSON object.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit; `seglog version` shows more.",
)
@click.option(
    "--color",
    "when",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="Colour what is shown. [auto: on a terminal that shows them, where NO_COLOR is not set]",
)
@click.option("--wide", "is_wide", is_flag=True, help="Fold no line, however narrow the terminal is.")
@click.option(
    "--no-pager",
    "has_no_pager",
    is_flag=True,
    help="Print long text at once, also on a terminal; SEGLOG_PAGER or PAGER names a pager.",
)
@click.pass_context
def commands(ctx: click.Context, *, when: str, is_wide: bool, has_no_pager: bool) -> None:
    """seglog: SQLite for message logs, in Apache RocketMQ's own files."""
    is_colourless = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    is_plain = when == "never" or (when == "auto" and is_colourless)
    ctx.color = False if is_plain else True if when == "always" else None
    ctx.meta[render.WIDE] = is_wide
    ctx.meta[pager.NO_PAGER] = has_no_pager


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line of this process.

    Args:
        arguments: The words after the program's name; None for the arguments of the process.
    """
    take_standard_output()
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")
    try:
        commands(arguments, prog_name="seglog")
    except OutputError as error:  # --help and --version print before the group is invoked
        sys.exit(exit_code_of(error, as_json=False))


if __name__ == "__main__":
    main()
