"""Walks one split of a log and yields its records, window by window. Uses no Spark.

A record that begins in the previous split may continue in this one, and its body may contain bytes that look
like a valid record at its place. So a walk begins before the split, by more than the usual length of a body:
wherever it begins, it has found the log's own records by the time it reaches the split.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from seglog.spark.source.read.log_plan import LogSplit
from seglog.spark.source.read.losses import Loss
from seglog.spark.source.read.window_memory import WindowMemory
from seglog.storage.directory import LogReader, StoreGeometry
from seglog.storage.files import Files
from seglog.storage.kernels.walk import QueueTable, Rows
from seglog.storage.walk import SegmentWalk, Split

LOOK_BACK_BYTES: Final = 4 << 20
"""RocketMQ's ``maxMessageSize``."""
_WINDOW_BYTES: Final = 8 << 20
_MAX_WINDOW_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Window:
    """Adjacent records of a split.

    Attributes:
        memory: The bytes of the log that hold them.
        phy_offset: Physical offset of the first byte.
        rows: ``(n,) ROW``, n > 0.
    """

    memory: memoryview
    phy_offset: int
    rows: Rows


class SplitRows:
    """Reads splits of one store, one at a time.

    Args:
        files: Access to the store.
        root: The store directory.
        geometry: Lengths of its files.
        verify: Whether to compute checksums.
        batch_rows: Number of records for a window, up to 16 MiB.

    Attributes:
        queues: The queues that rows belong to.
    """

    def __init__(
        self,
        files: Files,
        root: Path,
        geometry: StoreGeometry,
        *,
        verify: bool,
        batch_rows: int,
    ) -> None:
        self._reader = LogReader(files, root, geometry.segment_size_bytes)
        self._batch_rows = batch_rows
        self._window_bytes = _WINDOW_BYTES
        self._memory = WindowMemory()
        self.queues = QueueTable()
        self._walk = SegmentWalk(
            self._reader, geometry.segment_size_bytes, self.queues, verify=verify, read=self._read
        )

    def windows(self, split: LogSplit, lose: Callable[[Loss], None]) -> Iterator[Window]:
        """Yields the records of a split in log order.

        Args:
            split: The split.
            lose: Called with every stretch of it without records, except at the end of a file or the log.
        """
        begin = max(split.floor, split.start - LOOK_BACK_BYTES)
        position = begin if begin == split.floor else self._next_record(begin, split)
        while position is not None:
            position = yield from self._stretch(split, position, lose)

    def close(self) -> None:
        """Closes the files that were read last."""
        self._reader.close()

    def read(self, phy_offset: int, size_bytes: int) -> memoryview:
        """Returns up to ``size_bytes`` of one file of the log, from ``phy_offset`` on."""
        return self._reader.read(phy_offset, size_bytes)

    def _stretch(
        self, split: LogSplit, position: int, lose: Callable[[Loss], None]
    ) -> Generator[Window, None, int | None]:
        """Yields records one by one; returns the place where the split continues, None at its end."""
        walk = self._walk
        walk.window_bytes = self._window_bytes
        for rows, _keys, window in walk.run(_range(split), position):
            first = int(np.searchsorted(rows["phy_offset"], split.start))
            if first < len(rows) and window is not None:
                yield Window(window, int(rows["phy_offset"][0]), rows[first:])
                last = rows[-1]
                behind = int(last["phy_offset"]) + int(last["size_bytes"])
                self._fit_window((behind - int(rows["phy_offset"][0])) // len(rows))
                walk.window_bytes = self._window_bytes
        damage, position = walk.damage, walk.position
        if damage is None:
            return None
        resumed = self._next_record(position + 1, split)
        if position >= split.start:
            end = split.end if resumed is None else resumed
            lose(Loss(position, end, damage.kind, str(damage.expected), str(damage.found)))
        return resumed

    def _read(self, phy_offset: int, size_bytes: int) -> memoryview:
        size_bytes = min(size_bytes, self._reader.available(phy_offset))
        return self._reader.read_into(phy_offset, self._memory.take(size_bytes))

    def _next_record(self, start: int, split: LogSplit) -> int | None:
        return next((at for at, _row in self._walk.proven(_range(split), start)), None)

    def _fit_window(self, record_bytes: int) -> None:
        """Sets the window size to the length of a batch of such records."""
        wanted = self._batch_rows * record_bytes
        self._window_bytes = min(max(_WINDOW_BYTES, wanted + wanted // 8), _MAX_WINDOW_BYTES)


def _range(split: LogSplit) -> Split:
    return Split(0, split.floor, split.end, split.segment_end)
