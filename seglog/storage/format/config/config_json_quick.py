"""Reads config JSON with the reader of the standard library, where that gives the same.

A text that is standard JSON goes to that reader as it is, in a twentieth of the time; of one with integer
keys, such as a table of offsets, a copy goes there that has them in quotes, in a tenth of the time. What the
standard reader does not know (objects as keys) or would let through (endless nesting, NaN), and any damage,
is left to :mod:`seglog.storage.format.config.config_json`, which also says where the damage is.
"""

from __future__ import annotations

import json
import math
import re
from itertools import accumulate
from typing import Final

from seglog.storage.format.config.config_value import ConfigValue

_STRING: Final = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z))', re.DOTALL)
"""One without end goes to the end of the text: else each escaped quote in it would be tried as its begin."""
_INTEGER_KEY: Final = re.compile(r"(?<=[{, \t\n\r])(-?(?:0|[1-9][0-9]{0,18}))(?=[ \t\n\r]*:)")
_LONG_NUMBER: Final = re.compile(r"[0-9]{20}")
_LONG_ZEROS: Final = b"0" * 20
_PART: Final = 1 << 16
"""Characters that are searched for integer keys in one go."""
_STEPS: Final = {ord("{"): 1, ord("["): 1, ord("}"): -1, ord("]"): -1}
_ALIKE: Final = bytes(ord("0") if chr(byte).isdigit() and byte < 128 else byte for byte in range(256))
"""All digits as zeros."""
_NO_SHAPE: Final = bytes(byte for byte in range(256) if byte not in b'"[]{}')
_STRING_SHAPE: Final = re.compile(rb'"[^"]*+"?')
_MARK: Final = "\0"
"""Before an integer key that was put into quotes; a text with that character is not read here."""


def decode_quickly(text: str, max_depth: int, *, has_unique_keys: bool = False) -> tuple[ConfigValue] | None:
    """Returns the value of a whole text, in a tuple because it may be None; None if it is not for here.

    Args:
        text: A config file.
        max_depth: How deep values may be.
        has_unique_keys: Whether an object with a key twice is not for here.
    """
    data = text.encode("utf-8", "surrogatepass")
    if _depth(data) > max_depth:
        return None
    found = _decode_standard(text, data, has_unique_keys=has_unique_keys)
    if found is not None or _MARK in text or "\\u0000" in text:
        return found
    pieces = _STRING.split(text)  # strings are at the odd places
    for place in range(0, len(pieces), 2):
        quoted = _with_quoted_keys(pieces[place])
        if quoted is None:
            return None
        pieces[place] = quoted
    try:
        return ((_UNIQUE if has_unique_keys else _DECODER).decode("".join(pieces)),)
    except ValueError:
        return None


def _decode_standard(text: str, data: bytes, *, has_unique_keys: bool) -> tuple[ConfigValue] | None:
    """Returns the value of a text, here as bytes too, that is standard JSON; None if it is not for here.

    What is looked at before takes a few passes of C over the bytes, not a step for each value.
    """
    if _LONG_ZEROS in data.translate(_ALIKE):
        return None
    try:
        return ((_STANDARD_UNIQUE if has_unique_keys else _STANDARD).decode(text),)
    except ValueError:
        return None


def _with_quoted_keys(piece: str) -> str | None:
    """Returns what stands between two strings with its integer keys in quotes; None if a number is long."""
    parts: list[str] = []
    at = 0
    while at < len(piece):
        # A part ends before a comma, so in no key, and is so short that other threads have their turns.
        end = piece.find(",", at + _PART) if at + _PART < len(piece) else -1
        part = piece[at:] if end < 0 else piece[at:end]
        if _LONG_NUMBER.search(part):
            return None
        split = _INTEGER_KEY.split(part)  # keys are at the odd places
        split[1::2] = [f'"\\u0000{key}"' for key in split[1::2]]
        parts += split
        at += len(part)
    return "".join(parts)


def _depth(data: bytes) -> int:
    """Returns how deep values are, up to where the text is no JSON any more."""
    if b"\\" in data:  # within strings alone; escaped backslashes go first, then a quote that has one left
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Two quotes that touch end one string and begin another, or are an empty one: what is within stays so.
    shape = data.translate(None, _NO_SHAPE).replace(b'""', b"")
    return max(accumulate(map(_STEPS.__getitem__, _STRING_SHAPE.sub(b"", shape))), default=0)


def _new_object(pairs: list[tuple[str, ConfigValue]]) -> dict[str | int, ConfigValue]:
    return {int(key[1:]) if key[:1] == _MARK else key: value for key, value in pairs}


def _new_unique_object(pairs: list[tuple[str, ConfigValue]]) -> dict[str | int, ConfigValue]:
    found = _new_object(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _unique_object(pairs: list[tuple[str, ConfigValue]]) -> dict[str, ConfigValue]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _no_constant(text: str) -> float:
    raise ValueError(text)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_new_object, parse_float=_finite, parse_constant=_no_constant, strict=False
)
_UNIQUE: Final = json.JSONDecoder(
    object_pairs_hook=_new_unique_object, parse_float=_finite, parse_constant=_no_constant, strict=False
)
_STANDARD: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant, strict=False)
_STANDARD_UNIQUE: Final = json.JSONDecoder(
    object_pairs_hook=_unique_object, parse_float=_finite, parse_constant=_no_constant, strict=False
)
