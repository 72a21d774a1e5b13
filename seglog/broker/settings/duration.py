"""Reads durations such as ``1h 30m``."""

from __future__ import annotations

import re
from typing import Final

from seglog.errors import InvalidArgumentError

_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"\s*(\d{1,15}(?:\.\d{1,3})?)\s*(ms|s|m|h|d)", re.ASCII)


def duration_ms(text: str) -> int:
    """Returns the milliseconds of a text such as ``2h``, ``1h 30m``, ``1.5s``, ``250ms`` or ``3d``.

    Raises:
        InvalidArgumentError: The text has another form.
    """
    total, position = 0.0, 0
    while position < len(text.rstrip()):
        part = _DURATION.match(text, position)
        if part is None:
            break
        total += float(part[1]) * _UNITS_MS[part[2]]
        position = part.end()
    if position == 0 or position < len(text.rstrip()):
        raise InvalidArgumentError(
            f"{text!r} is no duration", help="give a number and ms, s, m, h or d, such as 90s or 1h 30m"
        )
    return round(total)
