"""The origin of a consumer's start offset in a queue, which decides what it may commit."""

from __future__ import annotations

from enum import Enum


class Begin(Enum):
    """The origin of a queue's start offset."""

    KEPT = "kept"
    """The group's committed offset."""
    ANEW = "anew"
    """The begin of a group without a committed offset."""
    MOVED = "moved"
    """A seek, a reset, or a broker that has lost messages: the offset is committed for the group."""
