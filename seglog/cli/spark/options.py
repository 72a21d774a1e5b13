"""Arguments and options of all jobs: which stores, which cluster, which settings of Spark."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from seglog.cli.ui.options import CommandFunction

stores = click.argument("paths", metavar="STORE...", nargs=-1, required=True, type=click.Path(path_type=Path))
"""Hands ``paths``, one store directory or more, to the command."""

readable_stores = click.argument("paths", metavar="STORE...", nargs=-1, required=True, type=click.Path())
"""Hands ``paths``, one store or more by path or address, to a command that only reads."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where a job runs.

    Attributes:
        master: Spark's master, None for what ``spark-submit`` says, or else this machine.
        settings: Settings of Spark, by name.
    """

    master: str | None = None
    settings: dict[str, str] = field(default_factory=dict)


def cluster(function: CommandFunction) -> CommandFunction:
    """Hands ``cluster``, a :class:`Cluster`, to the command, from ``--master`` and ``--conf``."""

    @click.option(
        "--master",
        metavar="URL",
        help="Spark's master, such as spark://host:7077 or local[4]; all cores of this machine by default.",
    )
    @click.option(
        "--conf", "settings", metavar="NAME=VALUE", multiple=True, help="A setting of Spark; may be repeated."
    )
    @functools.wraps(function)
    def call(*, master: str | None, settings: Sequence[str], **rest: object) -> None:
        function(cluster=Cluster(master, _parse(settings)), **rest)

    return call


def _parse(settings: Sequence[str]) -> dict[str, str]:
    parsed: dict[str, str] = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{text!r} is no NAME=VALUE", param_hint="'--conf'")
        parsed[name.strip()] = value.strip()
    return parsed
