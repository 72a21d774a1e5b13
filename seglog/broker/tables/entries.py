"""Checks of table entries: an entry that could not be read back from the file is refused.

An unreadable file would keep the broker from opening. So each changed entry is encoded and decoded once
before it enters the table. A file with unreadable entries, written by another program, costs only these
entries: they are logged, and the file is kept as evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from seglog.broker.tables.config_shape import as_object
from seglog.errors import CorruptError, InvalidArgumentError
from seglog.logs import logger
from seglog.storage.format.config import ConfigValue, decode_config, encode_config
from seglog.text import printable

T = TypeVar("T")
_MOST_SHOWN: Final = 5
_log = logger(__name__)


def check_entry(
    name: str,
    value: object,
    config: ConfigValue,
    parse: Callable[[ConfigValue], Mapping[str, object]],
    most_characters: int | None,
) -> None:
    """Refuses an entry that would differ after the broker is opened again.

    Args:
        name: The entry's name.
        value: Its value.
        config: A file of the table with only this entry.
        parse: Returns the entries of a file.
        most_characters: Longest text of that file; None for no limit.

    Raises:
        InvalidArgumentError: It could not be read back, would be changed, or is too long.
    """
    shown = printable(name)[:200]
    try:
        text = encode_config(config)
        found = parse(decode_config(text)).get(name)
    except (CorruptError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(
            f"what is to be kept of {shown} could not be read again: {error}"
        ) from error
    if found != value:
        raise InvalidArgumentError(f"what is to be kept of {shown} would be read as something else")
    if most_characters is not None and len(text) > most_characters:
        raise InvalidArgumentError(
            f"what is to be kept of {shown} takes {len(text)} characters, at most {most_characters}"
        )


def without_unreadable(
    parse: Callable[[ConfigValue], T], tables: Sequence[str], what: str
) -> Callable[[ConfigValue], T]:
    """Returns a function that reads a file without its unreadable entries.

    Args:
        parse: Reads a file without damage.
        tables: Its members that hold entries by name.
        what: The name of the file in the log.
    """

    def parse_rest(value: ConfigValue) -> T:
        rest = dict(as_object(value, what))
        gone: list[str] = []
        for table in tables:
            kept: dict[str | int, ConfigValue] = {}
            for name, entry in as_object(rest.get(table, {}), table).items():
                try:
                    parse(decode_config(encode_config({table: {name: entry}})))
                except CorruptError:
                    gone.append(str(name))
                else:
                    kept[name] = entry
            rest[table] = kept
        found = parse(decode_config(encode_config(rest)))
        names = ", ".join(printable(name)[:60] for name in gone[:_MOST_SHOWN])
        _log.warning("%s: %d entries cannot be read, and are gone: %s", what, len(gone), names)
        return found

    return parse_rest
