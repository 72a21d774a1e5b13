"""The hash table of an index file, which follows from its entries: worked out again and compared.

Memory: the slots of one file, and one piece.
"""

from __future__ import annotations

from contextlib import closing
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.directory.index_files import IndexFile, entry_at
from seglog.storage.directory.log_files import has_data
from seglog.storage.files.files import Files, OpenFile
from seglog.storage.findings.findings import Finding
from seglog.storage.format.index.index import INDEX_ENTRY, INDEX_HEADER, INDEX_SLOT
from seglog.storage.format.names import INDEX
from seglog.storage.index_check.index_outline import first_entry, new_piece, piece_count, read_piece
from seglog.storage.kernels.index_entries import MOST_WRONG, follow

_PER_BLOCK: Final = 1 << 16
_MOST_POSITIVE: Final = 0x7F
"""The greatest first byte of a number that is not negative."""

_SLOTS_IN_USE_AT: Final = INDEX_HEADER.offsets["hash_slot_count"]
_HASH_AT: Final = INDEX_ENTRY.offsets["key_hash"]
_PREVIOUS_AT: Final = INDEX_ENTRY.offsets["previous_entry"]

_Wrong = list[tuple[int, str, str]]


def is_whole(files: Files, file: IndexFile) -> bool:
    """Returns whether the chains of a file are whole; one that is not full may have half-written entries."""
    return chain_finding(files, file, is_closed=file.is_full) is None


def chain_finding(files: Files, file: IndexFile, *, is_closed: bool) -> Finding | None:
    """Returns what is wrong with the chains of a file, None if nothing is.

    Args:
        files: Where it is.
        file: The file.
        is_closed: Whether its last writer closed it: else the newest entries may be half written.
    """
    try:
        handle = files.open(file.path, writable=False)
    except FileNotFoundError:  # retention took it while we looked
        return None
    with closing(handle):
        if handle.size_bytes != file.geometry.file_size_bytes:
            return Finding("index-damaged", f"{INDEX}/{file.path.name}")
        newest, wrong, no_hashes = _follow(handle, file)
        wrong_slots, in_use = _compare_slots(handle, file, newest, is_closed=is_closed)
    wrong += wrong_slots
    if is_closed and file.header.hash_slot_count != in_use:
        wrong.append((_SLOTS_IN_USE_AT, f"{in_use} slots in use", str(file.header.hash_slot_count)))
    wrong = wrong or no_hashes  # which lead to other slots, so that chains hardly ever are whole beside them
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


def _follow(handle: OpenFile, file: IndexFile) -> tuple[npt.NDArray[np.int32], _Wrong, _Wrong]:
    """Returns the newest entry of each slot, entries with a wrong predecessor, and entries without a hash."""
    newest = np.zeros(file.geometry.slot_count, np.int32)
    wrong: _Wrong = []
    no_hashes: _Wrong = []
    buffer = new_piece()
    for number in range(piece_count(file)):
        entries = read_piece(handle, file, number, buffer)
        first = first_entry(number)
        # Whole numbers in the byte order of the file would be converted one by one to be compared.
        first_bytes = entries.view(np.uint8)[_HASH_AT :: INDEX_ENTRY.size_bytes]
        for at in np.flatnonzero(first_bytes > _MOST_POSITIVE).tolist():
            stated = str(entries["key_hash"][at])
            no_hashes.append((entry_at(file, first + at), "a hash of 0 or more", stated))
        for entry, previous in follow(entries, first, newest):
            stated = str(entries["previous_entry"][entry - first])
            wrong.append((entry_at(file, entry) + _PREVIOUS_AT, f"previous entry {previous}", stated))
    return newest, wrong, no_hashes


def _compare_slots(
    handle: OpenFile, file: IndexFile, newest: npt.NDArray[np.int32], *, is_closed: bool
) -> tuple[_Wrong, int]:
    """Returns slots that lead to another entry than their newest one, and how many have one."""
    wrong: _Wrong = []
    in_use = 0
    stored = np.empty(_PER_BLOCK, INDEX_SLOT.dtype["newest_entry"])
    for first in range(0, file.geometry.slot_count, _PER_BLOCK):
        wanted = newest[first : first + _PER_BLOCK]
        at = INDEX_HEADER.size_bytes + first * INDEX_SLOT.size_bytes
        if has_data(wanted.data.cast("B")):
            in_use += int(np.count_nonzero(wanted))
        elif (data_at := handle.next_data(at)) is None or data_at >= at + wanted.nbytes:
            continue  # hardly any slot of a new file was ever written
        here = stored[: len(wanted)]
        read_bytes = handle.read_into(here.view(np.uint8).data, at)
        here.view(np.uint8)[read_bytes:] = 0
        if here.tobytes() == wanted.astype(here.dtype).tobytes():
            continue
        differs = here != wanted
        if not is_closed:
            differs &= here < file.header.index_count  # the entry was put, the header not yet
        for number in np.flatnonzero(differs)[:MOST_WRONG].tolist():
            place = at + number * INDEX_SLOT.size_bytes
            wrong.append((place, f"entry {wanted[number]}", str(here[number])))
    return wrong, in_use
