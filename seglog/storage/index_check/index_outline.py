"""What an index file holds where: by pieces of some entries, so that those of a part of the log are found.

Entries lie in the order of the log, unless they are damaged; so each piece is known by the least and the
greatest place in it, and only pieces that may hold a place are read. Plain data, which may go to another
process.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.errors import CorruptError
from seglog.storage.directory.index_files import IndexFile
from seglog.storage.files.files import Files, OpenFile
from seglog.storage.format.index.index import INDEX_ENTRY
from seglog.storage.format.index.index_view import Entries
from seglog.storage.kernels.index_entries import extent_of

PIECE_ENTRIES: Final = 1 << 14
PIECE: Final = np.dtype([("number", "i8"), ("least", "i8"), ("greatest", "i8"), ("is_sorted", "?")])
"""A piece: its number in the file, where its entries lead, and whether in the order of the log."""

Pieces = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True, eq=False)
class FileOutline:
    """A file and where its entries lead.

    Attributes:
        file: The file, with one entry or more.
        pieces: ``(n,) PIECE``, in order; all of the file's, or those about a part of the log.
    """

    file: IndexFile
    pieces: Pieces

    @property
    def entry_count(self) -> int:
        """How many entries the whole file has."""
        return self.file.header.index_count - 1

    @property
    def greatest(self) -> int:
        """The greatest place that an entry leads to, -1 without pieces."""
        return int(self.pieces["greatest"].max(initial=-1))

    def within(self, start: int, end: int) -> FileOutline:
        """Returns the outline without the pieces that have no entry about ``[start, end)``."""
        pieces = self.pieces
        return replace(self, pieces=pieces[(pieces["least"] < end) & (pieces["greatest"] >= start)])


def outline_file(files: Files, file: IndexFile) -> FileOutline:
    """Reads a file once; returns where its entries lead.

    Args:
        files: Where it is.
        file: The file, with one entry or more.

    Raises:
        CorruptError: It has another length than its geometry says.
    """
    count = piece_count(file)
    pieces = np.empty(count, PIECE)
    with closing(files.open(file.path, writable=False)) as handle:
        if handle.size_bytes != file.geometry.file_size_bytes:
            raise CorruptError("index-size", expected=file.geometry.file_size_bytes)
        buffer = new_piece()
        for number in range(count):
            pieces[number] = (number, *extent_of(read_piece(handle, file, number, buffer)))
    return FileOutline(file, pieces)


def piece_count(file: IndexFile) -> int:
    """Returns how many pieces the entries of a file are."""
    return -(-(file.header.index_count - 1) // PIECE_ENTRIES)


def first_entry(number: int) -> int:
    """Returns the number of a piece's first entry in its file."""
    return 1 + number * PIECE_ENTRIES


def new_piece() -> npt.NDArray[np.uint8]:
    """Returns memory for a piece."""
    return np.empty(PIECE_ENTRIES * INDEX_ENTRY.size_bytes, np.uint8)


def read_piece(handle: OpenFile, file: IndexFile, number: int, buffer: npt.NDArray[np.uint8]) -> Entries:
    """Reads a piece.

    Args:
        handle: The open file.
        file: What is known of it.
        number: Which piece.
        buffer: Memory for it.

    Returns:
        ``(n,) INDEX_ENTRY.dtype``, valid until the buffer is used again; zeros beyond the end of the file.
    """
    first = first_entry(number)
    count = min(PIECE_ENTRIES, file.header.index_count - first)
    size = count * INDEX_ENTRY.size_bytes
    done = handle.read_into(buffer[:size].data, file.geometry.entries_at + first * INDEX_ENTRY.size_bytes)
    buffer[done:size] = 0
    return buffer[:size].view(INDEX_ENTRY.dtype)
