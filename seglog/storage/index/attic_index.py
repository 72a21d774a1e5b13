"""Index files that openings removed: they are in the attic while they prove anything.

An index file may prove which keys a record without record CRC had before a bit of them was flipped. So a
removed file stays in the attic while it has entries that the index does not have any more. A file that is not
consistent proves nothing; only the last of these are kept, for people to look at.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from seglog.storage.directory.index_files import Entries, IndexFile, Numbers, read_entries, understood
from seglog.storage.files.files import Files
from seglog.storage.format.index.index import is_index_file_name
from seglog.storage.format.names import INDEX
from seglog.storage.small_files.attic import ATTIC, Attic, whole_files

_DIGITS: Final = 10
_PIECE_ENTRIES: Final = 1 << 16
_MAX_TIMES: Final = 4
"""A file with more entries per record than this is garbage."""


def removed_files(files: Files, root: Path) -> dict[int, list[IndexFile]]:
    """Returns the index files that openings removed, by generation; only those that can be decoded."""
    found: defaultdict[int, list[IndexFile]] = defaultdict(list)
    for file in understood(files, _listed(files, root))[0]:
        found[int(file.path.name[:_DIGITS])].append(file)
    return found


def as_found(current: Sequence[IndexFile], removed: Sequence[IndexFile]) -> list[IndexFile]:
    """Returns the index that an opening found: the files that it kept, then those that it removed."""
    begin = removed[0].header.begin_phy_offset
    return [*(file for file in current if file.header.end_phy_offset <= begin), *removed]


def keep_removed(
    files: Files,
    root: Path,
    removed: Sequence[Path],
    is_whole: Callable[[IndexFile], bool],
    has_record: Callable[[Numbers], bool],
) -> None:
    """Moves index files to the attic, and deletes older ones there that prove nothing more.

    Args:
        files: The file layer of the store.
        root: The store directory.
        removed: The files.
        is_whole: Returns whether a file is consistent.
        has_record: Returns whether a record starts at any of some physical offsets.
    """
    before = _listed(files, root)
    with Attic(files, root) as attic:
        for path in removed:
            attic.keep_file(path)
    if not before:
        return
    listed = [(root / INDEX / entry.name, entry.size_bytes) for entry in files.list_dir(root / INDEX)]
    known = {path for path, _size in before}
    listed += [(path, size) for path, size in _listed(files, root) if path not in known]
    now, _damaged = understood(files, listed)
    telling = {
        file.path
        for file in understood(files, before)[0]
        if is_whole(file) and says_otherwise(files, file, now, has_record)
    }
    if removable := known - telling:
        for path in removable:
            files.remove(path)
        # A power failure must not bring one back: its entries could lead to records that are written later.
        files.sync_dir(root / ATTIC)


def says_otherwise(
    files: Files, older: IndexFile, now: Sequence[IndexFile], has_record: Callable[[Numbers], bool]
) -> bool:
    """Returns whether a file has other keys for a record than the present files have.

    Args:
        files: The file layer of the store.
        older: The file.
        now: The present files, in order.
        has_record: Returns whether a record starts at any of some places: entries for other places prove
            nothing.
    """
    for first in range(1, older.header.index_count, _PIECE_ENTRIES):
        numbers = range(first, min(first + _PIECE_ENTRIES, older.header.index_count))
        entries = read_entries(files, older, numbers)
        low, high = int(entries["phy_offset"].min()), int(entries["phy_offset"].max())
        there = [_between(files, file, low, high) for file in now]
        left = np.setdiff1d(_pairs(entries), _pairs(np.concatenate([entries[:0], *there])))
        if len(left) and has_record(np.unique(left["phy_offset"])):
            return True
    return False


def _listed(files: Files, root: Path) -> list[tuple[Path, int]]:
    paths = [root / name for name in whole_files(files, root, INDEX)]
    sizes = {entry.name: entry.size_bytes for entry in files.list_dir(paths[0].parent)} if paths else {}
    named = (path for path in paths if is_index_file_name(path.name.rpartition("-")[2]))
    return [(path, sizes[path.name]) for path in sorted(named)]


def _between(files: Files, file: IndexFile, low: int, high: int) -> Entries:
    """Returns the entries of a file for a stretch of the log, if they are in log order."""
    numbers = range(1, file.header.index_count)

    def place(number: int) -> int:
        return int(read_entries(files, file, range(number, number + 1))["phy_offset"][0])

    start = bisect_left(numbers, low, key=place)
    end = bisect_left(numbers, high + 1, key=place)
    return read_entries(files, file, numbers[start : min(end, start + _MAX_TIMES * _PIECE_ENTRIES)])


def _pairs(entries: Entries) -> Entries:
    pairs = np.empty(len(entries), np.dtype([("phy_offset", "i8"), ("key_hash", "i4")]))
    for name in ("phy_offset", "key_hash"):
        pairs[name] = entries[name]
    return pairs
