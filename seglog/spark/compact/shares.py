"""Rows on their way from the tasks that make them to those that take them: a file for each maker.

As a shuffle writes them: the rows of each taker together, and in front where those of each begin. For a log
of 1 GB Java took 1.0 CPU seconds to shuffle them, and takes 0.3 where they are files beside the store that is
being made. Only a plan, which writes nothing, goes through the shuffle.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from seglog.spark.making.spills import ATTEMPT, Table, divided
from seglog.storage.files import Files, RestoringFiles
from seglog.storage.kernels.gather import Ints

KEYED_ROWS: Final = ".keyed"
LOSERS: Final = ".losers"
"""Folders in a store that is being made; they are gone before it is one."""
_PLACE: Final = np.dtype("i8")


@dataclass(frozen=True, slots=True)
class Groups:
    """Parts of a store in groups of neighbours, as even as can be; a group is what one task does.

    Attributes:
        part_count: How many parts there are.
        most: How many groups there are at most.
    """

    part_count: int
    most: int

    @property
    def count(self) -> int:
        """How many groups there are."""
        return max(1, min(self.part_count, self.most))

    def parts(self, group: int) -> range:
        """Returns the parts of a group."""
        return range(group * self.part_count // self.count, (group + 1) * self.part_count // self.count)

    def of(self, parts: Ints) -> Ints:
        """Returns the group that each of some parts is in."""
        found: Ints = ((parts.astype(np.int64) + 1) * self.count - 1) // max(1, self.part_count)
        return found


def packed(rows: Table, taker: Ints, takers: int) -> Iterator[tuple[int, bytes]]:
    """Yields the number of each taker that gets rows, and these as bytes; arguments as in :func:`divided`."""
    ordered, starts = divided(rows, taker, takers)
    for number, (start, end) in enumerate(itertools.pairwise(starts)):
        if start < end:
            yield number, ordered[start:end].tobytes()


def unpacked(found: Iterable[tuple[int, bytes]], dtype: np.dtype[np.void]) -> Table:
    """Returns the rows of one taker."""
    return np.frombuffer(b"".join(rows for _number, rows in found), dtype)


def save_rows(files: RestoringFiles, path: Path, rows: Table, taker: Ints, takers: int) -> None:
    """Writes rows for their takers; one of several attempts wins, all write the same.

    Args:
        files: Where the file goes.
        path: Its name.
        rows: Of any dtype.
        taker: ``(n,)``, the number of each row's.
        takers: How many there are.
    """
    ordered, starts = divided(rows, taker, takers)
    places = np.array(starts, _PLACE) * rows.dtype.itemsize + _PLACE.itemsize * len(starts)
    attempt = path.with_name(f"{path.name}{ATTEMPT}-{uuid.uuid4().hex}")
    with closing(files.create(attempt, 0)) as file:
        file.write_at(places.data.cast("B"), 0)
        if len(ordered):
            file.write_at(ordered.data.cast("B"), int(places[0]))
    files.rename(attempt, path)


def load_rows(files: Files, paths: Iterable[Path], dtype: np.dtype[np.void], taker: int) -> Table:
    """Returns the rows of one taker in the files of all makers, in the order of these.

    Args:
        files: Where they are.
        paths: Their names, as :func:`save_rows` was given.
        dtype: That of the rows.
        taker: The number.
    """
    found = [np.zeros(0, dtype)]
    for path in paths:
        with closing(files.open(path, writable=False)) as file:
            ends = np.empty(2, _PLACE)
            file.read_into(ends.data.cast("B"), taker * _PLACE.itemsize)
            rows = np.empty((int(ends[1]) - int(ends[0])) // dtype.itemsize, dtype)
            if len(rows):
                file.read_into(rows.data.cast("B"), int(ends[0]))
        found.append(rows)
    return np.concatenate(found)
