"""Files of a store whose log reads as if some mends were written; nothing is written.

A record with a wrong queue causes findings about other files: its right queue lacks the record, and another
queue has no unit for it. A survey of these files has no such findings, as an opening for writing has none
after the mend.
"""

from __future__ import annotations

import errno
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from typing_extensions import override

from seglog.errors import ReadOnlyError
from seglog.storage.certain_mends.mend import Mend
from seglog.storage.directory.misnamed import Misnamed, PlacedFiles
from seglog.storage.files.files import Files, OpenFile
from seglog.storage.format.names import segment_file_name


class MendedFiles(PlacedFiles):
    """A store with mends.

    Args:
        files: The file layer of the store.
        root: The store directory.
        segment_size_bytes: Length of the log's files.
        mends: The mends to show.
    """

    def __init__(self, files: Files, root: Path, segment_size_bytes: int, mends: Sequence[Mend]) -> None:
        super().__init__(files, root, Misnamed())
        self._mended: defaultdict[str, list[tuple[int, bytes]]] = defaultdict(list)
        for mend in mends:
            position = mend.phy_offset % segment_size_bytes
            self._mended[segment_file_name(mend.phy_offset - position)].append((position, mend.after))

    @override
    def open(self, path: Path, *, writable: bool) -> OpenFile:
        """Opens a file for reading."""
        handle = super().open(path, writable=writable)
        if path.parent != self._folder or path.name not in self._mended:
            return handle
        return _MendedFile(handle, path, self._mended[path.name])


class _MendedFile:
    """A file of the log, for reading; it cannot be mapped, because a map would not have the mends."""

    descriptor = -1

    def __init__(self, handle: OpenFile, path: Path, mended: Sequence[tuple[int, bytes]]) -> None:
        self._handle = handle
        self._path = path
        self._mended = mended

    @property
    def size_bytes(self) -> int:
        return self._handle.size_bytes

    def read_into(self, buffer: memoryview, position: int) -> int:
        count = self._handle.read_into(buffer, position)
        for at, record in self._mended:
            start, end = max(at, position), min(at + len(record), position + count)
            if start < end:
                buffer[start - position : end - position] = record[start - at : end - at]
        return count

    def next_data(self, position: int) -> int | None:
        return self._handle.next_data(position)

    def map(self) -> memoryview:
        raise OSError(errno.ENODEV, "mends are not in the file", str(self._path))

    def write_at(self, _data: bytes | bytearray | memoryview, _position: int) -> None:
        raise self._refusal()

    def set_size(self, _size_bytes: int) -> None:
        raise self._refusal()

    def reserve(self, _position: int, _size_bytes: int) -> None:
        raise self._refusal()

    def sync(self) -> None:
        raise self._refusal()

    def close(self) -> None:
        self._handle.close()

    def _refusal(self) -> ReadOnlyError:
        return ReadOnlyError(f"{self._path} is open for reading")
