"""Gathers rows that come in parts in one growing array, and divides large arrays of rows into parts.

Joining the parts at the end would write each row twice into new memory: on a virtual machine 4 to 5 µs a
page, which is more than the time to compute the rows. Large numpy arrays use huge pages if the system has
them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.errors import FullError
from seglog.storage.segments.scratch import Room, Scratch

PART_ROWS: Final = 1 << 19
"""Rows in a part: temporary arrays are of this length."""
_FIRST_ROOM: Final = 1024
_MORE: Final = 1.05
_STEP_BYTES: Final = 16 << 20

_Rows = npt.NDArray[np.void]


class Gathered:
    """The rows that were added so far.

    Args:
        dtype: Type of the rows.
        room: Allocates the array; None for memory.
    """

    def __init__(self, dtype: np.dtype[np.void], room: Room | None = None) -> None:
        self._rows: _Rows = np.empty(_FIRST_ROOM, dtype)
        self._count = 0
        self._room = room
        self._scratch: Scratch | None = None
        self._reserved_bytes = 0

    @property
    def items(self) -> _Rows:
        """All rows in the order in which they were added; valid until more are added."""
        return self._rows[: self._count]

    def add(self, rows: _Rows, share: float = 1) -> None:
        """Copies rows.

        Args:
            rows: The next rows.
            share: The estimated share of all rows that has been added with these; above 0, up to 1.
        """
        end = self._count + len(rows)
        if end > len(self._rows):
            # The room may be too large: unused pages take no memory.
            self._grow(max(int(_MORE * end / share), 2 * len(self._rows)))
        if self._scratch is not None:
            self._reserve(end * self._rows.itemsize)
        self._rows[self._count : end] = rows
        self._count = end

    def _grow(self, count: int) -> None:
        before = self._rows
        if self._room is None:
            self._rows = np.empty(count, before.dtype)
        else:
            self._rows, self._scratch = self._room.growing(count, before.dtype)
            self._reserved_bytes = 0
            if self._scratch is not None:
                self._reserve(self._count * before.itemsize)
        self._rows[: self._count] = before[: self._count]
        if self._room is not None:
            self._room.give_back(before)

    def _reserve(self, end_bytes: int) -> None:
        """Allocates space in the file; continues in memory if there is none."""
        if self._scratch is None or end_bytes <= self._reserved_bytes:
            return
        wanted = min(max(end_bytes, self._reserved_bytes + _STEP_BYTES), self._rows.nbytes)
        try:
            self._scratch.reserve(self._reserved_bytes, wanted - self._reserved_bytes)
            self._reserved_bytes = wanted
        except FullError:
            before, self._scratch = self.items, None
            self._rows = np.empty(len(self._rows), before.dtype)
            self._rows[: self._count] = before


def parts(rows: _Rows, count: int = PART_ROWS) -> Iterator[_Rows]:
    """Yields rows in parts of at most ``count``."""
    for at in range(0, len(rows), count):
        yield rows[at : at + count]


def chosen(
    rows: _Rows, are_chosen: Callable[[_Rows], npt.NDArray[np.bool_]], room: Room | None = None
) -> _Rows:
    """Returns the rows that a predicate chooses; the array itself if it chooses all.

    Args:
        rows: Rows of any kind.
        are_chosen: Returns which rows are chosen.
        room: Allocates copies.
    """
    count = sum(int(np.count_nonzero(are_chosen(part))) for part in parts(rows))
    if count == len(rows):
        return rows
    found = np.empty(count, rows.dtype) if room is None else room.empty(count, rows.dtype)
    end = 0
    for part in parts(rows):
        taken = part[are_chosen(part)]
        found[end : end + len(taken)] = taken
        end += len(taken)
    return found


def spliced(rows: _Rows, at: int, more: _Rows) -> _Rows:
    """Returns rows with other rows inserted before index ``at``; in a file if they are many."""
    joined = Room().empty(len(rows) + len(more), rows.dtype)
    joined[:at], joined[at : at + len(more)], joined[at + len(more) :] = rows[:at], more, rows[at:]
    return joined


def place_of(rows: _Rows, phy_offset: int) -> int:
    """Returns the index of the first row whose record starts at or behind ``phy_offset``; rows in log order.

    Not numpy's searchsorted, which first copies the whole field of a structured array.
    """
    return bisect_left(rows, phy_offset, key=_phy_offset)


def _phy_offset(row: np.void) -> int:
    return int(row["phy_offset"])
