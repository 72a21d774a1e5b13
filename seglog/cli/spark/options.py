"""Arguments and options of all jobs: stores, cluster, settings of Spark."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Final

import click
from typing_extensions import override

from seglog.cli.ui.options import CommandFunction
from seglog.cli.ui.store_paths import store_of
from seglog.text import shell_text

_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""Two letters at least: one letter is a drive of Windows."""


class LocalFolder(click.Path):
    """A folder of this machine: an address is refused, with advice on the command to use."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    @override
    def convert(
        self, value: str | PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        text = str(value)
        if _ADDRESS.match(text) and not Path(text).exists():
            job = "this command" if ctx is None else f"`seglog spark {ctx.info_name}`"
            self.fail(f"{text} is an address, and {job} takes folders only: {_instead(text)}", param, ctx)
        return Path(text)


class LocalStore(LocalFolder):
    """A store directory of this machine, or a path in it."""

    @override
    def convert(
        self, value: str | PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        return store_of(super().convert(value, param, ctx))


def _instead(address: str) -> str:
    scheme, _colon, rest = address.partition(":")
    if scheme.lower() == "file" and not rest.startswith("//"):
        return f"give the folder, {shell_text(Path(rest))}"
    if scheme.lower() == "file":
        return f"give the folder, {shell_text('/' + rest.partition('//')[2].partition('/')[2])}"
    return (
        "mount it, or copy the folder to this machine, and give its path;"
        " `seglog spark audit`, `reconcile` and `sql` read addresses"
    )


stores = click.argument("paths", metavar="STORE...", nargs=-1, required=True, type=LocalStore())
"""Passes ``paths``, one store directory or more, to the command."""

store = click.argument("path", metavar="STORE", type=LocalStore())
"""Passes ``path``, a store directory, to the command."""

archive = click.argument("folder", metavar="ARCHIVE", type=LocalFolder())
"""Passes ``folder``, that of an archive, to the command."""


def _expanded(_ctx: click.Context, _param: click.Parameter, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Expands globs: no shell does so for addresses, or for quoted words."""
    from seglog.spark.source.wanted import expand_paths, may_be_glob  # the engine; no help text needs it

    found = expand_paths(paths) if any(map(may_be_glob, paths)) else paths
    return tuple(map(_store_of, found))


def _store_of(given: str) -> str:
    """Returns the store that a path is in, as :func:`store_of` does; addresses are returned unchanged."""
    path = Path(given)
    above = path if _ADDRESS.match(given) else store_of(path)
    return given if above == path else str(above)


readable_stores = click.argument(
    "paths", metavar="STORE...", nargs=-1, required=True, type=click.Path(), callback=_expanded
)
"""Passes ``paths``, one store or more by path, address or glob, to a command that only reads."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster that runs a job.

    Attributes:
        master: Spark's master; None for the one of ``spark-submit``, or else this machine.
        settings: Settings of Spark, by name.
    """

    master: str | None = None
    settings: dict[str, str] = field(default_factory=dict)


def cluster(function: CommandFunction) -> CommandFunction:
    """Passes ``cluster``, a :class:`Cluster`, to the command, from ``--master`` and ``--conf``."""

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
