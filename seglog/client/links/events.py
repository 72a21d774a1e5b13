"""Events of the connections of a link."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Connected:
    """There is a new connection: the other end knows nothing of this client yet.

    Attributes:
        address: Where it leads.
    """

    address: str


@dataclass(frozen=True, slots=True)
class Lost:
    """A connection has ended, or is not used any more; the next request makes a new one.

    Attributes:
        address: Where it led.
        why: For people.
    """

    address: str
    why: str


LinkEvent: TypeAlias = Connected | Lost
OnEvent: TypeAlias = Callable[[LinkEvent], None]
"""Called by the home of a link, before it fails what waited for that connection; it returns at once."""
