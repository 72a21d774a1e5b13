"""Groups of commands: what was meant by one that is not there, and commands loaded when they are called."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from keyword import iskeyword

import click
from typing_extensions import override


class CommandGroup(click.Group):
    """A group of commands that says, of one that it does not have, which was meant."""

    @override
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            meant = self._meant(ctx, args[0])
            if not meant:
                raise
            text = f"No such command {args[0]!r}. Did you mean {' or '.join(map(repr, meant))}?"
            raise click.UsageError(text, ctx) from error  # releases of click differ in what theirs says

    def _meant(self, ctx: click.Context, name: str) -> list[str]:
        """Returns the commands of groups of this one with this name; else those whose names are close."""
        from difflib import get_close_matches  # no command that is there needs it

        within = [path for path in self._paths_of(ctx) if path.endswith(f" {name}")]
        return within or get_close_matches(name, self.list_commands(ctx), n=2)

    def _paths_of(self, ctx: click.Context) -> Iterator[str]:
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if isinstance(command, click.Group):
                yield from (f"{name} {inner}" for inner in command.list_commands(ctx))


class LazyGroup(CommandGroup):
    """A group whose commands are loaded when they are called, each from a module of its own.

    Args:
        homes: The module that holds ``command``, by name; a keyword such as ``import`` has a ``_`` behind it.
        summaries: Name and one line of help, in the order of the help text.
        aliases: The modules of commands that no list has, by name.
        sections: Names, divided by blanks, by the heading of the help text that they come under.
        options: What click's group takes.
    """

    def __init__(
        self,
        *,
        homes: Mapping[str, str],
        summaries: Mapping[str, str],
        aliases: Mapping[str, str] | None = None,
        sections: Mapping[str, str] | None = None,
        **options: object,
    ) -> None:
        super().__init__(**options)  # type: ignore[arg-type]  # click states them one by one
        self._homes = {**homes, **(aliases or {})}
        self._summaries = summaries
        self._sections = sections or {"Commands": " ".join(summaries)}

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._summaries)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._homes:
            return None
        module = self._homes[cmd_name] + "_" * iskeyword(cmd_name)
        command: click.Command = importlib.import_module(module).command
        return command

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, self._summaries))
        for heading, names in self._sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), self._summaries[name]) for name in names.split()])
