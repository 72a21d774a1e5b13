"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")
"""Hands ``as_json`` to the command."""

store = click.argument("path", metavar="STORE", type=click.Path(path_type=Path))
"""Hands ``path``, the store directory, to the command; whether it is one the engine says."""
