"""The queues of a store by their units: the end of each, and the first unit that leads to or past a place.

Queues are derived, and a writer appends to them after it appends to the log. So queues are read first and the
log afterwards: a record with a unit is then in the log. No code here reads a unit for each message: a queue
costs a few reads, because places increase with queue offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from seglog.storage.directory import Listing, list_log_files, list_store, place_log_files
from seglog.storage.files import Files
from seglog.storage.format.names import BATCH_CONSUME_QUEUE, LMQ_PREFIX
from seglog.storage.format.queue import BATCH_UNIT, Units
from seglog.storage.overlay import is_message
from seglog.storage.splits import UnitFiles

_CHUNK: Final = 256
"""Number of units that are read at a time; most searches end in the first chunk."""
_PROBE: Final = 8

Key = tuple[str, int]
Mask = npt.NDArray[np.bool_]


class UnitSource(Protocol):
    """Reads units by number."""

    def read(self, topic: str, queue_id: int, first_slot: int, count: int) -> Units:
        """Returns units of a queue; those that do not exist are zero."""

    def extent(self, topic: str, queue_id: int) -> range:
        """Returns the numbers of all units that the files have room for."""


@dataclass(frozen=True, slots=True, order=True)
class Queue:
    """A queue.

    Attributes:
        is_batch: Whether its units lead to batches: then their numbers are no queue offsets.
    """

    topic: str
    queue_id: int
    is_batch: bool = False

    @property
    def key(self) -> Key:
        """Topic and queue id."""
        return self.topic, self.queue_id


class StoreQueues:
    """The queues of a store at the time of creation.

    LMQ queues are left out: they lead to records of other queues.

    Args:
        plain: Units of plain queues.
        batch: Units of batch queues.
        queues: The queues.
        hints: Queue offsets near the ends of queues; they only make the search faster.

    Attributes:
        ends: Number after the last unit of each queue.
    """

    def __init__(
        self,
        plain: UnitSource,
        batch: UnitSource,
        queues: list[Queue],
        hints: Mapping[Key, int] | None = None,
    ) -> None:
        self._sources: dict[bool, UnitSource] = {False: plain, True: batch}
        hints = hints or {}
        self.ends: dict[Queue, int] = {}
        for queue in queues:
            room = self._source(queue).extent(*queue.key)
            hint = 0 if queue.is_batch else hints.get(queue.key, 0)
            self.ends[queue] = self._search(queue, room, is_message, hint)

    @classmethod
    def of_files(
        cls, files: Files, root: Path, listing: Listing, hints: Mapping[Key, int] | None = None
    ) -> StoreQueues:
        """Returns the queues of a store by its files."""
        geometry = listing.geometry
        plain = UnitFiles(files, root, geometry.queue_file_size_bytes)
        batch = UnitFiles(files, root, geometry.batch_file_size_bytes, BATCH_UNIT, BATCH_CONSUME_QUEUE)
        queues = [Queue(*key) for key in listing.queue_files if not key[0].startswith(LMQ_PREFIX)]
        queues += [Queue(*key, is_batch=True) for key in listing.batch_files]
        return cls(plain, batch, queues, hints)

    @cached_property
    def last_message(self) -> tuple[Queue, int, int] | None:
        """The queue with the last message of the log, the number of its unit, and the message's place."""
        last: tuple[Queue, int, int] | None = None
        for queue, end in self.ends.items():
            if end:
                phy_offset = int(self.units(queue, end - 1, end)["phy_offset"][0])
                if last is None or phy_offset > last[2]:
                    last = queue, end - 1, phy_offset
        return last

    def number_at(self, queue: Queue, phy_offset: int, hint: int = 0, within: range | None = None) -> int:
        """Returns the number of the first unit of a queue that leads to a place or past it.

        Args:
            queue: The queue.
            phy_offset: The place.
            hint: A number near the result.
            within: A range that is known to contain it.
        """
        room = (
            within
            if within is not None
            else range(self._source(queue).extent(*queue.key).start, self.ends[queue])
        )
        return self._search(
            queue, room, lambda units: is_message(units) & (units["phy_offset"] < phy_offset), hint
        )

    def first_at(self, queue: Queue, phy_offset: int) -> int:
        """Returns the number of the first message at or after a place; the queue's end without one."""
        number, end = self.number_at(queue, phy_offset), self.ends[queue]
        while number < end:
            found = np.flatnonzero(is_message(self.units(queue, number, min(end, number + _CHUNK))))
            if len(found):
                return number + int(found[0])
            number += _CHUNK
        return end

    def units(self, queue: Queue, first: int, end: int) -> Units:
        """Returns units of a queue, by number."""
        return self._source(queue).read(*queue.key, first, max(0, end - first))

    def queue_offset(self, queue: Queue, number: int) -> int:
        """Returns the queue offset of a unit, or the offset after the last one."""
        if not queue.is_batch:
            return number
        room = self._source(queue).extent(*queue.key)
        if number < self.ends[queue]:
            return int(self.units(queue, number, number + 1)["base_queue_offset"][0])
        if number <= room.start:
            return 0
        last = self.units(queue, number - 1, number)[0]
        return int(last["base_queue_offset"]) + int(last["batch_size"])

    def number_of(self, queue: Queue, queue_offset: int) -> int:
        """Returns the number of the first unit at or after a queue offset, within the queue."""
        start = self._source(queue).extent(*queue.key).start
        if not queue.is_batch:
            return min(max(queue_offset, start), self.ends[queue])
        room = range(start, self.ends[queue])
        return self._search(
            queue, room, lambda units: is_message(units) & (units["base_queue_offset"] < queue_offset), 0
        )

    def _source(self, queue: Queue) -> UnitSource:
        return self._sources[queue.is_batch]

    def _search(self, queue: Queue, room: range, is_before: Callable[[Units], Mask], hint: int) -> int:
        """Returns the number after the last unit for which ``is_before`` is true.

        Args:
            queue: The queue.
            room: Range of the search.
            is_before: True for all units up to some unit, except empty ones between them.
            hint: A number near the result.
        """
        low, high = room.start, room.stop
        start = max(low, min(hint - 1, high - 1))
        while low < high:
            chunk = self.units(queue, start, min(high, start + _CHUNK))
            before = np.flatnonzero(is_before(chunk))
            if len(before) and (before[-1] + 1 < len(chunk) or start + len(chunk) == high):
                return start + int(before[-1]) + 1
            if len(before):
                low = start + len(chunk)
            elif is_message(chunk).any() or not chunk["size_bytes"].any():
                high = start
            else:  # blanks before the first unit of a queue that did not begin at 0
                low = min(start + len(chunk), high)
            start = self._halved(queue, low, high, is_before)
        return low

    def _halved(self, queue: Queue, low: int, high: int, is_before: Callable[[Units], Mask]) -> int:
        """Returns where to look next: halves the range until it fits into a chunk."""
        while high - low > _CHUNK:
            middle = (low + high) // 2
            probe = self.units(queue, middle, middle + _PROBE)
            is_blank = not is_message(probe).any() and bool(probe["size_bytes"].any())
            if is_blank or is_before(probe)[: 1 + int(is_message(probe).argmax())].any():
                low = middle
            else:
                high = middle
        return low


def look_at_store(
    files: Files, root: Path, hints: Mapping[Key, int] | None = None
) -> tuple[Listing, StoreQueues]:
    """Returns the files of a store and its queues; the log is listed after the queues were read.

    Args:
        files: Access to the store.
        root: The store directory.
        hints: Queue offsets near the ends of queues.
    """
    listing = list_store(files, root)
    queues = StoreQueues.of_files(files, root, listing, hints)
    log_files, _strays = list_log_files(files, root)
    placed, _misplaced = place_log_files(log_files, listing.geometry.segment_size_bytes)
    return replace(listing, log_files=placed), queues
