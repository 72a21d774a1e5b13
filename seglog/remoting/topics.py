"""What clients and brokers both know of topics: permissions, and the name that new ones are made after.

Source: ``PermName.java``, ``TopicValidator.java``.
"""

from __future__ import annotations

from typing import Final

PERM_INHERIT: Final = 1
PERM_WRITE: Final = 2
PERM_READ: Final = 4
PERM_READ_WRITE: Final = PERM_READ | PERM_WRITE

_LETTERS: Final = ((PERM_READ, "R"), (PERM_WRITE, "W"), (PERM_INHERIT, "X"))

AUTO_CREATE_TOPIC: Final = "TBW102"
"""Model of topics created by a send; must be routable for that."""


def perm_text(perm: int) -> str:
    """Returns permissions as RocketMQ shows them, such as ``RW-``."""
    return "".join(letter if perm & bit else "-" for bit, letter in _LETTERS)
