"""Compares a segment on the disk with the bytes that were verified before they were written.

The audit of a new store does not read its log again. So every byte is compared here with the CRC-32 of the
memory that was verified. This finds a buffer that was written too early or twice, a write to a wrong place,
and a disk that returns other bytes, before the new store can replace the old one.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from seglog.errors import CorruptError, TruncatedError
from seglog.storage.files import DirectReader, OpenFile
from seglog.storage.kernels.record_moves import crc32

NOT_AS_WRITTEN: Final = "not-as-written"
_HELP: Final = (
    "the old store is as it was: look for errors of the disk in the system's log, and compact again"
)


class WrittenBytes:
    """Checksums of the bytes that are written to a file, from its start on. One thread at a time.

    Attributes:
        crc: CRC-32 of all bytes.
        size_bytes: Number of bytes.
    """

    def __init__(self) -> None:
        self._pieces: list[tuple[int, int]] = []  # the end of each piece, and the CRC of all bytes up to it
        self.crc = 0
        self.size_bytes = 0

    def note(self, data: memoryview) -> None:
        """Adds the next bytes; called before they are verified, so that a change in between is found."""
        self.crc = crc32(data, self.crc)
        self.size_bytes += len(data)
        self._pieces.append((self.size_bytes, self.crc))

    def check(self, file: OpenFile, name: str, ending: bytes) -> None:
        """Returns if a file holds these bytes, an ending, and zeros up to its length, on the disk.

        Args:
            file: The file, synced.
            name: Name of the file in errors.
            ending: The bytes after the sums' bytes.

        Raises:
            CorruptError: It does not; the error names the piece, of some MiB at most, and its expected
                checksum.
            TruncatedError: The file ends before.
            OSError: The file cannot be read.
        """
        with DirectReader(file) as reader:
            self._check_pieces(reader, name)
            self._check_ending(reader, name, ending)
            _check_zeros(reader, file, name, self.size_bytes + len(ending))

    def _check_pieces(self, reader: DirectReader, name: str) -> None:
        crc = begin = position = 0
        found = memoryview(b"")
        for end, expected in self._pieces:
            while position < end:
                found = found or _some(reader, name, position, self.size_bytes)
                size = min(end - position, len(found))
                crc = crc32(found[:size], crc)
                found, position = found[size:], position + size
            if crc != expected:
                span = f"of the first {end} bytes"
                raise _error(name, begin, f"CRC-32 {expected:#010x} {span}", f"{crc:#010x}")
            begin = end

    def _check_ending(self, reader: DirectReader, name: str, ending: bytes) -> None:
        position, left = self.size_bytes, ending
        while left:
            found = _some(reader, name, position, position + len(left))
            if found != left[: len(found)]:
                raise _error(name, position, left.hex(" "), found.hex(" "))
            position, left = position + len(found), left[len(found) :]


def _check_zeros(reader: DirectReader, file: OpenFile, name: str, position: int) -> None:
    end = file.size_bytes
    while position < end and (start := file.next_data(position)) is not None and start < end:
        found = _some(reader, name, start, end)
        others = np.flatnonzero(np.frombuffer(found, np.uint8))
        if len(others):
            at = int(others[0])
            raise _error(name, start + at, 0, found[at])
        position = start + len(found)


def _some(reader: DirectReader, name: str, start: int, end: int) -> memoryview:
    found = reader.read(start, end)
    if not found:
        error = TruncatedError(
            NOT_AS_WRITTEN, file=name, position_bytes=start, expected=f"{end} bytes", found=f"{start} bytes"
        )
        error.help = _HELP
        raise error
    return found


def _error(name: str, position: int, expected: object, found: object) -> CorruptError:
    error = CorruptError(NOT_AS_WRITTEN, file=name, position_bytes=position, expected=expected, found=found)
    error.help = _HELP
    return error
