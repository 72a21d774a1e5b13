"""Asks a person before something is done; where no person is, the command ends and names ``--yes``."""

from __future__ import annotations

import sys

import click

from seglog.cli.ui import render


def demand_person() -> None:
    """Refuses to go on where a question is next, and there is no terminal to ask at.

    Raises:
        UsageError: Standard input is no terminal.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.UsageError(
            "nothing was changed: an answer is needed, and standard input is no terminal; --yes asks nothing"
        )


def is_typed(question: str, name: str) -> bool:
    """Asks a question on the terminal; returns whether the answer is a name.

    Raises:
        UsageError: Standard input is no terminal, or has ended.
    """
    demand_person()
    try:
        return bool(click.prompt(question, default="", show_default=False) == name)
    except click.Abort as error:
        raise _ended(error) from None


def is_agreed(question: str, *, default: bool) -> bool:
    """Asks for yes or no on the terminal.

    Args:
        question: The question.
        default: What an empty answer says.

    Raises:
        UsageError: Standard input is no terminal, or has ended.
    """
    demand_person()
    try:
        return click.confirm(question, default=default)
    except click.Abort as error:
        raise _ended(error) from None


def _ended(error: click.Abort) -> Exception:
    if not isinstance(error.__context__, EOFError):  # Ctrl-C
        return error
    render.say(err=True)  # after the question
    return click.UsageError(
        "nothing was changed: an answer is needed, and standard input has ended; --yes asks nothing"
    )
