"""Rows that come in parts, gathered in one array that grows.

Joining them at the end would touch each twice in memory that is new: on a virtual machine 4 to 5 µs a page,
which is more than what made them. Large arrays of numpy are of huge pages, where there are any.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

_FIRST_ROOM: Final = 1024
_MORE: Final = 1.05


class Gathered:
    """What came so far.

    Args:
        dtype: Of the rows.
    """

    def __init__(self, dtype: np.dtype[np.void]) -> None:
        self._room: npt.NDArray[np.void] = np.empty(_FIRST_ROOM, dtype)
        self._count = 0

    @property
    def items(self) -> npt.NDArray[np.void]:
        """All rows, in the order in which they came; valid until more come."""
        return self._room[: self._count]

    def add(self, rows: npt.NDArray[np.void], share: float = 1) -> None:
        """Copies rows.

        Args:
            rows: What comes next.
            share: How much of all that will come is then here, as far as anybody knows; above 0, to 1.
        """
        end = self._count + len(rows)
        if end > len(self._room):
            # Room that is never used is never given.
            grown = np.empty(max(int(_MORE * end / share), 2 * len(self._room)), self._room.dtype)
            grown[: self._count] = self.items
            self._room = grown
        self._room[self._count : end] = rows
        self._count = end
