"""A group of commands that are loaded when they are called, each from a module of its own."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from keyword import iskeyword

import click
from typing_extensions import override


class LazyGroup(click.Group):
    """A group whose commands are loaded when they are called, each from a module of its own.

    Args:
        homes: The module that holds ``command``, by name; a keyword such as ``import`` has a ``_`` behind it.
        summaries: Name and one line of help, in the order of the help text.
        options: What click's group takes.
    """

    def __init__(self, *, homes: Mapping[str, str], summaries: Mapping[str, str], **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]  # click states them one by one
        self._homes = homes
        self._summaries = summaries

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._summaries)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._summaries:
            return None
        module = self._homes[cmd_name] + "_" * iskeyword(cmd_name)
        command: click.Command = importlib.import_module(module).command
        return command

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._summaries.items()))
