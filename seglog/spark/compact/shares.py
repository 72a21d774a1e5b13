"""Rows that one task makes for others: one file for each making task.

A file is like that of a shuffle: the rows are grouped by the receiving task, after a table of where each
group begins. For a log of 1 GB Java took 1.0 CPU seconds to shuffle the rows; with files beside the new store
it takes 0.3. Only a plan, which writes nothing, uses the shuffle.
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
"""Folders in the new store, which are removed before the store is complete."""
_PLACE: Final = np.dtype("i8")


@dataclass(frozen=True, slots=True)
class Groups:
    """Parts of a store in groups of adjacent ones, as even as possible; a task works on one group.

    Attributes:
        part_count: Number of parts.
        most: Greatest number of groups.
    """

    part_count: int
    most: int

    @property
    def count(self) -> int:
        """Number of groups."""
        return max(1, min(self.part_count, self.most))

    def parts(self, group: int) -> range:
        """Returns the parts of a group."""
        return range(group * self.part_count // self.count, (group + 1) * self.part_count // self.count)

    def of(self, parts: Ints) -> Ints:
        """Returns the group of each of some parts."""
        found: Ints = ((parts.astype(np.int64) + 1) * self.count - 1) // max(1, self.part_count)
        return found


def packed(rows: Table, taker: Ints, takers: int) -> Iterator[tuple[int, bytes]]:
    """Yields the number of each taker that gets rows, and its rows as bytes; arguments of :func:`divided`."""
    ordered, starts = divided(rows, taker, takers)
    for number, (start, end) in enumerate(itertools.pairwise(starts)):
        if start < end:
            yield number, ordered[start:end].tobytes()


def unpacked(found: Iterable[tuple[int, bytes]], dtype: np.dtype[np.void]) -> Table:
    """Returns the rows of one taker."""
    return np.frombuffer(b"".join(rows for _number, rows in found), dtype)


def save_rows(files: RestoringFiles, path: Path, rows: Table, taker: Ints, takers: int) -> None:
    """Writes rows for their takers; if several attempts write them, any one may win: all write the same.

    Args:
        files: Access to the folder of the file.
        path: The file.
        rows: Rows of any dtype.
        taker: ``(n,)``, the number of the taker of each row.
        takers: Number of takers.
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
    """Returns the rows of one taker in the files of all makers, in the order of the files.

    Args:
        files: Access to the files.
        paths: The files that :func:`save_rows` wrote.
        dtype: The dtype of the rows.
        taker: Number of the taker.
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
