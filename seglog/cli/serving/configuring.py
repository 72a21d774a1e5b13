"""The configuration file and ``--set``: read before the store is opened, and reported in the log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from seglog.broker.delay import DelayLevels
from seglog.broker.settings import Said, Startup, read_startup, said_in
from seglog.errors import InvalidArgumentError
from seglog.storage.directory import MAX_CONF_BYTES
from seglog.storage.small_files import open_regular

_HELP: Final = "give the broker's configuration file, such as conf/broker.conf"
_NAME_SERVERS: Final = "namesrvAddr"
_MOST_NAMED: Final = 20
_MOST_NAME: Final = 100
"""Most unknown names in one line of the log, and most characters of their names."""


def startup_of(file: Path | None, values: Sequence[str]) -> Startup:
    """Returns the settings of a configuration file and of single values.

    Args:
        file: The configuration file; None for none.
        values: Single settings, ``NAME=VALUE``; they override the file, and later values override earlier
            ones.

    Raises:
        InvalidArgumentError: The file cannot be read, or it or a value is not valid; the error names file and
            line, or ``--set``.
    """
    said = [] if file is None else said_in(_content(file), str(file))
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name.strip():
            raise InvalidArgumentError(
                f"--set {value!r} is no NAME=VALUE", help="such as --set autoCreateTopicEnable=false"
            )
        said.append(Said(name.strip(), text, "--set"))
    return read_startup(said, {"messageDelayLevel": DelayLevels})


def notes_of(startup: Startup) -> list[str]:
    """Returns the lines of the log about settings that have no effect: one line for each kind."""
    notes = []
    if startup.unknown:
        shown = ", ".join(
            f"{one.name[:_MOST_NAME]} ({one.where}{f'; {near}?' if near else ''})"
            for one, near in startup.unknown[:_MOST_NAMED]
        )
        if len(startup.unknown) > _MOST_NAMED:
            shown += f" and {len(startup.unknown) - _MOST_NAMED} more"
        notes.append(f"no settings of RocketMQ, so they change nothing: {shown}")
    if startup.unused:
        own = " (this server is its own name server)" if _NAME_SERVERS in startup.unused else ""
        notes.append(f"settings that change nothing here: {', '.join(sorted(startup.unused))}{own}")
    return notes


def _content(path: Path) -> bytes:
    try:
        with open_regular(path, MAX_CONF_BYTES, advice=_HELP) as file:
            return file.read(MAX_CONF_BYTES)
    except OSError as error:
        raise InvalidArgumentError(f"{path} cannot be read: {error.strerror}", help=_HELP) from error
