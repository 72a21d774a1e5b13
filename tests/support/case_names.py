"""Names of parametrized cases that are the same in every process, which sharing tests asks for."""

from __future__ import annotations

import re


def said(value: object) -> str:
    """Returns a value as text, without the address that Python gives of some."""
    return re.sub(r" (?:object )?at 0x[0-9a-f]+", "", str(value))
