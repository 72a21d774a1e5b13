"""Arguments and options that several commands share."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from seglog.errors import InvalidArgumentError

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")
"""Hands ``as_json`` to the command."""

store = click.argument("path", metavar="STORE", type=click.Path(path_type=Path))
"""Hands ``path``, the store directory, to the command; whether it is one the engine says."""


def timestamp_ms(option: str, text: str | None, default_ms: int) -> int:
    """Returns the moment that an option names.

    Args:
        option: Its name, for the error.
        text: Milliseconds since 1970, or a time in ISO 8601, local unless it names its zone.
        default_ms: For None.

    Raises:
        InvalidArgumentError: Neither of the two, or before 1970.
    """
    if text is None:
        return default_ms
    try:
        moment_ms = int(text) if text.isascii() and text.isdigit() else _iso_ms(datetime.fromisoformat(text))
    except (ValueError, OverflowError, OSError) as error:
        moment_ms, reason = -1, str(error)
    else:
        reason = "it is outside of what a store can hold"
    if not 0 <= moment_ms <= _MAX_TIMESTAMP_MS:
        raise InvalidArgumentError(
            f"{option} {text!r} is no time: {reason}",
            help="give milliseconds since 1970, or a time such as 2026-11-21T07:46:00 or 2026-11-21T07:46Z",
        )
    return moment_ms


def _iso_ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


_MAX_TIMESTAMP_MS = 0x7FFF_FFFF_FFFF_FFFF
