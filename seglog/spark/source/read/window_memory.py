"""Memory for windows of a log, used again when no view of it is left.

New memory for each window would take as long as the walk over it. A batch may contain a view of a window, and
the user of a batch may keep it.
"""

from __future__ import annotations

import weakref
from typing import Final

import numpy as np
import numpy.typing as npt

_KEPT: Final = 2
"""While one buffer is filled, users may still hold the last batch of the other."""


class WindowMemory:
    """Provides memory for windows."""

    def __init__(self) -> None:
        self._kept: list[tuple[npt.NDArray[np.uint8], weakref.ref[npt.NDArray[np.uint8]]]] = []

    def take(self, size_bytes: int) -> memoryview:
        """Returns memory of a size; only the caller has a view of it."""
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
