"""The entries of all index files, found by the place of their record; checks of the files themselves.

Entries lie in the order of the log, unless they are damaged; so each piece of a file is known by the least
and the greatest place in it, and only pieces that may hold a place are read. A file's hash table follows
from its entries: it is worked out anew, piece by piece, and compared.

Memory: the slots of one file, and one piece.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.errors import CorruptError
from seglog.storage.files import Files, OpenFile
from seglog.storage.findings import Finding
from seglog.storage.format.index import (
    INDEX_ENTRY,
    INDEX_HEADER,
    INDEX_SLOT,
    is_index_file_name,
)
from seglog.storage.format.names import INDEX
from seglog.storage.index_files import IndexFile, list_index_files

HELD: Final = np.dtype([("phy_offset", "i8"), ("key_hash", "i4"), ("time_diff_s", "i4"), ("begin_ms", "i8")])
"""An entry; ``begin_ms`` is that of its file, -1 for a file's first, whose time is told otherwise."""

HeldEntries = npt.NDArray[np.void]
_PIECE: Final = 1 << 15
_PER_BLOCK: Final = 1 << 18


@dataclass(slots=True)
class _Pieces:
    """What each piece of a file holds: ``(n,)`` least and greatest place."""

    file: IndexFile
    least: list[int] = field(default_factory=list)
    greatest: list[int] = field(default_factory=list)


class IndexEntries:
    """The index of a store. Any thread may ask it.

    Args:
        files: Where the store is.
        root: The store directory.
        is_closed: Whether its last writer closed it: else the newest entries may be half written.

    Attributes:
        findings: What is wrong with the files.
        entry_count: How many entries there are.
        newest_phy_offset: The greatest place of an entry, -1 without any.
    """

    def __init__(self, files: Files, root: Path, *, is_closed: bool) -> None:
        self._files = files
        listed, damaged = list_index_files(files, root)
        # RocketMQ makes a file for a key that it has.
        damaged += [file.path for file in listed if file.header.index_count <= 1]
        self.findings = [Finding("index-damaged", f"{INDEX}/{path.name}") for path in sorted(damaged)]
        self.findings += [
            Finding("index-file-stray", f"{INDEX}/{entry.name}", size_bytes=entry.size_bytes)
            for entry in files.list_dir(root / INDEX)
            if not entry.is_dir and not is_index_file_name(entry.name)
        ]
        self._files_in_order: list[_Pieces] = []
        self.entry_count = 0
        for file in listed:
            if file.header.index_count > 1:
                self._take(file, is_closed=is_closed)
        greatest = [place for pieces in self._files_in_order for place in pieces.greatest]
        self.newest_phy_offset = max(greatest, default=-1)

    @property
    def index_files(self) -> list[IndexFile]:
        """The files that can be read, in order."""
        return [pieces.file for pieces in self._files_in_order]

    def in_range(self, start: int, end: int) -> HeldEntries:
        """Returns the entries of records that start in ``[start, end)``, in the order of the files."""
        found = [np.empty(0, HELD)]
        for pieces in self._files_in_order:
            numbers = [
                number
                for number, (least, greatest) in enumerate(zip(pieces.least, pieces.greatest, strict=True))
                if least < end and greatest >= start
            ]
            if not numbers:
                continue
            try:
                handle = self._files.open(pieces.file.path, writable=False)
            except FileNotFoundError:  # retention took it while we looked
                continue
            try:
                for number in numbers:
                    held = _held(pieces.file, _read_piece(handle, pieces.file, number), number)
                    inside = (held["phy_offset"] >= start) & (held["phy_offset"] < end)
                    found.append(held[inside])
            finally:
                handle.close()
        return np.concatenate(found)

    def _take(self, file: IndexFile, *, is_closed: bool) -> None:
        handle = self._files.open(file.path, writable=False)
        try:
            if handle.size_bytes != file.geometry.file_size_bytes:
                raise CorruptError("index-size", expected=file.geometry.file_size_bytes)
            pieces = _Pieces(file)
            newest, wrong = _follow(handle, pieces)
            wrong += _wrong_slots(handle, file, newest, is_closed=is_closed)
        except CorruptError:
            self.findings.append(Finding("index-damaged", f"{INDEX}/{file.path.name}"))
            return
        finally:
            handle.close()
        self._files_in_order.append(pieces)
        self.entry_count += file.header.index_count - 1
        in_use = int(np.count_nonzero(newest))
        if is_closed and file.header.hash_slot_count != in_use:
            wrong.append((32, f"{in_use} slots in use", str(file.header.hash_slot_count)))
        if wrong:
            position, expected, found = wrong[0]
            self.findings.append(
                Finding(
                    "index-damaged",
                    f"{INDEX}/{file.path.name}",
                    position,
                    expected=expected,
                    found=found if len(wrong) == 1 else f"{found}, and {len(wrong) - 1} more",
                )
            )


_Wrong = list[tuple[int, str, str]]


def _follow(handle: OpenFile, pieces: _Pieces) -> tuple[npt.NDArray[np.int32], _Wrong]:
    """Works out the chains of a file; returns the newest entry of each slot, and entries that differ."""
    file = pieces.file
    slot_count = file.geometry.slot_count
    newest = np.zeros(slot_count, np.int32)
    wrong: _Wrong = []
    for number in range(_piece_count(file)):
        entries = _read_piece(handle, file, number)
        pieces.least.append(int(entries["phy_offset"].min()))
        pieces.greatest.append(int(entries["phy_offset"].max()))
        slots = entries["key_hash"].astype(np.int64) % slot_count
        order = np.argsort(slots, kind="stable")
        own = (1 + number * _PIECE + order).astype(np.int32)
        sorted_slots = slots[order]
        before = newest[sorted_slots]
        again = sorted_slots[1:] == sorted_slots[:-1]
        before[1:][again] = own[:-1][again]
        newest[sorted_slots] = own
        stated = entries["previous_entry"][order]
        for at in np.flatnonzero(stated != before)[:_MOST_WRONG].tolist():
            place = file.geometry.entries_at + INDEX_ENTRY.size_bytes * int(own[at])
            wrong.append((place + 16, f"previous entry {before[at]}", str(stated[at])))
    return newest, wrong


_MOST_WRONG: Final = 100


def _wrong_slots(
    handle: OpenFile, file: IndexFile, newest: npt.NDArray[np.int32], *, is_closed: bool
) -> _Wrong:
    wrong: _Wrong = []
    size = INDEX_SLOT.size_bytes
    for first in range(0, file.geometry.slot_count, _PER_BLOCK):
        count = min(_PER_BLOCK, file.geometry.slot_count - first)
        buffer = memoryview(bytearray(count * size))
        handle.read_into(buffer, INDEX_HEADER.size_bytes + first * size)
        stored = np.frombuffer(buffer, ">i4")
        differs = stored != newest[first : first + count]
        if not is_closed:
            differs &= stored < file.header.index_count  # the entry was put, the header not yet
        for at in np.flatnonzero(differs)[:_MOST_WRONG].tolist():
            place = INDEX_HEADER.size_bytes + (first + at) * size
            wrong.append((place, f"entry {newest[first + at]}", str(stored[at])))
    return wrong


def _piece_count(file: IndexFile) -> int:
    return -(-(file.header.index_count - 1) // _PIECE)


def _read_piece(handle: OpenFile, file: IndexFile, number: int) -> npt.NDArray[np.void]:
    first = 1 + number * _PIECE
    count = min(_PIECE, file.header.index_count - first)
    buffer = memoryview(bytearray(count * INDEX_ENTRY.size_bytes))
    handle.read_into(buffer, file.geometry.entries_at + first * INDEX_ENTRY.size_bytes)
    entries: npt.NDArray[np.void] = np.frombuffer(buffer, INDEX_ENTRY.dtype)
    return entries


def _held(file: IndexFile, entries: npt.NDArray[np.void], number: int) -> HeldEntries:
    held = np.empty(len(entries), HELD)
    for name in ("phy_offset", "key_hash", "time_diff_s"):
        held[name] = entries[name]
    held["begin_ms"] = file.header.begin_timestamp_ms
    if number == 0:
        held["begin_ms"][0] = -1
    return held
