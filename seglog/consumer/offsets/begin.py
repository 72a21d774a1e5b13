"""By what it is said where a consumer goes on in a queue, which decides what it may commit."""

from __future__ import annotations

from enum import Enum


class Begin(Enum):
    """By what it is said where a queue goes on."""

    KEPT = "kept"
    """By the group's offset."""
    ANEW = "anew"
    """By where a group begins that has none."""
    MOVED = "moved"
    """By a seek, a reset or a broker that has lost messages: the group is to be there from then on."""
