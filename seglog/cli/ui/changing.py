"""The one manner of commands that change or remove what is there: they show it first, ``--apply`` does it.

A preview is the change itself, made on a draft of the store (:func:`files_of`): no byte of the store differs
afterwards. It ends with the command that does it (:func:`end_preview`). ``--yes`` is there for the commands
that ask before they do what no undo takes back.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click

from seglog.cli.ui import confirm, options, render
from seglog.text import shell_line

if TYPE_CHECKING:
    from seglog.doctor.draft import PreviewFiles
    from seglog.storage.files import StoreRoot

WORDS: Final = "seglog.words"
"""In what a click context keeps: the words of the command line behind ``seglog``."""
APPLY: Final = "--apply"
YES: Final = "--yes"

Command = TypeVar("Command", bound="options.CommandFunction | click.Command")


def changing(command: Command) -> Command:
    """Hands ``is_applied`` to a command that shows what it would change, and does it with ``--apply``."""
    help_text = "Do it.  [default: show what would be done]"
    return click.option(APPLY, "is_applied", is_flag=True, help=help_text)(command)


def asking(command: options.CommandFunction) -> options.CommandFunction:
    """Hands ``is_applied`` and ``is_sure`` to a command that asks before it does what ``--apply`` says.

    ``--json`` asks nothing, so it needs ``--yes`` as well; and so does a command without a terminal.
    """

    @click.option(YES, "is_sure", is_flag=True, help="With --apply: ask nothing.")
    @functools.wraps(command)
    def checked(*, is_applied: bool, is_sure: bool, as_json: bool, **values: object) -> object:
        if is_sure and not is_applied:
            raise click.UsageError("--yes goes with --apply")
        if is_applied and not is_sure:
            if as_json:
                raise click.UsageError("--json asks nothing: give --yes as well")
            confirm.demand_person()
        return command(is_applied=is_applied, is_sure=is_sure, as_json=as_json, **values)

    return changing(checked)


def files_of(path: Path, *, is_applied: bool) -> StoreRoot | PreviewFiles:
    """Returns the files of a store that is changed, or of a draft of it where the change is only shown."""
    from seglog.doctor.draft import PreviewFiles  # the engine; no help text needs it

    files = options.writing(path)
    return files if is_applied else PreviewFiles(files)


def end_preview(*, as_json: bool, is_needed: bool = True, asks: bool = False) -> None:
    """Prints that nothing was changed, and the command that does what was shown.

    Args:
        as_json: Whether as a line of JSON.
        is_needed: Whether there is anything to do.
        asks: Whether the command asks, so that a program has to give ``--yes`` as well.
    """
    context = click.get_current_context()
    more = (APPLY, YES) if asks and as_json else (APPLY,)
    command = shell_line(["seglog", *with_options(context.meta[WORDS], context.command_path, more)])
    if as_json:
        render.emit({"kind": "preview", "applied": False, "next": command if is_needed else None})
    elif is_needed:
        render.say("nothing was changed; to do it:")
        render.say(f"next: {command}")


def with_options(words: Sequence[str], command_path: str, more: Sequence[str]) -> list[str]:
    """Returns the words of a command line with further options of its command.

    Args:
        words: Behind the program's name.
        command_path: Of the command, with the program's name.
        more: The options.
    """
    if "--" not in words:
        return [*words, *more]
    # Behind it nothing is an option any more: they go directly behind the command.
    _program, first, *rest = command_path.split()
    at = list(words).index(first) + 1 + len(rest)
    return [*words[:at], *more, *words[at:]]
