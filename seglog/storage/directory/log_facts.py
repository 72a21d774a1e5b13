"""What a commit-log file states: where it belongs in the log, and how long it was made.

Each record states its own place, and a file that is full ends with a filler that states how many bytes are
left. Both hold under any name of the file, and for any part of it that is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from seglog.errors import FileKindError
from seglog.storage.directory.file_facts import FileFacts
from seglog.storage.directory.geometry import MAX_SEGMENT_BYTES
from seglog.storage.directory.log_files import LogFile, has_data
from seglog.storage.directory.queue_files import data_end
from seglog.storage.files.files import Files, OpenFile, read_part
from seglog.storage.format.layout import I64
from seglog.storage.format.names import COMMIT_LOG, parse_segment_file_name, segment_file_name
from seglog.storage.format.record.record import (
    FILLER,
    FILLER_BYTES,
    HEAD_V4,
    MAGIC_AT,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    MIN_RECORD_BYTES,
    PHY_OFFSET_AT,
    RECORD_MAGIC,
    Damage,
    RecordRow,
    examine,
)
from seglog.storage.kernels.walk import next_record

_SEARCH_STEP_BYTES: Final = 4 << 20
_TAIL_WINDOWS_BYTES: Final = (4 << 10, 64 << 10, 1 << 20, 16 << 20)
_SEARCH_BYTES: Final = 16 << 20
"""How much of a file whose first record is damaged is searched for another one."""
MOST_RECORD_BYTES: Final = 8 << 20
"""Longer than any record with the default limits."""
_ENOUGH: Final = 8
"""So many records say where a file belongs."""
_WITNESSES: Final = 2
_MAGICS: Final = (MAGIC_V1, MAGIC_V2)


def read_log_facts(files: Files, root: Path, file: LogFile) -> FileFacts:
    """Returns what a file says, as far as it can be read."""
    handle = _open(files, root, segment_file_name(file.first_offset))
    if handle is None:
        return FileFacts(file.first_offset, file.size_bytes)
    with closing(handle):
        place = _place(handle, file.first_offset)
        first = file.first_offset if place is None else place
        needed, exact = _tail(handle, first)
    return FileFacts(first, file.size_bytes, place is not None, needed, exact)


def stated_place(files: Files, root: Path, name: str, folder: str = COMMIT_LOG) -> int | None:
    """Returns where the records of a file say that it belongs; None if it has none that says so.

    Args:
        files: Where the store is.
        root: The store directory.
        name: Of a file in the folder. If a log file can have it, a record that agrees with it is believed
            first.
        folder: The folder, relative to the store.
    """
    handle = _open(files, root, name, folder)
    if handle is None:
        return None
    with closing(handle):
        return _place(handle, parse_segment_file_name(name))


def record_times(
    files: Files, root: Path, name: str, place: int, folder: str = COMMIT_LOG
) -> tuple[int, int] | None:
    """Returns the store times of the first and the last record of a file; None if it has none.

    Args:
        files: Where the store is.
        root: The store directory.
        name: Of a file in the folder.
        place: Where its records say that it belongs.
        folder: The folder, relative to the store.
    """
    handle = _open(files, root, name, folder)
    if handle is None:
        return None
    with closing(handle):
        newest = _newest(handle, place)
        for position, window in _windows(handle):
            at = next_record(window, place + position, 0, len(window))
            row = None if at is None else examine(window, at, place + position + at)
            if isinstance(row, RecordRow) and newest is not None:
                return row.store_timestamp_ms, newest[1]
    return None


def disproves(files: Files, root: Path, first_offset: int, records: Iterable[tuple[int, int]]) -> bool:
    """Returns whether no record of a file is where others have them, although the file has bytes there.

    Where it has zeros it says nothing: they may have been written over a record.

    Args:
        files: Where the store is.
        root: The store directory.
        first_offset: Physical offset of the first byte of the file.
        records: Where records are said to start and end; those that are not in the file do not count.
    """
    handle = _open(files, root, segment_file_name(first_offset))
    if handle is None:
        return False
    is_other = False
    with closing(handle):
        for start, end in records:
            if start < first_offset:
                continue
            head = read_part(handle, start - first_offset, HEAD_V4.size_bytes)
            if len(head) < HEAD_V4.size_bytes or not any(head):
                continue
            size_bytes, magic = FILLER.struct.unpack_from(head)
            if magic in _MAGICS and size_bytes == end - start and _own(head, 0) == start:
                return False
            is_other = True
    return is_other


def has_bytes(files: Files, root: Path, name: str, folder: str) -> bool:
    """Returns whether the start of a file holds anything but zeros; True if it cannot be read."""
    handle = _open(files, root, name, folder)
    if handle is None:
        return True
    with closing(handle):
        return has_data(read_part(handle, 0, HEAD_V4.size_bytes))


def _open(files: Files, root: Path, name: str, folder: str = COMMIT_LOG) -> OpenFile | None:
    try:
        return files.open(root / folder / name, writable=False)
    except (OSError, FileKindError):
        return None  # gone meanwhile, or not to be read: it says nothing


def _place(handle: OpenFile, named: int | None) -> int | None:
    head = read_part(handle, 0, HEAD_V4.size_bytes)
    if len(head) < HEAD_V4.size_bytes:
        return None
    (size, magic), own = FILLER.struct.unpack_from(head), _own(head, 0)
    if magic in _MAGICS:
        if own == named:
            return named
        if MIN_RECORD_BYTES <= size <= MOST_RECORD_BYTES and own >= 0:
            record = read_part(handle, 0, size)
            if not isinstance(examine(record, 0, own), Damage):
                return own if _is_meant(handle, own, named, size) else named
    return _vote(handle, named)


def _is_meant(handle: OpenFile, own: int, named: int | None, size: int) -> bool:
    """Returns whether the first record of a file is where it says, and not one with a flipped bit."""
    head = read_part(handle, size, HEAD_V4.size_bytes)
    if len(head) == HEAD_V4.size_bytes and FILLER.struct.unpack_from(head)[1] in _MAGICS:
        following = _own(head, 0)
        if following == own + size:
            return True
        if named is not None and following == named + size:
            return False
    return named is None or (own ^ named).bit_count() != 1


def _own(buffer: memoryview, at: int) -> int:
    own: int = I64.unpack_from(buffer, at + PHY_OFFSET_AT)[0]
    return own


def _vote(handle: OpenFile, named: int | None) -> int | None:
    """Returns where the first records of a file say that it belongs, if it does not begin with one.

    One that fits the name is enough. For another place two must agree: sectors may have changed places, and
    a message may hold a record.
    """
    votes: Counter[int] = Counter()
    for position, window in _windows(handle):
        behind = 0
        for found in RECORD_MAGIC.finditer(window):
            at = found.start() - MAGIC_AT
            if at < behind or len(window) - at < MIN_RECORD_BYTES:
                continue
            own = _own(window, at)
            row = examine(window, at, own)
            if not isinstance(row, Damage) and own >= position + at:
                votes[own - position - at] += 1
                behind = at + row.size_bytes  # what is in a body says nothing
            if named is not None and votes[named]:
                return named
            if votes.total() == _ENOUGH:
                break
    place = max(votes, key=lambda place: votes[place], default=None)
    return place if place is not None and votes[place] >= _WITNESSES else None


def _windows(handle: OpenFile) -> Iterator[tuple[int, memoryview]]:
    at = handle.next_data(0)
    read = 0
    while at is not None and at < handle.size_bytes and read < _SEARCH_BYTES:
        yield at, read_part(handle, at, _SEARCH_STEP_BYTES + MOST_RECORD_BYTES)
        read += _SEARCH_STEP_BYTES
        at = handle.next_data(at + _SEARCH_STEP_BYTES)


def _tail(handle: OpenFile, first_offset: int) -> tuple[int, int | None]:
    """Returns how long the file must be at least by its last record, and how long by a filler behind it."""
    newest = _newest(handle, first_offset)
    return _behind(handle, first_offset, 0 if newest is None else newest[0])


def _newest(handle: OpenFile, first_offset: int) -> tuple[int, int] | None:
    """Returns where in a file its last record ends, and its store time; None if none is found."""
    end = data_end(handle, 1)  # space that was reserved ahead is zeros, up to 256 MiB of them
    for size in _TAIL_WINDOWS_BYTES:
        start = max(0, end - size)
        window = read_part(handle, start, end - start + MIN_RECORD_BYTES)
        last = _last_record(window, first_offset + start)
        if last is not None:
            return start + last[0], last[1]
        if not start:
            break
    return None


def _last_record(window: memoryview, phy_offset: int) -> tuple[int, int] | None:
    last: tuple[int, int] | None = None
    at = next_record(window, phy_offset, 0, len(window))
    while at is not None:
        row = examine(window, at, phy_offset + at)
        if isinstance(row, Damage):
            break
        end = at + row.size_bytes
        last = end, row.store_timestamp_ms
        at = next_record(window, phy_offset, end, len(window))
    return last


def _behind(handle: OpenFile, first_offset: int, position: int) -> tuple[int, int | None]:
    """Returns what the bytes behind the last whole record say of the length of the file."""
    needed = position + FILLER_BYTES if position else 0
    head = read_part(handle, position, HEAD_V4.size_bytes)
    if len(head) < FILLER_BYTES:
        return needed, None
    size, magic = FILLER.struct.unpack_from(head)
    if magic == MAGIC_BLANK and size >= FILLER_BYTES and position + size <= MAX_SEGMENT_BYTES:
        return position + size, position + size
    is_head = (
        magic in _MAGICS and len(head) == HEAD_V4.size_bytes and _own(head, 0) == first_offset + position
    )
    if is_head and MIN_RECORD_BYTES <= size <= MOST_RECORD_BYTES:
        return position + size + FILLER_BYTES, None  # a record that is cut, or damaged
    return needed, None
