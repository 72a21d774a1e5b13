"""Values of expressions, and how two of them compare: as Java's classes do, which users have come to know.

A property is a string; a literal is a string, a boolean or a number of one of three kinds. Which kind decides
what a string may be that it is compared with: ``a = 5`` takes "5" and not "5.0", ``a = 5.0`` takes both.
Where a string is not what it would have to be, nothing is true or false: the whole message does not match.

Source: ``ComparisonExpression.java __compare``; ``Integer.java``, ``Double.java valueOf``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias


class Long(int):
    """A whole number beyond 32 bits; those within are plain ``int``."""


Value: TypeAlias = bool | int | float | str | None
"""What an expression is for one message: None where that is unknown."""
Properties: TypeAlias = Mapping[str, str]

INT_LIMIT: Final = 1 << 31
LONG_LIMIT: Final = 1 << 63

_BLANKS: Final = "".join(map(chr, range(0x21)))
"""What Java trims."""
_WHOLE: Final = re.compile(r"[+-]?\d{1,400}")
_DECIMAL: Final = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?P<suffix>[fFdD]?)"
)
_HEX: Final = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+(?P<suffix>[fFdD]?)"
)


class IncomparableError(ValueError):
    """Two values cannot be compared; the message that they came from does not match."""


def compare(left: bool | float | str, right: bool | float | str) -> int:
    """Returns below 0, 0 or above 0; booleans and numbers are never equal, and the former is the smaller.

    Raises:
        IncomparableError: A string is not what the other value would need, or is compared with a boolean.
    """
    kind, other = type(left), type(right)
    if kind is not other:
        if isinstance(left, str):
            left = _READERS[other](left)
        elif isinstance(right, str):
            if kind is bool:
                raise IncomparableError(f"{left} cannot be compared with a string behind it")
            right = _READERS[kind](right)
        elif kind is bool or other is bool:
            return -1
        elif kind is float or other is float:
            left, right = float(left), float(right)
    if isinstance(left, float) and isinstance(right, float):
        return _compare_doubles(left, right)
    return (left > right) - (left < right)  # type: ignore[operator]  # both are of one type now


def compare_ordered(left: bool | float | str, right: bool | float | str) -> int:
    """Returns what :func:`compare` does, but takes two strings as numbers.

    Raises:
        IncomparableError: As :func:`compare`.
    """
    if isinstance(left, str) and isinstance(right, str):
        return _compare_doubles(read_double(left), read_double(right))
    return compare(left, right)


def read_whole(text: str, limit: int) -> int:
    """Returns the whole number that a string is.

    Args:
        text: As ``Integer.valueOf`` takes it: no blanks, digits of any script.
        limit: It must be from ``-limit`` and below ``limit``.

    Raises:
        IncomparableError: It is none.
    """
    if _WHOLE.fullmatch(text) and max(text) <= "\uffff":
        number = int(text)
        if -limit <= number < limit:
            return number
    raise IncomparableError(f"{text[:40]!r} is no whole number")


def read_double(text: str) -> float:
    """Returns the number that a string is, as ``Double.valueOf`` takes it.

    Raises:
        IncomparableError: It is none.
    """
    trimmed = text.strip(_BLANKS)
    found = _DECIMAL.fullmatch(trimmed)
    if found is not None:
        return float(trimmed[: found.start("suffix")])
    found = _HEX.fullmatch(trimmed)
    if found is None:
        raise IncomparableError(f"{text[:40]!r} is no number")
    try:
        return float.fromhex(trimmed[: found.start("suffix")])
    except OverflowError:
        return -math.inf if trimmed.startswith("-") else math.inf


def read_boolean(text: str) -> bool:
    """Returns whether a string is "true", in letters of any case."""
    return text.lower() == "true"


def _compare_doubles(left: float, right: float) -> int:
    """Compares as ``Double.compareTo``: not-a-number is the greatest, and minus zero is below zero."""
    if left == right == 0:
        return int(math.copysign(1, left) - math.copysign(1, right))
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) - math.isnan(right)
    return (left > right) - (left < right)


_READERS: Final[Mapping[type, Callable[[str], bool | int | float]]] = {
    bool: read_boolean,
    int: lambda text: read_whole(text, INT_LIMIT),
    Long: lambda text: Long(read_whole(text, LONG_LIMIT)),
    float: read_double,
}
