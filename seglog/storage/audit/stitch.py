"""Puts together what the splits saw: which stretches are the log, where its holes are and where it ends.

The rules are those of :mod:`seglog.storage.walk.log_scan`, and so is the result, whatever the splits: the log
goes on where a stretch ended; behind damage it goes on at the next record, which must be newer than all
before it if it may lie behind a cut; if there is none it ends. A split cannot apply them, for it does not
know what lies before it. So it may have begun in the middle of a record, or taken a record of an older life
for a beginning; where no stretch starts at the place at which the log goes on, its split is walked again
from there.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from seglog.storage.audit.split_scan import SplitScan
from seglog.storage.audit.splits import Split, owner
from seglog.storage.audit.stretches import Head, Stretch
from seglog.storage.format.record.record import Damage, RecordRow
from seglog.storage.format.record.sys_flag import takes_queue_offset
from seglog.storage.walk.log_scan import MISSING, ZERO, Hole


@dataclass(frozen=True, slots=True)
class LogOutcome:
    """The log as a whole.

    Attributes:
        stretches: Its records, in log order.
        holes: Stretches without readable records, in order.
        tail: What is wrong at the end, None if nothing was ever written there.
        end_phy_offset: Where it ends.
        walked_again: How many splits had to be walked again.
    """

    stretches: tuple[Stretch, ...]
    holes: tuple[Hole, ...]
    tail: Damage | None
    end_phy_offset: int
    walked_again: int


def stitch(
    splits: list[Split], first_phy_offset: int, seen: Iterable[Stretch], scan: SplitScan
) -> LogOutcome:
    """Returns the log that the stretches make.

    Args:
        splits: All splits of the log, in order.
        first_phy_offset: Where the log's first file starts.
        seen: What every split saw; the stretches of one split in order.
        scan: Walks splits again where that is needed.
    """
    return _Stitching(splits, first_phy_offset, seen, scan).run()


class _Stitching:
    def __init__(
        self, splits: list[Split], first_phy_offset: int, seen: Iterable[Stretch], scan: SplitScan
    ) -> None:
        self._splits: Final = splits
        ends = [split.segment_end for split in splits]
        changes = [True, *(one != other for one, other in pairwise(ends))]
        self._segment_starts = [split.start for split, begins in zip(splits, changes, strict=False) if begins]
        self._scan: Final = scan
        self._seen: list[list[Stretch]] = [[] for _ in splits]
        for stretch in seen:
            self._seen[stretch.split].append(stretch)
        self._position = first_phy_offset
        self._stretches: list[Stretch] = []
        self._holes: list[Hole] = []
        self._last_store_timestamp_ms = 0
        self._next_queue_offset: dict[tuple[str, int], int] = {}
        self._walked_again = 0

    def run(self) -> LogOutcome:
        tail: Damage | None = None
        split = owner(self._splits, self._position)
        while split is not None:
            stretch = self._starting_at(self._position, split)
            self._accept(stretch)
            split = owner(self._splits, self._position)
            damage = stretch.damage or (MISSING if split is None else None)
            if damage is not None:
                if not self._step_over(damage, split):
                    tail = None if damage.kind in (MISSING.kind, ZERO.kind) else damage
                    break
                split = owner(self._splits, self._position)
        return LogOutcome(
            tuple(self._stretches), tuple(self._holes), tail, self._position, self._walked_again
        )

    def _starting_at(self, position: int, split: Split) -> Stretch:
        for stretch in self._seen[split.number]:
            if stretch.start == position:
                return stretch
        return self._walk_again(position, split)

    def _walk_again(self, position: int, split: Split) -> Stretch:
        self._walked_again += 1
        before = [stretch for stretch in self._seen[split.number] if stretch.start < position]
        again = list(self._scan.run(split, position))
        self._seen[split.number] = before + again
        return again[0]

    def _accept(self, stretch: Stretch) -> None:
        self._position = stretch.end
        if not stretch.records:
            return
        self._stretches.append(stretch)
        self._last_store_timestamp_ms = stretch.last_store_timestamp_ms
        for end in stretch.queue_ends:
            self._next_queue_offset[end.topic, end.queue_id] = end.next_queue_offset

    def _step_over(self, damage: Damage, split: Split | None) -> bool:
        """Moves behind the damage at the position if the log goes on there."""
        start = self._position
        resumed = self._resumed(start)
        if resumed is None:
            return False
        if split is not None and self._scan.is_written(start, split):
            # A writer went on between the reading of this split and of a later one.
            self._walk_again(start, split)
            return True
        self._holes.append(Hole(start, resumed - start, damage.kind, str(damage.expected), str(damage.found)))
        self._position = resumed
        return True

    def _resumed(self, start: int) -> int | None:
        """Returns the first place behind ``start`` where a record of this life of the log lies."""
        first = bisect.bisect_right(self._splits, start, key=lambda split: split.end)
        for split in self._splits[first:]:
            may_be_cut = self._may_be_cut(start, split)
            for stretch in self._seen[split.number]:
                if stretch.start <= start or stretch.head is None:
                    continue
                if not may_be_cut or self._is_newer(stretch.head):
                    return stretch.start
                found = self._newer_within(stretch, split)
                if found is not None:
                    return found
        return None

    def _may_be_cut(self, start: int, split: Split) -> bool:
        """Returns whether records of an older life may lie in a split's file, behind ``start``."""
        begun = bisect.bisect_right(self._segment_starts, split.start)
        if self._segment_starts[begun - 1] >= start:
            return False
        following = self._segment_starts[begun : begun + 1]
        return not following or not any(
            stretch.head is not None and stretch.start >= following[0]
            for seen in self._seen[split.number + 1 :]
            for stretch in seen
        )

    def _newer_within(self, stretch: Stretch, split: Split) -> int | None:
        if stretch.max_store_timestamp_ms < self._last_store_timestamp_ms:
            return None  # all of it is from an older life
        for at, row in self._scan.candidates(stretch.start + 1, split):
            if at >= stretch.end:
                break
            if self._is_newer(_head_of(row)):
                return at
        return None

    def _is_newer(self, head: Head) -> bool:
        if head.store_timestamp_ms < self._last_store_timestamp_ms:
            return False
        if head.queue_offset is None:
            return True
        return head.queue_offset >= self._next_queue_offset.get((head.topic, head.queue_id), 0)


def _head_of(row: RecordRow) -> Head:
    queue_offset = row.queue_offset if takes_queue_offset(row.sys_flag) else None
    return Head(row.store_timestamp_ms, row.topic.decode("utf-8", "replace"), row.queue_id, queue_offset)
