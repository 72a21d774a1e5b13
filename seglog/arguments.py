"""Checks of arguments at the entrance of a public call: each returns the value that the call uses, or raises.

Each function takes the name of the argument, with which its error begins, and returns the value. Text that is
exactly the value of an enumeration becomes its member. A ``bool`` is no number, and neither is NaN; numbers
of numpy are numbers. The checks are for entrances and for values that a fast path does not handle; no loop
runs through them.
"""

from __future__ import annotations

import enum
import math
import operator
import reprlib
from collections.abc import Collection, Mapping
from typing import Final, TypeVar

from seglog.errors import InvalidArgumentError

E = TypeVar("E", bound=enum.Enum)
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

MAX_I32: Final = (1 << 31) - 1
MIN_I32: Final = -(1 << 31)
MAX_I64: Final = (1 << 63) - 1
MIN_I64: Final = -(1 << 63)
MAX_TIMEOUT_MS: Final = 1 << 40
"""34 years; the system's own waits refuse values far above it."""
_EXACT_BITS: Final = 63
"""Longer integers count as infinity: a float cannot hold integers of thousands of digits."""
_SHOWN_BITS: Final = 256
"""Longest integer, in bits, that an error shows: Python refuses to print integers of thousands of digits."""


def refusal(name: str, value: object, expected: str, advice: str | None = None) -> InvalidArgumentError:
    """Returns the error that names an argument, its value and the values that it accepts."""
    return InvalidArgumentError(f"{name}={shown(value)} is not valid: expected {expected}", help=advice)


def as_int(
    name: str, value: object, low: int = MIN_I64, high: int = MAX_I64, *, useful_to: int | None = None
) -> int:
    """Returns an integer within bounds.

    Args:
        name: Name of the argument.
        value: The value that the caller gave.
        low: Least valid value.
        high: Greatest valid value.
        useful_to: The greatest value that makes sense, if the call accepts greater ones: the error names the
            range from 0 to it.

    Raises:
        InvalidArgumentError: The value is no integer, or outside of the bounds.
    """
    number = value if type(value) is int else _index(value)
    if number is None or not low <= number <= high:
        if useful_to is not None:
            bounds = f" in 0..{useful_to}"
        elif number is not None and number > high:
            bounds = f" up to {high}"
        else:
            bounds = _range_text(low, high)
        raise refusal(name, value, f"an integer{bounds}")
    return number


def as_number(name: str, value: object, low: float = 0) -> float:
    """Returns a number of at least ``low``; infinity is a number, and replaces integers beyond 64 bits.

    Raises:
        InvalidArgumentError: The value is no number, NaN, or less.
    """
    number = value if type(value) is float else _index(value)
    if number is None or (isinstance(number, float) and math.isnan(number)) or number < low:
        raise refusal(name, value, "a number" if low == -math.inf else f"a number from {low} on")
    if isinstance(number, int) and number.bit_length() > _EXACT_BITS:
        return math.inf if number > 0 else -math.inf
    return number


def as_timeout_ms(name: str, value: object) -> float:
    """Returns a timeout: at most :data:`MAX_TIMEOUT_MS`, also for infinity; 0 for negative numbers.

    Raises:
        InvalidArgumentError: The value is no number, or NaN.
    """
    if value is None:
        raise refusal(name, value, "a number of milliseconds", "float('inf') waits without a limit")
    return max(0, min(as_number(name, value, -math.inf), MAX_TIMEOUT_MS))


def as_enum(name: str, kind: type[E], value: object) -> E:
    """Returns a member of an enumeration, from the member itself or exactly its value as text.

    Raises:
        InvalidArgumentError: The value is neither.
    """
    if type(value) is kind:
        return value
    if isinstance(value, str):
        for member in kind:
            if member.value == value:
                return member
    choices = [member.value for member in kind]
    raise refusal(name, value, f"{_choices_text(choices)} ({kind.__name__})")


def as_choice(name: str, choices: Collection[str], value: object) -> str:
    """Returns a text that must be one of several choices.

    Raises:
        InvalidArgumentError: It is none of them.
    """
    if not isinstance(value, str) or value not in choices:
        raise refusal(name, value, _choices_text(choices))
    return value


def as_text(name: str, value: object) -> str:
    """Returns a text; of a subclass, such as a member of an enum, the plain text.

    Raises:
        InvalidArgumentError: The value is no ``str``.
    """
    if type(value) is str:
        return value
    if not isinstance(value, str):
        advice: str | None = None
        if isinstance(value, bytes):
            advice = "decode bytes first"
        elif isinstance(value, int | float):
            advice = "give numbers as text: str(…)"
        elif isinstance(value, list | tuple | set | frozenset):
            advice = "give one text, and not several: call it once for each"
        raise refusal(name, value, "str", advice)
    return str.__str__(value)  # str() would ask the subclass


def as_unicode(name: str, value: object) -> str:
    """Returns a text that can be stored and sent: it has no half of a surrogate pair.

    Raises:
        InvalidArgumentError: The value is no ``str``, or cannot be encoded as UTF-8.
    """
    text = as_text(name, value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        bad = text[error.start : error.end]
        raise refusal(name, value, f"valid text ({error.reason}: {bad[:1]!r})") from None
    return text


def as_flag(name: str, value: object) -> bool:
    """Returns a truth value.

    Raises:
        InvalidArgumentError: The value is no ``bool``.
    """
    if not isinstance(value, bool):
        raise refusal(name, value, "True or False")
    return value


def as_body(name: str, value: object) -> bytes | memoryview:
    """Returns bytes, or a flat view of a buffer; a buffer that is not contiguous is copied.

    Raises:
        InvalidArgumentError: The value is no buffer of bytes; a ``str`` must be encoded first. Numbers and
            texts of numpy are buffers of wider items: their memory depends on the machine.
    """
    if type(value) is bytes:
        return value
    try:
        view = memoryview(value)  # type: ignore[arg-type]  # it says whether it is one
        is_bytes = isinstance(value, memoryview) or (view.itemsize == 1 and view.ndim > 0)
        if isinstance(value, str) or not is_bytes:
            raise TypeError
        if view.c_contiguous and view.itemsize == 1 and view.ndim == 1:
            return view
        return view.cast("B") if view.c_contiguous and view.nbytes else view.tobytes()
    except TypeError:
        advice = "encode the text first: text.encode()" if isinstance(value, str) else None
        raise refusal(name, value, "bytes, bytearray or memoryview", advice) from None


def as_bytes(name: str, value: object) -> bytes:
    """Returns bytes.

    Raises:
        InvalidArgumentError: The value is neither ``bytes`` nor a buffer.
    """
    return value if isinstance(value, bytes) else bytes(as_body(name, value))


def as_kind(name: str, kind: type[T], value: object) -> T:
    """Returns a value of a class.

    Raises:
        InvalidArgumentError: The value is of another class.
    """
    if not isinstance(value, kind):
        raise refusal(name, value, kind.__name__)
    return value


def as_doing(name: str, value: T, calls: Collection[str], expected: str) -> T:
    """Returns an object that must have some methods.

    Args:
        name: Name of the argument.
        value: The value that the caller gave.
        calls: The names of the methods.
        expected: What such an object is, for the error.

    Raises:
        InvalidArgumentError: It lacks one of them, or is a class.
    """
    if isinstance(value, type) or not all(callable(getattr(value, call, None)) for call in calls):
        raise refusal(name, value, expected)
    return value


def as_mapping(name: str, value: Mapping[K, V]) -> Mapping[K, V]:
    """Returns a mapping.

    Raises:
        InvalidArgumentError: The value is no mapping.
    """
    if not isinstance(value, Mapping):
        raise refusal(name, value, "a mapping")
    return value


def _index(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]  # it says whether it is one
    except TypeError:
        return None


def shown(value: object) -> str:
    """Returns a value as an error shows it: cut to a short text."""
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return f"<{value.bit_length()} bits>"
    return reprlib.repr(value)


def _range_text(low: int, high: int) -> str:
    if (low, high) == (MIN_I64, MAX_I64):
        return ""
    return f" from {low} on" if high == MAX_I64 else f" in {low}..{high}"


def _choices_text(choices: Collection[str]) -> str:
    *most, last = [repr(choice) for choice in choices]
    return f"{', '.join(most)} or {last}" if most else last
