"""Memory for arrays that grow with a store: small amounts in memory, larger ones in unnamed temporary files.

If memory is short, the system can write pages of a mapped file to the disk; without swap it cannot do so with
anonymous pages. The files are in Python's folder for temporary files (``TMPDIR``), have no name and disappear
with the process. They hold rows and units that were read from a store, never the only copy of anything.
"""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from seglog.errors import FullError
from seglog.storage.files.real_file import read_fully, write_fully

IN_MEMORY_BYTES: Final = 112 << 20
"""The memory that one owner of a :class:`Room` uses before it uses files."""
_CHUNK_BYTES: Final = 64 << 20
_T = TypeVar("_T", bound=np.generic)


class Scratch:
    """A temporary file without a name; only its written or reserved parts take space.

    Args:
        size_bytes: Its length.

    Raises:
        FullError: The folder of temporary files has no room for another.
    """

    def __init__(self, size_bytes: int = 0) -> None:
        self._descriptor = -1
        try:
            with tempfile.TemporaryFile(buffering=0) as file:
                self._descriptor = os.dup(file.fileno())
            os.ftruncate(self._descriptor, size_bytes)
        except OSError as error:
            raise _full(error) from error

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)  # maps stay

    def reserve(self, position: int, size_bytes: int) -> None:
        """Allocates space for a range.

        Raises:
            FullError: There is no space for it.
        """
        if size_bytes <= 0 or not hasattr(os, "posix_fallocate"):
            return
        try:
            os.posix_fallocate(self._descriptor, position, size_bytes)
        except OSError as error:
            raise _full(error) from error

    def map(self) -> mmap.mmap:
        """Returns all of it as memory, which is valid as long as it is referenced."""
        return mmap.mmap(self._descriptor, 0)

    def write_at(self, data: bytes | bytearray | memoryview, position: int) -> None:
        """Writes all of ``data``.

        Raises:
            FullError: There is no space for it.
        """
        try:
            write_fully(self._descriptor, data, position)
        except OSError as error:
            raise _full(error) from error

    def read(self, position: int, size_bytes: int) -> bytes:
        """Returns up to ``size_bytes``; fewer only at the end."""
        data = bytearray(size_bytes)
        return bytes(data[: read_fully(self._descriptor, memoryview(data), position)])

    def next_data(self, position: int) -> int | None:
        """Returns the position of the next written bytes, None if none follow."""
        try:
            return os.lseek(self._descriptor, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return None
            raise


class Room:
    """Allocates arrays for the rows and units that one owner reads of a store.

    Args:
        in_memory_bytes: Total size of the arrays in memory; further arrays are in files. If there is no space
            for files either, they are in memory nevertheless: a store must open beside a full ``/tmp``.
    """

    def __init__(self, in_memory_bytes: int = IN_MEMORY_BYTES) -> None:
        self._left_bytes = in_memory_bytes
        self._chunk = memoryview(b"")

    def empty(self, count: int, dtype: np.dtype[_T]) -> npt.NDArray[_T]:
        """Returns an array of ``count`` items of undefined value."""
        size_bytes = count * dtype.itemsize
        if self._takes(size_bytes):
            return np.empty(count, dtype)
        memory = self._in_file(size_bytes)
        return np.empty(count, dtype) if memory is None else np.frombuffer(memory, dtype, count)

    def growing(self, count: int, dtype: np.dtype[_T]) -> tuple[npt.NDArray[_T], Scratch | None]:
        """Returns an array of which perhaps only the front is used, and the file to reserve it in first.

        The file is None for an array in memory, which needs no reserving.
        """
        size_bytes = count * dtype.itemsize
        if not self._takes(size_bytes):
            try:
                scratch = Scratch(size_bytes)
                return np.frombuffer(scratch.map(), dtype, count), scratch
            except (FullError, OSError):
                self._left_bytes = 0
        return np.empty(count, dtype), None

    def keep(self, array: npt.NDArray[_T]) -> npt.NDArray[_T]:
        """Returns an array of memory, or a copy of it in a file if memory is used up."""
        if self._takes(array.nbytes):
            return array
        kept = self.empty(len(array), array.dtype)
        kept[:] = array
        return kept

    def give_back(self, array: npt.NDArray[_T]) -> None:
        """Takes back an array whose memory is not needed any more."""
        if array.base is None:
            self._left_bytes += array.nbytes

    def _takes(self, size_bytes: int) -> bool:
        if size_bytes > self._left_bytes:
            return False
        self._left_bytes -= size_bytes
        return True

    def _in_file(self, size_bytes: int) -> memoryview | None:
        if size_bytes >= _CHUNK_BYTES // 4:
            return _mapped(size_bytes)
        if size_bytes > len(self._chunk):
            chunk = _mapped(_CHUNK_BYTES)
            if chunk is None:
                return None
            self._chunk = chunk
        taken = -(-size_bytes // 64) * 64
        found, self._chunk = self._chunk[:size_bytes], self._chunk[taken:]
        return found


def _mapped(size_bytes: int) -> memoryview | None:
    """Returns memory in a new file, None if there is no space for it."""
    try:
        scratch = Scratch(size_bytes)
        scratch.reserve(0, size_bytes)
        return memoryview(scratch.map())
    except (FullError, OSError):
        return None


def _full(error: OSError) -> FullError:
    return FullError(
        f"no room for a temporary file in {tempfile.tempdir or 'any folder for them'}: {error.strerror}",
        help="name a folder with more space in TMPDIR",
    )
