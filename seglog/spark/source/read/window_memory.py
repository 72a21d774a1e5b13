"""Memory for windows of a log, used again once no view of it is left.

New memory for each window would take as long as the walk over it. Batches may show a part of a window as it
is, and those who take a batch may keep it.
"""

from __future__ import annotations

import weakref
from typing import Final

import numpy as np
import numpy.typing as npt

_KEPT: Final = 2
"""One is read into while those who take the batches still have the last of the other."""


class WindowMemory:
    """Hands out memory."""

    def __init__(self) -> None:
        self._kept: list[tuple[npt.NDArray[np.uint8], weakref.ref[npt.NDArray[np.uint8]]]] = []

    def take(self, size_bytes: int) -> memoryview:
        """Returns so many bytes, of which only the caller has a view."""
        memory = self._free()
        if len(memory) < size_bytes:
            memory = np.empty(size_bytes, np.uint8)
        lent = memory[:size_bytes]
        self._kept = [*self._kept[-_KEPT + 1 :], (memory, weakref.ref(lent))]
        return lent.data

    def _free(self) -> npt.NDArray[np.uint8]:
        for number, (memory, lent) in enumerate(self._kept):
            if lent() is None:
                del self._kept[number]
                return memory
        return np.empty(0, np.uint8)
