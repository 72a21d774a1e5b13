"""The output of a job: a table for people, JSON lines for programs, or Parquet in a folder."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import click

from seglog.cli.ui import render
from seglog.cli.ui.options import CommandFunction
from seglog.spark.audit import UnreadStore
from seglog.spark.save import refuse_existing

FORMATS: Final = ("table", "json", "parquet")


@dataclass(frozen=True, slots=True)
class Results:
    """The form and the place of the results.

    Attributes:
        format: One of :data:`FORMATS`.
        folder: Folder to which Spark writes them, a path or an address for the cluster; None for stdout.
    """

    format: str = "table"
    folder: str | None = None

    @property
    def is_json(self) -> bool:
        """Whether they are printed as JSON, one object a line."""
        return self.format == "json" and self.folder is None


def show_unread(unread: Sequence[UnreadStore], *, as_json: bool) -> None:
    """Prints a line for each store that could not be read, with its error and help."""
    for one in unread:
        if as_json:
            render.emit({"kind": "unread", **one.fields()})
        else:
            render.say(f"not read: {one.named}: {one.error}; {one.error.help}")


def to_results(function: CommandFunction) -> CommandFunction:
    """Passes ``results``, a :class:`Results`, to the command, from --json, --format and --output."""

    @click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")
    @click.option("--format", "form", type=click.Choice(FORMATS), help="How results are given.")
    @click.option(
        "--output",
        "folder",
        metavar="FOLDER",
        help="Write results there, as Parquet unless told otherwise.",
    )
    @functools.wraps(function)
    def call(*, as_json: bool, form: str | None, folder: str | None, **rest: object) -> None:
        function(results=_chosen(form, folder, as_json=as_json), **rest)

    return call


def _chosen(form: str | None, folder: str | None, *, as_json: bool) -> Results:
    if as_json and form not in (None, "json"):
        raise click.UsageError(f"--json and --format {form} do not go together")
    chosen = form or ("json" if as_json else "table" if folder is None else "parquet")
    if chosen == "parquet" and folder is None:
        raise click.UsageError("--format parquet needs --output")
    if chosen == "table" and folder is not None:
        raise click.UsageError("--format table is printed; --output takes json or parquet")
    if folder is not None:
        refuse_existing(folder)
    return Results(chosen, folder)
