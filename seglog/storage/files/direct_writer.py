"""Writes a long file from its start on, past the system's cache where that can be done.

Who writes a new log of many gigabytes and reads nothing of it pushes out of the cache what others read, and
pays for pages: 2.4 CPU seconds a GiB on a virtual machine that gives free memory back to its host, beside
0.15 past the cache. Memory is aligned for ``O_DIRECT``, and a thread writes one part of it while the next is
filled.

A file system that does not know ``O_DIRECT`` is written to as any other. Nothing here proves that the file
holds what was filled in: the caller takes sums of that, and compares them with what a
:class:`~seglog.storage.files.direct_reader.DirectReader` finds on the disk.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from seglog.storage.files.direct_mode import BLOCK_BYTES, STEP_BYTES, DirectMode, aligned_memory
from seglog.storage.files.files import OpenFile


class DirectWriter:
    """Writes a file from its start on. One thread at a time.

    Args:
        file: The file, which is as long as it will be; the caller syncs and closes it.
        step_bytes: How much is written at a time, a multiple of 4096.

    Attributes:
        end: How many bytes were handed out to be filled, from the start of the file on.
    """

    def __init__(self, file: OpenFile, step_bytes: int = STEP_BYTES) -> None:
        self._file = file
        self._step_bytes = step_bytes
        self._buffers = [aligned_memory(2 * step_bytes), aligned_memory(2 * step_bytes)]
        self._begin = 0  # of what the first of the buffers holds, in the file
        self._written: Future[None] | None = None
        self._thread = ThreadPoolExecutor(1, "seglog-writes")
        self._mode = DirectMode(file)
        self.end = 0

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Waits for what is being written; what was not written stays so, :meth:`finish` does that."""
        self._thread.shutdown()

    def room(self, size_bytes: int) -> npt.NDArray[np.uint8]:
        """Returns memory for the next bytes of the file, ``(size_bytes,)``; valid until the next call.

        Raises:
            FullError: What was handed out before found no space.
            OSError: It could not be written.
        """
        if self.end - self._begin >= self._step_bytes:
            self._turn()
        used = self.end - self._begin
        if used + size_bytes > len(self._buffers[0]):
            grown = aligned_memory(-(-(used + size_bytes) // BLOCK_BYTES) * BLOCK_BYTES)
            grown[:used] = self._buffers[0][:used]
            self._buffers[0] = grown
        self.end += size_bytes
        return self._buffers[0][used : used + size_bytes]

    def finish(self) -> None:
        """Writes what is left, and returns when all is written; the file can be written to as any other then.

        Raises:
            FullError: There is no space.
            OSError: It cannot be written.
        """
        if self.end - self._begin >= self._step_bytes:
            self._turn()
        self._wait()
        self._mode.set(on=False)
        self._file.write_at(self._buffers[0][: self.end - self._begin].data, self._begin)
        self._begin = self.end

    def _turn(self) -> None:
        """Has whole blocks written beside the caller, who goes on in the other memory."""
        self._wait()
        used = self.end - self._begin
        whole = used // BLOCK_BYTES * BLOCK_BYTES
        full, free = self._buffers
        free[: used - whole] = full[whole:used]
        self._written = self._thread.submit(self._write, full[:whole].data, self._begin)
        self._buffers = [free, full]
        self._begin += whole

    def _write(self, data: memoryview, position: int) -> None:
        self._mode.call(lambda: self._file.write_at(data, position))

    def _wait(self) -> None:
        written, self._written = self._written, None
        if written is not None:
            written.result()
