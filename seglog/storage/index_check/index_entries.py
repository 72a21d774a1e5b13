"""The entries of index files about some part of the log, read as they are asked for.

Memory: a few pieces.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from seglog.storage.directory.index_files import IndexFile
from seglog.storage.files.files import Files
from seglog.storage.format.index.index import INDEX_ENTRY
from seglog.storage.format.index.index_build import KeyRows
from seglog.storage.format.index.index_view import Entries
from seglog.storage.index_check.index_outline import FileOutline, new_piece, read_piece
from seglog.storage.kernels.index_entries import stand_for

HELD: Final = np.dtype([("phy_offset", "i8"), ("key_hash", "i4"), ("time_diff_s", "i4"), ("begin_ms", "i8")])
"""An entry; ``begin_ms`` is that of its file, -1 for a file's first, whose time is stored otherwise."""

HeldEntries = npt.NDArray[np.void]
_KEPT_PIECES: Final = 4


class _Part(NamedTuple):
    """Entries of one piece."""

    file: IndexFile
    entries: Entries
    starts_file: bool


class IndexEntries:
    """Looks entries up. One thread at a time.

    Args:
        files: Where the store is.
        outlines: Its index files, in order, or what of them is about the part of the log that is asked for.
    """

    def __init__(self, files: Files, outlines: Iterable[FileOutline]) -> None:
        self._files = files
        self._outlines = tuple(outlines)
        # Windows that follow each other want the same pieces.
        self._piece = lru_cache(maxsize=_KEPT_PIECES)(self._read)

    def in_range(self, start: int, end: int) -> HeldEntries:
        """Returns the entries of records that start in ``[start, end)``, in the order of the files."""
        return np.concatenate([np.empty(0, HELD), *map(_held, self._parts(start, end))])

    def stand_for(self, rows: KeyRows, start: int, end: int) -> bool:
        """Returns whether the entries of ``[start, end)`` are those of the keys, in order and in time.

        Args:
            rows: ``(n,) KEY_ROW``.
            start: Physical offset where the records of the keys begin.
            end: Where they end.
        """
        at = 0
        for file, entries, starts_file in self._parts(start, end):
            part = rows[at : at + len(entries)]
            if not stand_for(part, entries, file.header.begin_timestamp_ms, starts_file=starts_file):
                return False
            at += len(entries)
        return at == len(rows)

    def _parts(self, start: int, end: int) -> Iterator[_Part]:
        for outline in self._outlines:
            pieces = outline.pieces
            for at in np.flatnonzero((pieces["least"] < end) & (pieces["greatest"] >= start)).tolist():
                number = int(pieces["number"][at])
                entries = self._piece(outline.file, number)
                places = entries["phy_offset"]
                if pieces["is_sorted"][at]:
                    first, last = bisect_left(places, start), bisect_left(places, end)
                    yield _Part(outline.file, entries[first:last], number == 0 and first == 0)
                else:
                    inside = (places >= start) & (places < end)
                    yield _Part(outline.file, entries[inside], number == 0 and bool(inside[:1].any()))

    def _read(self, file: IndexFile, number: int) -> Entries:
        try:
            handle = self._files.open(file.path, writable=False)
        except FileNotFoundError:  # retention took it while we looked
            return np.empty(0, INDEX_ENTRY.dtype)
        with closing(handle):
            return read_piece(handle, file, number, new_piece())


def _held(part: _Part) -> HeldEntries:
    held = np.empty(len(part.entries), HELD)
    for name in ("phy_offset", "key_hash", "time_diff_s"):
        held[name] = part.entries[name]
    held["begin_ms"] = part.file.header.begin_timestamp_ms
    if part.starts_file and len(held):
        held["begin_ms"][0] = -1
    return held
