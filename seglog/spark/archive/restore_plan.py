"""What of an archive comes into which queue, and in which order. No Spark in here.

Rows come back in the order of runs, and within a run in that of the log. Two kinds of rows have no place of
their own in that order, and go directly before the next archived record of their queue (behind the last one
where none follows, before all where the queue has none): placeholders or tombstones for queue offsets that
are named as missing, and records that a later run filled in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from seglog.errors import StoreError
from seglog.spark.archive.folder import Key, archived, gaps_of, still_missing
from seglog.spark.archive.manifest import LOST, Interval, Missing, Run

NOTHING_BESIDE: Final = -1
"""Stands for the first record of the archive: the queue itself has none."""


class Inserted(NamedTuple):
    """Queue offsets ``first`` to ``end - 1`` that go beside the record at ``beside`` of their queue.

    ``beside`` may be :data:`NOTHING_BESIDE`. ``is_lost`` is whether the archive names them as lost.
    """

    topic: str
    queue_id: int
    first: int
    end: int
    beside: int
    is_lost: bool = False


class RestorePlan(NamedTuple):
    """What comes into a store.

    Attributes:
        intervals: What comes into each queue, placeholders and tombstones among it.
        gaps: What of it is missing: tombstones take the place of what is lost, placeholders that of the rest.
        filled: What of it a later run filled in.
    """

    intervals: tuple[Interval, ...]
    gaps: tuple[Inserted, ...]
    filled: tuple[Inserted, ...]

    @property
    def placeholders(self) -> int:
        """How many placeholders are made."""
        return sum(gap.end - gap.first for gap in self.gaps if not gap.is_lost)

    @property
    def lost(self) -> int:
        """How many tombstones are made."""
        return sum(gap.end - gap.first for gap in self.gaps if gap.is_lost)


def plan_restore(runs: Sequence[Run], ends: Mapping[Key, int], topics: frozenset[str]) -> RestorePlan:
    """Returns what of the runs of one store comes into a store.

    Args:
        runs: The runs.
        ends: Where the queues of the store end; those that it has not are left out.
        topics: Topics that are wanted, all if empty.

    Raises:
        StoreError: Queue offsets are neither archived nor named as missing.
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
    """Returns the last lost range of a queue of which nothing is archived."""
    return next(Interval(*one[:4]) for one in reversed(missing) if one.why == LOST)


def _begin(parts: Sequence[Interval], missing: Sequence[Missing]) -> int:
    """Returns where a queue begins: lost messages before the first archived one are not forgotten."""
    begin = parts[0].first
    for one in reversed(missing):
        if one.why == LOST and one.first < begin <= one.end:
            begin = one.first
    return begin


def _end(parts: Sequence[Interval], missing: Sequence[Missing]) -> int:
    """Returns where a queue ends: lost messages behind the last archived one keep their offsets too."""
    end = parts[-1].end
    for one in missing:
        if one.first <= end:
            end = max(end, one.end)
    return end


def _by_order(runs: Sequence[Run], key: Key) -> tuple[list[Interval], list[Interval]]:
    """Returns the intervals of a queue that are in the order of runs, and those that were filled in later."""
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
    """Raises if one of these queue offsets is not named as missing."""
    lacking: Iterator[tuple[int, int]] = gaps_of(missing, first, end)
    unknown = next(lacking, None)
    if unknown is not None:
        raise StoreError(
            f"the archive does not have {key[0]}/{key[1]} {unknown[0]}, so what follows cannot keep its queue"
            " offsets",
            help="leave the topic out, or import the messages with new offsets",
        )
