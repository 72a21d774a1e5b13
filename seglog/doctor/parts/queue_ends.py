"""Where a queue begins and ends, which is all that tables and files beside the log are held against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias


class QueueEnds(Protocol):
    """A queue, as a survey or an audit has it."""

    @property
    def min_offset(self) -> int:
        """Queue offset of the first message."""

    @property
    def max_offset(self) -> int:
        """Queue offset of the next message."""


Queues: TypeAlias = Mapping[tuple[str, int], QueueEnds]
"""By topic and number."""
