"""Facts that the files of a store show without a read of its log: lengths, first record, ends of queues.

Queue files are derived and may be wrong or incomplete; their claims about a queue are compared with records.
A few units of each queue are read, and no more than one record.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from seglog.spark.archive.record_crc import record_crc
from seglog.storage.directory import LogReader, ReadingRoot, list_store
from seglog.storage.format.layout import I32
from seglog.storage.format.names import LMQ_PREFIX
from seglog.storage.format.queue import PRE_BLANK_BYTES, Units, in_use
from seglog.storage.format.record import MIN_RECORD_BYTES, Damage, Message, decode_message, examine
from seglog.storage.splits import UnitFiles

_MAX_RECORD_BYTES: Final = 64 << 20


class QueueEnds(NamedTuple):
    """The ends of a queue by its files: it has ``first`` to ``end - 1``, as far as the log goes back."""

    first: int
    end: int


class FoundRecord(NamedTuple):
    """A record of the store: place, CRC as in :mod:`seglog.spark.archive.record_crc`, and values."""

    phy_offset: int
    crc: int
    message: Message


class StoreFacts:
    """The facts that the files of a store show now; a context manager.

    Args:
        root: The store directory.

    Attributes:
        segment_bytes: Length of its log files.
        first_phy_offset: Start of its log; -1 without a log file.
    """

    def __init__(self, root: Path) -> None:
        files = ReadingRoot(root)
        listing = list_store(files, root)
        self.segment_bytes = listing.geometry.segment_size_bytes
        self.first_phy_offset = listing.log_files[0].first_offset if listing.log_files else -1
        self._queues = [key for key in listing.queue_files if not key[0].startswith(LMQ_PREFIX)]
        self._units = UnitFiles(files, root, listing.geometry.queue_file_size_bytes)
        self._log = LogReader(files, root, self.segment_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the files of the log."""
        self._log.close()

    def queues(self) -> dict[tuple[str, int], QueueEnds]:
        """Returns the ends of each queue by its files, without LMQs: their records belong to other queues."""
        return {key: ends for key in self._queues if (ends := self.ends(*key)) is not None}

    def ends(self, topic: str, queue_id: int) -> QueueEnds | None:
        """Returns the ends of a queue by its files; None if there are none."""
        room = self._units.extent(topic, queue_id)
        if not room:
            return None

        def is_used(unit: Units) -> bool:
            return bool(in_use(unit)[0])

        def is_below(unit: Units) -> bool:
            is_blank = unit["size_bytes"][0] == PRE_BLANK_BYTES
            return bool(is_blank or unit["phy_offset"][0] < self.first_phy_offset)

        end = self._search(topic, queue_id, room, is_used)
        return QueueEnds(self._search(topic, queue_id, range(room.start, end), is_below), end)

    def places(self, topic: str, queue_id: int) -> tuple[int, npt.NDArray[np.int64]] | None:
        """Returns the first offset of a queue, and the places in its units; None without files."""
        ends = self.ends(topic, queue_id)
        if ends is None:
            return None
        units = self._units.read(topic, queue_id, ends.first, ends.end - ends.first)
        return ends.first, units["phy_offset"].astype(np.int64)

    def record_at(self, phy_offset: int) -> FoundRecord | None:
        """Returns the record at a place; None if there is no valid record."""
        head = self._log.read(phy_offset, I32.size) if phy_offset >= 0 else memoryview(b"")
        size = I32.unpack_from(head)[0] if len(head) == I32.size else 0
        if not MIN_RECORD_BYTES <= size <= min(_MAX_RECORD_BYTES, self.segment_bytes):
            return None
        window = self._log.read(phy_offset, size)
        if isinstance(examine(window, 0, phy_offset), Damage):
            return None
        return FoundRecord(phy_offset, record_crc(window), decode_message(window))

    def record_of(self, topic: str, queue_id: int, queue_offset: int) -> FoundRecord | None:
        """Returns an offset's record by a queue's files; None without it, or if it is another queue's."""
        unit = self._units.read(topic, queue_id, queue_offset, 1)
        if not in_use(unit)[0]:
            return None
        found = self.record_at(int(unit["phy_offset"][0]))
        if found is None:
            return None
        said = (found.message.topic, found.message.queue_id, found.message.queue_offset)
        return found if said == (topic, queue_id, queue_offset) else None

    def _search(self, topic: str, queue_id: int, room: range, goes_on: Callable[[Units], bool]) -> int:
        """Returns the first number in a range for whose unit ``goes_on`` is false; it is true before it."""
        low, high = room.start, room.stop
        while low < high:
            middle = (low + high) // 2
            if goes_on(self._units.read(topic, queue_id, middle, 1)):
                low = middle + 1
            else:
                high = middle
        return low
