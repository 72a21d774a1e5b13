"""Reads a store without opening it, and records of its log by their place.

A dump reads one queue at a time, so its records are scattered over the log. Records that are close together
are read with one call, because a read for each message is what makes a dump slow.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.cli.ui import options, render
from seglog.errors import NotFoundError
from seglog.storage.certain_mends import certain_mends, withhold
from seglog.storage.directory import (
    NOTHING_KNOWN,
    FileSizes,
    LogReader,
    RocksTable,
    as_stated,
    check_is_store,
    find_rocksdb,
    no_store,
    not_read_text,
)
from seglog.storage.files import Files, StoreRoot
from seglog.storage.format.names import COMMIT_LOG
from seglog.storage.index_check import check_index
from seglog.storage.store import MessageStore
from seglog.storage.survey import (
    Survey,
    leave_front,
    look_again,
    start_now,
    survey,
    survey_moving,
    survey_written,
)

_MAX_GAP_BYTES: Final = 4096
_MAX_READ_BYTES: Final = 1 << 20
_DISK_BLOCK_BYTES: Final = 512
_ADDRESS: Final = re.compile(r"[^/\\]+:[0-9]{1,5}")


def check_store(path: Path) -> None:
    """Refuses a path that is not a store.

    Raises:
        NotFoundError: There is nothing at the path.
        NotAStoreError: The path is not a store.
        UnsupportedStoreError: A store of another kind.
    """
    if not check_is_store(options.reading(path), path):
        raise _not_there(path)


def say_not_read(path: Path, *tables: RocksTable, as_json: bool) -> None:
    """Prints which of the tables of a store the broker keeps in RocksDB: they were not looked at."""
    text = not_read_text(find_rocksdb(options.reading(path), path), *tables)
    if text and as_json:
        render.emit({"kind": "unseen", "what": text})
    elif text:
        render.say(f"not looked at: {text}")


def make_store(path: Path) -> None:
    """Creates a store if there is nothing or an empty folder, as ``put`` does.

    Raises:
        NotFoundError: The path is an address.
        NotAStoreError: The path has other contents.
        UnsupportedStoreError: A store of another kind.
    """
    if check_is_store(options.reading(path), path, makes=True):
        return
    if _ADDRESS.fullmatch(str(path)):
        raise _not_there(path)
    MessageStore.open(path, follow=options.followed(path)).close()


def _not_there(path: Path) -> NotFoundError:
    if _ADDRESS.fullmatch(str(path)):
        return NotFoundError(
            f"there is no store at {path}",
            help=f"STORE is a folder; a broker that serves is asked and changed with mqadmin: -b {path}",
        )
    return no_store(path)


def survey_store(path: Path, *, verify: bool, given: FileSizes = NOTHING_KNOWN) -> Survey:
    """Returns the survey of a store; shows progress if it takes long.

    Args:
        path: The store directory.
        verify: Whether to check everything: checksums, and index and checkpoint against the log.
        given: Lengths of files that the caller knows.

    Raises:
        SeglogError: There is no store, or it cannot be read.
    """
    with render.progress("reading the log") as tell:
        files = options.reading(path)

        def tell_of_data(done: int, total: int) -> None:
            folders = (COMMIT_LOG, *files.log_folders)
            tell(done, min(total, sum(allocated_bytes(files, path / folder) for folder in folders)))

        placed = look_again(lambda: as_stated(files, path))

        def look(seen: Files) -> Survey:
            found = survey(path, seen, verify=verify, progress=tell_of_data, given=given)
            if verify:
                found.findings += check_index(found, seen, is_live=files.lock_holder() is not None)
            return found

        look_at = survey_moving if files.lock_holder() is None else survey_written
        found = look_at(lambda: look(placed), path, placed)
        with suppress(FileNotFoundError):  # a writer removed a file meanwhile: then nothing is damaged
            found = withhold(found, certain_mends(found, placed), placed, look)
    leave_front(found, start_now(found, path, placed))
    found.findings += files.findings
    return found


def log_as_stated(path: Path) -> Files:
    """Returns the files of a store; log files have the names that their records state."""
    return as_stated(options.reading(path), path)


def allocated_bytes(files: StoreRoot, folder: Path) -> int:
    """Returns the bytes on the disk of the files in a folder and its subfolders; holes take no space."""
    return sum(blocks for blocks, _length in file_sizes(files, folder))


def disk_bytes(files: StoreRoot, file: Path) -> int:
    """Returns the bytes on the disk of a file, 0 if the file no longer exists."""
    try:
        return files.status(file).st_blocks * _DISK_BLOCK_BYTES
    except FileNotFoundError:  # the owner of the store removed it meanwhile
        return 0


def file_sizes(files: StoreRoot, folder: Path, *, own: bool = False) -> Iterator[tuple[int, int]]:
    """Yields bytes on the disk and length of every file in a folder and its subfolders, or of one file.

    Args:
        files: Access to the store.
        folder: The folder or file.
        own: Whether to leave out files that have other hard links.
    """
    try:
        seen = [(folder, files.status(folder))]
    except FileNotFoundError:  # the owner of the store removed it meanwhile
        return
    while seen:
        path, status = seen.pop()
        if stat.S_ISREG(status.st_mode) and not (own and status.st_nlink > 1):
            yield status.st_blocks * _DISK_BLOCK_BYTES, status.st_size
        elif stat.S_ISDIR(status.st_mode):
            seen += [(path / name, status) for name, status in files.scan(path)]


def iter_records(
    reader: LogReader,
    phy_offsets: npt.NDArray[np.integer],
    sizes: npt.NDArray[np.integer],
    segment_size_bytes: int,
) -> Iterator[memoryview]:
    """Yields the bytes at each place, in the given order; fewer than requested if a file ends early.

    Args:
        reader: The log.
        phy_offsets: ``(n,)``, starts of records.
        sizes: ``(n,)``, their sizes in bytes.
        segment_size_bytes: Length of a commit-log file; no read crosses its end.
    """
    starts = phy_offsets.astype(np.int64)
    ends = starts + sizes
    apart = (
        (starts[1:] < ends[:-1])
        | (starts[1:] - ends[:-1] > _MAX_GAP_BYTES)
        | (starts[1:] // segment_size_bytes != starts[:-1] // segment_size_bytes)
    )
    edges = [0, *(np.flatnonzero(apart) + 1).tolist(), len(starts)]
    for first, last in pairwise(edges):
        yield from _near(reader, starts[first:last].tolist(), ends[first:last].tolist())


def _near(reader: LogReader, starts: list[int], ends: list[int]) -> Iterator[memoryview]:
    """Yields records that are close together in one segment, window by window."""
    index = 0
    while index < len(starts):
        base = starts[index]
        last = index
        while last + 1 < len(starts) and ends[last + 1] - base <= _MAX_READ_BYTES:
            last += 1
        window = reader.read(base, ends[last] - base)
        for start, end in zip(starts[index : last + 1], ends[index : last + 1], strict=True):
            yield window[start - base : end - base]
        index = last + 1
