"""Events of the connections of a link."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Connected:
    """A new connection was made: the other end does not know this client yet.

    Attributes:
        address: The address of the other end.
    """

    address: str


@dataclass(frozen=True, slots=True)
class Lost:
    """A connection has ended, or is no longer used; the next request makes a new one.

    Attributes:
        address: The address of the other end.
        why: The reason, for logs.
    """

    address: str
    why: str


LinkEvent: TypeAlias = Connected | Lost
OnEvent: TypeAlias = Callable[[LinkEvent], None]
"""Called by the home of a link, before the waiting requests of the connection fail; returns at once."""
