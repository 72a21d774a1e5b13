"""Whether a log continues behind damage, and where: the rule of every walk.

What follows damage decides what the damage is. If a later record proves itself and is newer than what
came before, the damage is a hole and the walk continues behind it; if nothing does, it is the torn tail of
the last write and the log ends there. "Newer" keeps records of an older life out: RocketMQ cuts a log without
erasing what is behind the cut, so valid records of an older life may be there. They carry earlier store
times, or queue offsets that were given again since. But it removes the files behind the one that it cuts,
and keeps that one only if records are left in it, so those records stand in the last file, behind others.
Anywhere else any record that proves itself counts, regardless of its store time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from seglog.storage.format.record import Damage, RecordRow, takes_queue_offset


@dataclass(frozen=True, slots=True)
class Hole:
    """A stretch of the log, between readable records, that holds none.

    Attributes:
        phy_offset: Where it starts.
        size_bytes: How long it is.
        why: The damage at its start, a stable short word.
    """

    phy_offset: int
    size_bytes: int
    why: str
    expected: str = ""
    found: str = ""

    @property
    def end(self) -> int:
        """Where records continue."""
        return self.phy_offset + self.size_bytes


@dataclass(frozen=True, slots=True)
class Head:
    """What decides whether records behind damage are newer than those before it: the first of them.

    Attributes:
        queue_offset: Its queue offset; None for one that has no place in its queue.
    """

    store_timestamp_ms: int
    topic: str
    queue_id: int
    queue_offset: int | None

    @classmethod
    def of(cls, row: RecordRow) -> Head:
        """Returns that of a record."""
        queue_offset = row.queue_offset if takes_queue_offset(row.sys_flag) else None
        return cls(row.store_timestamp_ms, row.topic.decode("utf-8", "replace"), row.queue_id, queue_offset)


class LogRecords(Protocol):
    """Finds records of a log anywhere in it."""

    def heads(self, start: int, first_offset: int) -> Iterator[tuple[int, Head]]:
        """Yields the records that prove themselves in a segment, from a place on.

        Those that are older than :attr:`LogEnd.last_store_ms` may be left out, but for the first.

        Args:
            start: The place.
            first_offset: Where the segment starts.
        """
        ...

    def is_written(self, phy_offset: int) -> bool:
        """Returns whether a whole record or a filler is at a place now."""
        ...


class LogEnd:
    """How far a walk over a log has come, and what it stepped over.

    Args:
        records: Finds records of the log.
        segment_size_bytes: Length of its files.

    Attributes:
        firsts: Where its segments start, in order.
        phy_offset: How far it has come: where the next record goes.
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
        """Moves behind the damage at the end if the log continues there, and notes the hole.

        Args:
            damage: What is wrong there.

        Returns:
            Whether it does; the walk continues from :attr:`phy_offset`, which is the same place if a writer
            wrote a record there meanwhile.
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
        """Returns the first place behind ``start`` where a record of this life of the log is."""
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
