"""What a task says about its split: stretches of records, and what of each queue is in them.

A stretch is a run of records one behind the other, an interval a run of records of one queue with queue
offsets one behind the other whose queue units were all found alike; in batch queues, whose units stand
for any number of messages, a run of records whose units the queue's files hold. An intact split is one
stretch with one interval or run for each queue, however many records it holds; every damage adds a few.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from seglog.storage.format.record.record import Damage
from seglog.storage.walk import Head, Stopped


class UnitState(enum.IntEnum):
    """What the queue's file says about a record that has a place in the queue."""

    AGREES = 0
    """Its unit exists and is right."""
    SAME_PLACE = 1
    """A unit leads to the record, with another size or tags code."""
    DIFFERS = 2
    """A unit exists and leads elsewhere."""
    ABSENT = 3
    """There is no unit."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Records of one plain queue with consecutive queue offsets, their own or those in a further queue.

    Attributes:
        first_queue_offset: Queue offset of the first; the last has ``end_queue_offset - 1``.
        first_phy_offset: Where the first record starts.
        last_phy_offset: Where the last record starts.
    """

    topic: str
    queue_id: int
    unit_state: UnitState
    records: int
    size_bytes: int
    first_queue_offset: int
    first_phy_offset: int
    last_phy_offset: int
    min_store_timestamp_ms: int
    max_store_timestamp_ms: int

    @property
    def end_queue_offset(self) -> int:
        """Queue offset behind the last."""
        return self.first_queue_offset + self.records

    def is_continued_by(self, later: Interval) -> bool:
        """Whether ``later``, of the same queue and next in the log, is a part of the same run."""
        return self.end_queue_offset == later.first_queue_offset and self.unit_state is later.unit_state

    def joined(self, later: Interval) -> Interval:
        """Returns this and the interval that continues it as one."""
        return replace(
            self,
            records=self.records + later.records,
            size_bytes=self.size_bytes + later.size_bytes,
            last_phy_offset=later.last_phy_offset,
            min_store_timestamp_ms=min(self.min_store_timestamp_ms, later.min_store_timestamp_ms),
            max_store_timestamp_ms=max(self.max_store_timestamp_ms, later.max_store_timestamp_ms),
        )


@dataclass(frozen=True, slots=True)
class BatchRun:
    """Records of one batch queue, as the units that they must have there.

    Attributes:
        records: How many, one unit each.
        first_index: Number of the first of the units in the queue's files, where these hold all of them one
            behind the other; -1 where they do not.
        units: The units then, ``(records,) BATCH_UNIT.dtype`` as bytes; else empty.
    """

    topic: str
    queue_id: int
    records: int
    first_index: int
    units: bytes


@dataclass(frozen=True, slots=True)
class QueueEnd:
    """Where a queue continues behind a stretch, as far as the records say that are its own.

    Attributes:
        next_queue_offset: The one behind that of the last record, which may be smaller than others before.
    """

    topic: str
    queue_id: int
    next_queue_offset: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """Records one behind the other.

    Attributes:
        split: Number of the split that owns them.
        start: Physical offset of the first.
        end: Where the last one, or the filler behind it, ends.
        stopped: Why it ends.
        damage: What is wrong at ``end``, for :attr:`Stopped.DAMAGE`.
        records: How many records; some have no place in a queue, some have one in several.
        size_bytes: Their sizes together, fillers not included.
        head: The first record, None if there is none.
        last_store_timestamp_ms: Of the last record.
        max_store_timestamp_ms: Latest of all.
        intervals: By queue, those of one queue in log order.
        batch_runs: The same of batch queues.
        queue_ends: One for each queue that gave a record its queue offset; not of batches.
        inner_topics: Topics that have inner batches here: those belong in batch queues.
    """

    split: int
    start: int
    end: int
    stopped: Stopped
    damage: Damage | None
    records: int
    size_bytes: int
    head: Head | None
    last_store_timestamp_ms: int
    max_store_timestamp_ms: int
    intervals: tuple[Interval, ...]
    batch_runs: tuple[BatchRun, ...]
    queue_ends: tuple[QueueEnd, ...]
    inner_topics: tuple[str, ...]
