"""Asks a person to type a name before something is done."""

from __future__ import annotations

import click

from seglog.cli.ui import render


def is_typed(question: str, name: str) -> bool:
    """Asks a question on the terminal; returns whether the answer is a name.

    Raises:
        UsageError: Standard input has ended, as where no person is.
    """
    try:
        return bool(click.prompt(question, default="", show_default=False) == name)
    except click.Abort as error:
        if not isinstance(error.__context__, EOFError):  # Ctrl-C
            raise
        render.say(err=True)  # after the question
        raise click.UsageError(
            "nothing was changed: a confirmation is needed, and standard input has ended; --yes asks nothing"
        ) from None
