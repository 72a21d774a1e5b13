"""Overwrites bytes of store files in place, and changes lengths of files; durable on return."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from seglog.storage.files.files import Files
from seglog.storage.format.names import COMMIT_LOG, segment_file_name


class Rewritten(NamedTuple):
    """The changed bytes of a record: from the first byte that differs to the last.

    Attributes:
        file: The file of the log, relative to the store.
        position_bytes: Position of the first changed byte in it.
        size_bytes: Number of bytes.
        words: A text with the old and the new bytes.
    """

    file: str
    position_bytes: int
    size_bytes: int
    words: str


def rewrite_record(
    files: Files, root: Path, segment_size_bytes: int, phy_offset: int, before: bytes, after: bytes
) -> Rewritten:
    """Writes the bytes of a record that differ.

    Args:
        files: The file layer of the store.
        root: The store directory.
        segment_size_bytes: Length of a file of the log.
        phy_offset: Physical offset of the record.
        before: Its bytes now; more may follow.
        after: Its new bytes, which must differ.
    """
    changed = [at for at, byte in enumerate(after) if byte != before[at]]
    first, end = changed[0], changed[-1] + 1
    start = phy_offset % segment_size_bytes
    name = f"{COMMIT_LOG}/{segment_file_name(phy_offset - start)}"
    write_over(files, root / name, start + first, after[first:end])
    words = f"0x{before[first:end].hex()} becomes 0x{after[first:end].hex()}"
    return Rewritten(name, start + first, end - first, words)


def write_over(files: Files, path: Path, position_bytes: int, data: bytes) -> None:
    """Overwrites bytes of an existing file."""
    with closing(files.open(path, writable=True)) as handle:
        handle.write_at(data, position_bytes)
        handle.sync()


def resize(files: Files, path: Path, size_bytes: int) -> None:
    """Changes the length of an existing file; added bytes are zeros."""
    with closing(files.open(path, writable=True)) as handle:
        handle.set_size(size_bytes)
        handle.sync()
