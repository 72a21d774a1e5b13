"""``O_DIRECT`` of an open file: on, off, or not supported; and aligned memory for it.

Source: ``open(2)``, NOTES on ``O_DIRECT``. A file system may refuse the flag, or take it and refuse calls.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from collections.abc import Callable
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from seglog.storage.files.files import OpenFile

BLOCK_BYTES: Final = 4096
"""Alignment of memory, lengths and positions; disks require 512 or this."""
STEP_BYTES: Final = 4 << 20
"""Bytes per call: with 1 MiB, disks of virtual machines have half the rate."""
_O_DIRECT: Final = getattr(os, "O_DIRECT", 0)
T = TypeVar("T")


class DirectMode:
    """Whether calls on a file bypass the system's cache. One thread at a time.

    Attributes:
        is_on: Whether they bypass it now.
    """

    def __init__(self, file: OpenFile) -> None:
        self._descriptor = file.descriptor
        self._may_be_on = bool(_O_DIRECT) and file.descriptor >= 0
        self.is_on = False

    def set(self, *, on: bool) -> None:
        """Switches the mode, if the file system supports it."""
        if not self._may_be_on or on == self.is_on:
            return
        flags = fcntl.fcntl(self._descriptor, fcntl.F_GETFL)
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags | _O_DIRECT if on else flags & ~_O_DIRECT)
        except OSError:
            self._may_be_on = False
        else:
            self.is_on = on

    def call(self, do: Callable[[], T]) -> T:
        """Calls a function on the file with the mode on; without it if the file system accepts only the flag.

        Raises:
            OSError: The call fails both ways.
        """
        self.set(on=True)
        try:
            return do()
        except OSError as error:
            if not self.is_on or error.errno != errno.EINVAL:
                raise
            self.set(on=False)
            self._may_be_on = False
            return do()


def aligned_memory(size_bytes: int) -> npt.NDArray[np.uint8]:
    """Returns page-aligned memory, ``(size_bytes,)``."""
    return np.frombuffer(mmap.mmap(-1, size_bytes), np.uint8)
