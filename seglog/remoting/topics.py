"""What clients and brokers both know of topics: permissions, and how many queues one may have.

Source: ``PermName.java``.
"""

from __future__ import annotations

from typing import Final

PERM_INHERIT: Final = 1
PERM_WRITE: Final = 2
PERM_READ: Final = 4
PERM_READ_WRITE: Final = PERM_READ | PERM_WRITE
MAX_QUEUES: Final = 16_384
"""Queues of one topic at most, to read and to write: a thousand times what brokers make by themselves.

An answer that lists them all takes less than half of a frame, with names as long as they may be, and less
than a CPU second.
"""

_LETTERS: Final = ((PERM_READ, "R"), (PERM_WRITE, "W"), (PERM_INHERIT, "X"))


def perm_text(perm: int) -> str:
    """Returns permissions as RocketMQ shows them, such as ``RW-``."""
    return "".join(letter if perm & bit else "-" for bit, letter in _LETTERS)
