"""Checks that decoded config values have the shape that a table needs.

Well-formed JSON of another shape is damage too: the backup must be read then, and no exception must be raised
later.
"""

from __future__ import annotations

from collections.abc import Mapping

from seglog.errors import CorruptError, InvalidArgumentError
from seglog.storage.format.config import ConfigValue


def as_object(value: ConfigValue, name: str) -> Mapping[str | int, ConfigValue]:
    """Returns the value if it is an object.

    Raises:
        CorruptError: It is not.
    """
    if not isinstance(value, Mapping):
        raise _wrong_shape(name, "an object", value)
    return value


def as_int(value: ConfigValue, name: str) -> int:
    """Returns the value if it is an integer.

    Raises:
        CorruptError: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong_shape(name, "a whole number", value)
    return value


def as_bool(value: ConfigValue, name: str) -> bool:
    """Returns the value if it is true or false.

    Raises:
        CorruptError: It is not.
    """
    if not isinstance(value, bool):
        raise _wrong_shape(name, "true or false", value)
    return value


def as_text(value: ConfigValue, name: str) -> str:
    """Returns the value if it is a string.

    Raises:
        CorruptError: It is not.
    """
    if not isinstance(value, str):
        raise _wrong_shape(name, "a string", value)
    return value


def as_int_key(key: str | int, name: str) -> int:
    """Returns a key that is a number, quoted or not: both occur.

    Raises:
        CorruptError: It is not a number.
    """
    if isinstance(key, int):
        return key
    if key.isascii() and key.removeprefix("-").isdigit() and len(key) <= 20:
        return int(key)
    raise _wrong_shape(name, "a number as key", key)


def check_int32(number: int, name: str) -> None:
    """Refuses a number that Java cannot read back from a table.

    Args:
        number: A setting of 32 bits, though ``brokerId`` has 64 in RocketMQ.
        name: The entry whose setting it is.

    Raises:
        InvalidArgumentError: It does not fit into 32 bits.
    """
    if not -(1 << 31) <= number < 1 << 31:
        raise InvalidArgumentError(f"the number {number} in the settings of {name} takes more than 32 bits")


def _wrong_shape(name: str, expected: str, found: ConfigValue) -> CorruptError:
    return CorruptError("config-shape", expected=f"{expected} as {name}", found=repr(found)[:60])
