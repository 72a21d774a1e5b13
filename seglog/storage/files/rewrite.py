"""Bytes of a file of the store written over in place, and files given another length, on the disk at once."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from seglog.storage.files.files import Files
from seglog.storage.format.names import COMMIT_LOG, segment_file_name


class Rewritten(NamedTuple):
    """What was changed of a record: from the first byte that differs to the last.

    Attributes:
        file: The file of the log, relative to the store.
        position_bytes: Where in it.
        size_bytes: How many bytes.
        words: What they were and what they are now.
    """

    file: str
    position_bytes: int
    size_bytes: int
    words: str


def rewrite_record(
    files: Files, root: Path, segment_size_bytes: int, phy_offset: int, before: bytes, after: bytes
) -> Rewritten:
    """Writes what differs of a record.

    Args:
        files: Where the store is.
        root: The store directory.
        segment_size_bytes: Length of a file of the log.
        phy_offset: Where the record starts.
        before: Its bytes as they are; more may follow.
        after: Its bytes as they are to be, not the same.
    """
    changed = [at for at, byte in enumerate(after) if byte != before[at]]
    first, end = changed[0], changed[-1] + 1
    start = phy_offset % segment_size_bytes
    name = f"{COMMIT_LOG}/{segment_file_name(phy_offset - start)}"
    write_over(files, root / name, start + first, after[first:end])
    words = f"0x{before[first:end].hex()} becomes 0x{after[first:end].hex()}"
    return Rewritten(name, start + first, end - first, words)


def write_over(files: Files, path: Path, position_bytes: int, data: bytes) -> None:
    """Writes bytes of a file that is there."""
    with closing(files.open(path, writable=True)) as handle:
        handle.write_at(data, position_bytes)
        handle.sync()


def resize(files: Files, path: Path, size_bytes: int) -> None:
    """Gives a file that is there another length; what is new are zeros."""
    with closing(files.open(path, writable=True)) as handle:
        handle.set_size(size_bytes)
        handle.sync()
