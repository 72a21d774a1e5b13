"""What clients and brokers both know of topics: permissions.

Source: ``PermName.java``.
"""

from __future__ import annotations

from typing import Final

PERM_INHERIT: Final = 1
PERM_WRITE: Final = 2
PERM_READ: Final = 4
PERM_READ_WRITE: Final = PERM_READ | PERM_WRITE

_LETTERS: Final = ((PERM_READ, "R"), (PERM_WRITE, "W"), (PERM_INHERIT, "X"))


def perm_text(perm: int) -> str:
    """Returns permissions as RocketMQ shows them, such as ``RW-``."""
    return "".join(letter if perm & bit else "-" for bit, letter in _LETTERS)
