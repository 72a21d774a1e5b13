"""Reads config JSON with the reader of the standard library, where that gives the same.

A table of a hundred thousand offsets is read in a tenth of the time. What the standard reader does not know
(objects as keys) or would let through (endless nesting, NaN), and any damage, is left to
:mod:`seglog.storage.format.config.config_json`, which also says where the damage is.
"""

from __future__ import annotations

import json
import math
import re
from itertools import accumulate
from typing import Final

from seglog.storage.format.config.config_value import ConfigValue

_STRING: Final = re.compile(r'("(?:[^"\\]|\\.)*(?:"|\\?\Z))', re.DOTALL)
"""One without end goes to the end of the text: else each escaped quote in it would be tried as its begin."""
_INTEGER_KEY: Final = re.compile(r"(?<=[{, \t\n\r])(-?(?:0|[1-9][0-9]{0,18}))(?=[ \t\n\r]*:)")
_BRACKET: Final = re.compile(r"[{}\[\]]")
_LONG_NUMBER: Final = re.compile(r"[0-9]{20}")
_STEPS: Final = {"{": 1, "[": 1, "}": -1, "]": -1}
_MARK: Final = "\0"
"""Before an integer key that was put into quotes; a text with that character is not read here."""


def decode_quickly(text: str, max_depth: int, *, has_unique_keys: bool = False) -> tuple[ConfigValue] | None:
    """Returns the value of a whole text, in a tuple because it may be None; None if it is not for here.

    Args:
        text: A config file.
        max_depth: How deep values may be.
        has_unique_keys: Whether an object with a key twice is not for here.
    """
    if _MARK in text or "\\u0000" in text:
        return None
    pieces = _STRING.split(text)  # strings are at the odd places
    for place in range(0, len(pieces), 2):
        piece = pieces[place]
        if _LONG_NUMBER.search(piece):
            return None
        parts = _INTEGER_KEY.split(piece)  # keys are at the odd places
        if len(parts) > 1:
            parts[1::2] = [f'"\\u0000{key}"' for key in parts[1::2]]
            pieces[place] = "".join(parts)
    brackets = _BRACKET.findall("".join(pieces[::2]))
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > max_depth:
        return None
    try:
        return ((_UNIQUE if has_unique_keys else _DECODER).decode("".join(pieces)),)
    except ValueError:
        return None


def _new_object(pairs: list[tuple[str, ConfigValue]]) -> dict[str | int, ConfigValue]:
    return {int(key[1:]) if key[:1] == _MARK else key: value for key, value in pairs}


def _new_unique_object(pairs: list[tuple[str, ConfigValue]]) -> dict[str | int, ConfigValue]:
    found = _new_object(pairs)
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
