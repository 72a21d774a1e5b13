"""Options of commands that change or remove data: they show the change first, and make it with ``--apply``.

A preview makes the change on a draft of the store (:func:`files_of`), so no byte of the store changes. A
preview ends with the command that applies the change (:func:`end_preview`). ``--yes`` belongs to commands
that change files of the log, ``repair`` and ``erase``, which ask for the name of the store.
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
"""Key in the ``meta`` of a click context: the words of the command line after ``seglog``."""
APPLY: Final = "--apply"
YES: Final = "--yes"

Command = TypeVar("Command", bound="options.CommandFunction | click.Command")


def changing(command: Command) -> Command:
    """Passes ``is_applied`` to a command that shows its changes, and makes them only with ``--apply``."""
    help_text = "Do it.  [default: show what would be done]"
    return click.option(APPLY, "is_applied", is_flag=True, help=help_text)(command)


def asking(command: options.CommandFunction) -> options.CommandFunction:
    """Passes ``is_applied`` and ``is_sure`` to a command that asks before ``--apply`` changes anything.

    With ``--json``, or without a terminal, the command cannot ask: it needs ``--yes`` as well.
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
    """Returns the files of the store if the change is applied, else the files of a draft of the store."""
    from seglog.doctor.draft import PreviewFiles  # the engine; no help text needs it

    files = options.writing(path)
    return files if is_applied else PreviewFiles(files)


def end_preview(*, as_json: bool, is_needed: bool = True, asks: bool = False) -> None:
    """Prints that nothing was changed, and the command that makes the change.

    Args:
        as_json: Whether to print a line of JSON.
        is_needed: Whether there is anything to do.
        asks: Whether the command asks the user, so that a program must pass ``--yes`` as well.
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
    """Returns a command line with more options of its command.

    Args:
        words: The words after the program's name.
        command_path: Program and command, such as ``seglog topic delete``.
        more: The options to add.
    """
    if "--" not in words:
        return [*words, *more]
    # After `--` no word is read as an option, so the options are placed directly after the command.
    _program, first, *rest = command_path.split()
    at = list(words).index(first) + 1 + len(rest)
    return [*words[:at], *more, *words[at:]]
