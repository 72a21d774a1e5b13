"""The hash table of an index file, which follows from its entries: worked out anew and compared.

Memory: the slots of one file, and one piece.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.directory.index_files import IndexFile
from seglog.storage.files.files import Files, OpenFile
from seglog.storage.findings.findings import Finding
from seglog.storage.format.index.index import INDEX_ENTRY, INDEX_HEADER, INDEX_SLOT
from seglog.storage.format.names import INDEX
from seglog.storage.index_check.index_outline import first_entry, new_piece, piece_count, read_piece
from seglog.storage.kernels.index_entries import MOST_WRONG, follow

_PER_BLOCK: Final = 1 << 18
_SLOTS_IN_USE_AT: Final = INDEX_HEADER.offsets["hash_slot_count"]
_PREVIOUS_AT: Final = INDEX_ENTRY.offsets["previous_entry"]

_Wrong = list[tuple[int, str, str]]


def chain_finding(files: Files, file: IndexFile, *, is_closed: bool) -> Finding | None:
    """Returns what is wrong with the chains of a file, None if nothing is.

    Args:
        files: Where it is.
        file: The file, in its full length, with one entry or more.
        is_closed: Whether its last writer closed it: else the newest entries may be half written.
    """
    try:
        handle = files.open(file.path, writable=False)
    except FileNotFoundError:  # retention took it while we looked
        return None
    try:
        newest, wrong = _follow(handle, file)
        wrong += _wrong_slots(handle, file, newest, is_closed=is_closed)
    finally:
        handle.close()
    in_use = int(np.count_nonzero(newest))
    if is_closed and file.header.hash_slot_count != in_use:
        wrong.append((_SLOTS_IN_USE_AT, f"{in_use} slots in use", str(file.header.hash_slot_count)))
    if not wrong:
        return None
    position, expected, found = wrong[0]
    return Finding(
        "index-damaged",
        f"{INDEX}/{file.path.name}",
        position,
        expected=expected,
        found=found if len(wrong) == 1 else f"{found}, and {len(wrong) - 1} more",
    )


def _follow(handle: OpenFile, file: IndexFile) -> tuple[npt.NDArray[np.int32], _Wrong]:
    """Returns the newest entry of each slot, and entries that name another one before them."""
    newest = np.zeros(file.geometry.slot_count, np.int32)
    wrong: _Wrong = []
    buffer = new_piece()
    for number in range(piece_count(file)):
        entries = read_piece(handle, file, number, buffer)
        first = first_entry(number)
        for entry, previous in follow(entries, first, newest):
            place = file.geometry.entries_at + INDEX_ENTRY.size_bytes * entry
            stated = str(entries["previous_entry"][entry - first])
            wrong.append((place + _PREVIOUS_AT, f"previous entry {previous}", stated))
    return newest, wrong


def _wrong_slots(
    handle: OpenFile, file: IndexFile, newest: npt.NDArray[np.int32], *, is_closed: bool
) -> _Wrong:
    wrong: _Wrong = []
    size = INDEX_SLOT.size_bytes
    slots = np.zeros(min(_PER_BLOCK, file.geometry.slot_count), INDEX_SLOT.dtype)
    for first in range(0, file.geometry.slot_count, _PER_BLOCK):
        count = min(_PER_BLOCK, file.geometry.slot_count - first)
        handle.read_into(slots[:count].data.cast("B"), INDEX_HEADER.size_bytes + first * size)
        stored = slots["newest_entry"][:count]
        differs = stored != newest[first : first + count]
        if not is_closed:
            differs &= stored < file.header.index_count  # the entry was put, the header not yet
        for at in np.flatnonzero(differs)[:MOST_WRONG].tolist():
            place = INDEX_HEADER.size_bytes + (first + at) * size
            wrong.append((place, f"entry {newest[first + at]}", str(stored[at])))
    return wrong
