"""Decides which records of an archive are restored to which queue, and in which order. Uses no Spark.

Rows are restored in the order of runs, and within a run in the order of the log. Two kinds of rows have no
place of their own in that order: placeholders or tombstones for queue offsets that are listed as missing, and
records that a later run filled in. They are placed directly before the next archived record of their queue;
after the last one if none follows; before all records if the queue has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from seglog.errors import StoreError
from seglog.spark.archive.folder import Key, archived, gaps_of, still_missing
from seglog.spark.archive.manifest import LOST, Interval, Missing, Run
from seglog.storage.format.index import INDEX_ENTRY, KEY_ROW
from seglog.storage.format.queue import CQ_UNIT_BYTES
from seglog.storage.kernels.queue_units import SPILLED
from seglog.text import size_text

_UNIT_BYTES: Final = 8 + SPILLED.itemsize + CQ_UNIT_BYTES
"""Bytes of a record beside the log: its length beside a chunk, its unit beside a segment and in a queue."""
_KEY_BYTES: Final = KEY_ROW.itemsize + INDEX_ENTRY.size_bytes
_KEYS_OF_MESSAGE: Final = 3
"""Keys of a typical message: its unique key, its tag, and one of the application."""
NOTHING_BESIDE: Final = -1
"""Stands for the first record of the archive, for a queue that has no record."""


class Inserted(NamedTuple):
    """Queue offsets ``first`` to ``end - 1`` that are placed beside the record at ``beside`` of their queue.

    ``beside`` may be :data:`NOTHING_BESIDE`. ``is_lost`` is whether the archive lists them as lost.
    """

    topic: str
    queue_id: int
    first: int
    end: int
    beside: int
    is_lost: bool = False


class RestorePlan(NamedTuple):
    """The records that are restored to a store.

    Attributes:
        intervals: The queue offsets that each queue gets, with placeholders and tombstones.
        gaps: The missing ones among them: tombstones replace lost messages, placeholders all others.
        filled: Those among them that a later run filled in.
    """

    intervals: tuple[Interval, ...]
    gaps: tuple[Inserted, ...]
    filled: tuple[Inserted, ...]

    @property
    def placeholders(self) -> int:
        """Number of placeholders that are made."""
        return sum(gap.end - gap.first for gap in self.gaps if not gap.is_lost)

    @property
    def lost(self) -> int:
        """Number of tombstones that are made."""
        return sum(gap.end - gap.first for gap in self.gaps if gap.is_lost)


class SpaceNeeded(NamedTuple):
    """The space that a restore takes on the store's file system until the new store is in place.

    Attributes:
        log_bytes: Bytes of the new segments, and as much again for the chunks of records.
        queue_bytes: Bytes of units, beside the segments and in queue files.
        key_bytes: Bytes of keys, beside the segments and in index files.
    """

    log_bytes: int
    queue_bytes: int
    key_bytes: int

    @classmethod
    def of(cls, records: int, size_bytes: int, keys: int | None = None) -> SpaceNeeded:
        """Returns the space for a number of records.

        Args:
            records: Number of messages, placeholders and tombstones.
            size_bytes: Bytes of all of them.
            keys: Number of keys of the index; None before it is known.
        """
        count = records * _KEYS_OF_MESSAGE if keys is None else keys
        return cls(2 * size_bytes, records * _UNIT_BYTES, count * _KEY_BYTES)

    @property
    def certain_bytes(self) -> int:
        """The space that is needed for any number of keys."""
        return self.log_bytes + self.queue_bytes

    @property
    def text(self) -> str:
        """The total, and its parts, as text."""
        total = size_text(self.certain_bytes + self.key_bytes)
        return (
            f"about {total}: log {size_text(self.log_bytes)}, queues {size_text(self.queue_bytes)}, key index"
            f" {size_text(self.key_bytes)}"
        )


def plan_restore(runs: Sequence[Run], ends: Mapping[Key, int], topics: frozenset[str]) -> RestorePlan:
    """Returns the plan of a restore of the runs of one store.

    Args:
        runs: The runs.
        ends: The ends of the store's queues; queues that the store lacks are left out.
        topics: Topics to restore, all if empty.

    Raises:
        StoreError: Queue offsets are neither archived nor listed as missing.
    """
    ranges, _stretches = still_missing(runs)
    intervals: list[Interval] = []
    gaps: list[Inserted] = []
    filled: list[Inserted] = []
    held = archived(runs)
    lost_of = {(one.topic, one.queue_id) for one in ranges if one.why == LOST}
    for key in sorted(held.keys() | lost_of):
        if topics and key[0] not in topics:
            continue
        missing = [one for one in ranges if (one.topic, one.queue_id) == key]
        parts = held.get(key) or [_last_lost(missing)]
        begin = ends.get(key, 0) or _begin(parts, missing)
        end = _end(parts, missing)
        if begin >= parts[-1].end:
            continue
        intervals.append(Interval(*key, begin, end))
        in_order, late = _by_order(runs, key)
        filled += [
            Inserted(*key, one.first, one.end, _beside(in_order, one.end)) for one in late if one.end > begin
        ]
        for first, stop in gaps_of(held.get(key, []), begin, end):
            _check_named(key, missing, first, stop)
            beside = _beside(in_order, stop)
            gaps += [
                Inserted(*key, max(first, one.first), min(stop, one.end), beside, one.why == LOST)
                for one in missing
                if one.first < stop and one.end > first
            ]
    return RestorePlan(tuple(intervals), tuple(gaps), tuple(filled))


def _last_lost(missing: Sequence[Missing]) -> Interval:
    """Returns the last lost range of a queue without archived records."""
    return next(Interval(*one[:4]) for one in reversed(missing) if one.why == LOST)


def _begin(parts: Sequence[Interval], missing: Sequence[Missing]) -> int:
    """Returns the begin of a queue: it includes lost messages before the first archived one."""
    begin = parts[0].first
    for one in reversed(missing):
        if one.why == LOST and one.first < begin <= one.end:
            begin = one.first
    return begin


def _end(parts: Sequence[Interval], missing: Sequence[Missing]) -> int:
    """Returns the end of a queue: lost messages after the last archived one keep their offsets too."""
    end = parts[-1].end
    for one in missing:
        if one.first <= end:
            end = max(end, one.end)
    return end


def _by_order(runs: Sequence[Run], key: Key) -> tuple[list[Interval], list[Interval]]:
    """Returns the intervals of a queue in the order of runs, and the intervals that were filled in later."""
    own = sorted(
        ((one, run.number) for run in runs for one in run.intervals if (one.topic, one.queue_id) == key),
        reverse=True,
    )
    in_order: list[Interval] = []
    late: list[Interval] = []
    lowest = None
    for one, number in own:
        if lowest is not None and number > lowest:
            late.append(one)
        else:
            in_order.append(one)
            lowest = number
    return in_order[::-1], late


def _beside(in_order: Sequence[Interval], end: int) -> int:
    if not in_order:
        return NOTHING_BESIDE
    following = [one.first for one in in_order if one.first >= end]
    return following[0] if following else in_order[-1].end - 1


def _check_named(key: Key, missing: Sequence[Missing], first: int, end: int) -> None:
    """Raises an error if one of these queue offsets is not listed as missing."""
    lacking: Iterator[tuple[int, int]] = gaps_of(missing, first, end)
    unknown = next(lacking, None)
    if unknown is not None:
        raise StoreError(
            f"the archive does not have {key[0]}/{key[1]} {unknown[0]}, so what follows cannot keep its queue"
            " offsets",
            help="leave the topic out, or import the messages with new offsets",
        )
