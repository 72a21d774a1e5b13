"""Whether a log continues behind damage, and where: the rule of every walk.

The records behind damage decide what the damage is. If a later record proves itself and is newer than the
records before, the damage is a hole and the walk continues behind it. Otherwise it is the torn tail of the
last write, and the log ends there. "Newer" excludes records of an earlier log: RocketMQ cuts a log without
erasing the bytes behind the cut, so valid old records may be there. They have earlier store times, or queue
offsets that were assigned again since. But RocketMQ removes the files behind the one that it cuts, and keeps
that one only if records are left in it, so old records can only be in the last file, behind other records.
Anywhere else every record that proves itself counts, regardless of its store time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from seglog.storage.format.record import Damage, RecordRow, takes_queue_offset


@dataclass(frozen=True, slots=True)
class Hole:
    """A stretch of the log without readable records, between readable records.

    Attributes:
        phy_offset: Physical offset of its first byte.
        size_bytes: Its length.
        why: The damage at its start, a stable short word.
    """

    phy_offset: int
    size_bytes: int
    why: str
    expected: str = ""
    found: str = ""

    @property
    def end(self) -> int:
        """Physical offset at which records continue."""
        return self.phy_offset + self.size_bytes


@dataclass(frozen=True, slots=True)
class Head:
    """The fields of the first record behind damage that decide whether it is newer than the records before.

    Attributes:
        queue_offset: Its queue offset; None for a record that takes none.
    """

    store_timestamp_ms: int
    topic: str
    queue_id: int
    queue_offset: int | None

    @classmethod
    def of(cls, row: RecordRow) -> Head:
        """Returns the head of a record."""
        queue_offset = row.queue_offset if takes_queue_offset(row.sys_flag) else None
        return cls(row.store_timestamp_ms, row.topic.decode("utf-8", "replace"), row.queue_id, queue_offset)


class LogRecords(Protocol):
    """Finds records of a log anywhere in it."""

    def heads(self, start: int, first_offset: int) -> Iterator[tuple[int, Head]]:
        """Yields the records that prove themselves in a segment, from ``start`` on.

        Except the first, records older than :attr:`LogEnd.last_store_ms` may be left out.

        Args:
            start: Physical offset at which the search begins.
            first_offset: Physical offset of the segment's first byte.
        """
        ...

    def is_written(self, phy_offset: int) -> bool:
        """Returns whether a whole record or a filler is at a place now."""
        ...


class LogEnd:
    """The position of a walk over a log, and the holes that it stepped over.

    Args:
        records: Finds records of the log.
        segment_size_bytes: Length of its files.

    Attributes:
        firsts: First offsets of its segments, in order.
        phy_offset: Position of the walk: the place of the next record.
        holes: Stretches without readable records, in order.
        last_store_ms: Store time of the last record, 0 before the first.
        next_queue_offset: The queue offset that each queue continues with, as its last record has it.
    """

    def __init__(self, records: LogRecords, firsts: Sequence[int], segment_size_bytes: int) -> None:
        self._records = records
        self._segment_size_bytes = segment_size_bytes
        self.firsts = firsts
        self.phy_offset = firsts[0] if firsts else 0
        self.holes: list[Hole] = []
        self.last_store_ms = 0
        self.next_queue_offset: dict[tuple[str, int], int] = {}

    def step_over(self, damage: Damage) -> bool:
        """Moves behind the damage at the position if the log continues there, and notes the hole.

        Args:
            damage: The damage.

        Returns:
            Whether the log continues. The walk continues at :attr:`phy_offset`, which is unchanged if a
            writer has written a record there meanwhile.
        """
        start = self.phy_offset
        resumed = self._resumed(start)
        if resumed is None:
            return False
        if not self._records.is_written(start):
            size = resumed - start
            self.holes.append(Hole(start, size, damage.kind, str(damage.expected), str(damage.found)))
            self.phy_offset = resumed
        return True

    def _resumed(self, start: int) -> int | None:
        """Returns the first place behind ``start`` with a record that does not belong to an earlier log."""
        for number in range(bisect_right(self.firsts, start - self._segment_size_bytes), len(self.firsts)):
            first = self.firsts[number]
            may_be_cut: bool | None = None
            for place, head in self._records.heads(max(first, start + 1), first):
                if may_be_cut is None:
                    may_be_cut = first < start and not self._has_record(self.firsts[number + 1 :])
                if not may_be_cut or self._is_newer(head):
                    return place
        return None

    def _has_record(self, firsts: Sequence[int]) -> bool:
        """Returns whether any of some segments holds a record."""
        return any(next(self._records.heads(first, first), None) is not None for first in firsts)

    def _is_newer(self, head: Head) -> bool:
        if head.store_timestamp_ms < self.last_store_ms:
            return False
        if head.queue_offset is None:
            return True
        return head.queue_offset >= self.next_queue_offset.get((head.topic, head.queue_id), 0)
