"""``seglog inspect``: the files of a store, each kind by a command of its own.

The commands also have names without ``inspect`` before them, as they had before there was this group:
``seglog cq show``, ``seglog du``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click
from typing_extensions import override

from seglog.cli.ui.lazy_group import LazyGroup

PARTS: Final[Mapping[str, str]] = {
    "segments": "Show the files of the commit log.",
    "log": "Show records of the commit log, byte by byte.",
    "queues": "Show the queues, and whether their files agree with the log.",
    "cq": "Show the files of a queue, unit by unit.",
    "index": "Show the key index.",
    "checkpoint": "Show how far the parts of a store were flushed.",
    "config": "Show the config files of a broker.",
    "id": "Decode message ids.",
    "du": "Show what takes the space on the disk.",
}
"""Name and one line of help; module ``seglog.cli.read.<name>`` holds it."""


class _Parts(LazyGroup):
    """The group of them; ``cq show`` and its like are ``cq`` here, which is shorter and no less clear."""

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = super().get_command(ctx, cmd_name)
        if not isinstance(command, click.Group):
            return command
        (only,) = command.commands.values()
        return only


@click.group(
    cls=_Parts,
    homes={name: f"seglog.cli.read.{name}" for name in PARTS},
    summaries=PARTS,
    no_args_is_help=True,
)
def command() -> None:
    """Show the files of a store, record by record and unit by unit.

    These commands change nothing, also in a store that was not closed.
    """
