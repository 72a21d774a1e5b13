"""Reads a long file from the disk, not from the system's cache, if the file system can do that.

A caller that verifies a file after writing it needs the bytes on the disk. For a file system without
``O_DIRECT`` the pages of the file are dropped from the cache first; a file system without a disk keeps them.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Final, Self

from seglog.storage.files.direct_mode import BLOCK_BYTES, STEP_BYTES, DirectMode, aligned_memory
from seglog.storage.files.files import OpenFile

_FORGET: Final = getattr(os, "posix_fadvise", None)


class DirectReader:
    """Reads a file. One thread at a time.

    Args:
        file: The file, synced; the caller closes it.
        step_bytes: Bytes to read at a time, a multiple of 4096 and more than 4096.
    """

    def __init__(self, file: OpenFile, step_bytes: int = STEP_BYTES) -> None:
        self._file = file
        self._memory = aligned_memory(step_bytes)
        self._mode = DirectMode(file)
        self._blocks_end = file.size_bytes // BLOCK_BYTES * BLOCK_BYTES
        self._is_forgotten = _FORGET is None or file.descriptor < 0

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Switches the direct mode off, so that the file is read like any other."""
        self._mode.set(on=False)

    def read(self, start: int, end: int) -> memoryview:
        """Returns the bytes from ``start`` on: up to ``end``, at most one step.

        They are valid until the next call; empty at the end of the file.

        Raises:
            OSError: The disk cannot read them.
        """
        begin = start - start % BLOCK_BYTES
        size = min(-(-(end - begin) // BLOCK_BYTES) * BLOCK_BYTES, len(self._memory))
        if begin < self._blocks_end:
            size = min(size, self._blocks_end - begin)
            count = self._mode.call(lambda: self._fill(begin, size))
        else:  # less than a block, at the end of a file of odd length
            self._mode.set(on=False)
            count = self._fill(begin, size)
        return self._memory.data[start - begin : max(0, min(count, end - begin))]

    def _fill(self, begin: int, size: int) -> int:
        if not self._mode.is_on and not self._is_forgotten:
            os.posix_fadvise(self._file.descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            self._is_forgotten = True
        return self._file.read_into(self._memory.data[:size], begin)
