"""Asks the user before something is done; without a terminal it raises an error that names ``--yes``."""

from __future__ import annotations

import sys

import click

from seglog.cli.ui import render


def demand_person() -> None:
    """Raises an error if there is no terminal on which the next question could be asked.

    Raises:
        UsageError: Standard input is no terminal.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.UsageError(
            "nothing was changed: an answer is needed, and standard input is no terminal; --yes asks nothing"
        )


def is_typed(question: str, name: str) -> bool:
    """Asks a question on the terminal; returns whether the answer is equal to a name.

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
        default: The result for an empty answer.

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
