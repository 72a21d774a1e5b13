"""Groups of commands: suggestions for an unknown command, and commands that are loaded on demand."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from keyword import iskeyword
from typing import Final

import click
from typing_extensions import override

_MOST_SUMMARY_CHARACTERS: Final = 300


class CommandGroup(click.Group):
    """A group of commands that suggests similar commands when a command is unknown."""

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
            raise click.UsageError(text, ctx) from error  # click's own text differs between its releases

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands with their first sentences, which click cuts at 45 characters."""
        rows: list[tuple[str, str]] = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                rows.append((name, command.get_short_help_str(_MOST_SUMMARY_CHARACTERS)))
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def _meant(self, ctx: click.Context, name: str) -> list[str]:
        """Returns the commands of this group's subgroups with this name; else commands with similar names."""
        from difflib import get_close_matches  # only needed for an unknown command

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
        homes: The module that holds ``command``, by command name; a Python keyword such as ``import`` gets a
            ``_`` at the end of its module name.
        summaries: Name and one line of help, in the order of the help text.
        aliases: Modules of commands that no list and no help text has, by command name.
        sections: For each heading of the help text, the names of its commands, separated by blanks.
        options: Arguments of click's group.

    Raises:
        ValueError: A command has a summary and no module, or the reverse.
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
        if odd := homes.keys() ^ summaries.keys():
            raise ValueError(f"commands with a module or a summary only: {', '.join(sorted(odd))}")
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
