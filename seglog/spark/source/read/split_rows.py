"""Walks one split of a log and hands out its records, window by window. No Spark in here.

A record that begins in the split before may go on in this one, and its body may hold what looks like a
record at its own place. So a walk begins well before the split, longer than a body usually is: wherever it
begins, it has come upon the log's own records by the time it reaches the split.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.spark.source.read.log_plan import LogSplit, Loss
from seglog.storage.audit import Split, SplitScan
from seglog.storage.directory import LogReader, StoreGeometry
from seglog.storage.files import Files
from seglog.storage.format.record import FILLER_BYTES
from seglog.storage.kernels.walk import QueueTable, Rows, Stop, walk
from seglog.storage.walk import SHORT, ZERO

LOOK_BACK_BYTES: Final = 4 << 20
"""RocketMQ's ``maxMessageSize``."""
_WINDOW_BYTES: Final = 8 << 20
_MAX_WINDOW_BYTES: Final = 64 << 20
_FIRST_READ_ON_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Window:
    """Neighbouring records of a split.

    Attributes:
        memory: Bytes of the log that hold them.
        phy_offset: Physical offset of its first byte.
        rows: ``(n,) ROW``, n > 0.
    """

    memory: memoryview
    phy_offset: int
    rows: Rows


class SplitRows:
    """Reads splits of one store, one at a time.

    Args:
        files: Where the store is.
        root: The store directory.
        geometry: Lengths of its files.
        verify: Whether to compute checksums.
        batch_rows: How many records a window should hold, as far as 64 MiB hold them.

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
        self._scan = SplitScan(files, root, geometry, frozenset(), verify=verify)
        self._verify = verify
        self._batch_rows = batch_rows
        self._window_bytes = _WINDOW_BYTES
        # New memory for each window would take as long as the walk over it.
        self._scratch: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
        self.queues = QueueTable()

    def windows(
        self, split: LogSplit, lose: Callable[[Loss], None], *, keep: bool = False
    ) -> Iterator[Window]:
        """Yields the records of a split in log order.

        Args:
            split: The split.
            lose: Called with every stretch of it without records, where that is no end of a file or log.
            keep: Whether a window's memory stays when the next one is asked for: then it is not used again.
        """
        begin = max(split.floor, split.start - LOOK_BACK_BYTES)
        position = begin if begin == split.floor else self._next_record(begin, split)
        while position is not None:
            position = yield from self._stretch(split, position, lose, keep=keep)

    def close(self) -> None:
        """Closes the files that were read last."""
        self._reader.close()
        self._scan.close()

    def read(self, phy_offset: int, size_bytes: int) -> memoryview:
        """Returns up to ``size_bytes`` of one file of the log, from ``phy_offset`` on."""
        return self._reader.read(phy_offset, size_bytes)

    def _stretch(
        self, split: LogSplit, position: int, lose: Callable[[Loss], None], *, keep: bool
    ) -> Generator[Window, None, int | None]:
        """Yields records one after the other; returns where the split continues, None at its end."""
        need = 0
        while position < split.end:
            need = max(need, min(self._window_bytes, split.end - position))
            memory = self._read(position, min(need, split.segment_end - position), keep=keep)
            result = walk(memory, position, split.segment_end, self.queues, verify=self._verify)
            places = result.rows["phy_offset"]
            first, behind = np.searchsorted(places, (split.start, split.end)).tolist()
            if first < behind:
                yield Window(memory, position, result.rows[first:behind])
                self._fit_window(result.position // len(result.rows))
            if behind < len(places):
                return None
            position += result.position
            room = len(memory) - result.position
            if result.stop in (Stop.END, Stop.BLANK):
                return None
            if result.stop is Stop.MORE and room < self._reader.available(position):
                need = 0 if result.position else max(2 * room, _FIRST_READ_ON_BYTES)
            elif position < split.end:
                resumed = self._next_record(position + 1, split)
                if position >= split.start:
                    rest = memory[result.position :][:FILLER_BYTES]
                    damage = result.damage or (SHORT if any(rest) else ZERO)
                    end = split.end if resumed is None else resumed
                    lose(Loss(position, end, damage.kind, str(damage.expected), str(damage.found)))
                return resumed
        return None

    def _read(self, phy_offset: int, size_bytes: int, *, keep: bool) -> memoryview:
        if keep:
            return self._reader.read(phy_offset, size_bytes)
        if len(self._scratch) < size_bytes:
            self._scratch = np.empty(size_bytes, np.uint8)
        return self._reader.read_into(phy_offset, self._scratch[:size_bytes].data)

    def _next_record(self, start: int, split: LogSplit) -> int | None:
        whole = Split(0, split.floor, split.end, split.segment_end)
        return next((at for at, _row in self._scan.candidates(start, whole)), None)

    def _fit_window(self, record_bytes: int) -> None:
        """Reads as much at a time as a batch of such records takes."""
        wanted = self._batch_rows * record_bytes
        self._window_bytes = min(max(_WINDOW_BYTES, wanted + wanted // 8), _MAX_WINDOW_BYTES)
