"""Puts together what the splits saw: which stretches are the log, where its holes are and where it ends.

The log continues where a stretch ended; behind damage :mod:`seglog.storage.walk.behind_damage` decides, as
for the walk in one go, so the result is the same for any splits. A split cannot decide, for it does not
know what is before it. It may have begun in the middle of a record, or taken a record of an older life for a
beginning; where no stretch starts at the place at which the log continues, its split is walked again from
there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from seglog.storage.format.record.record import Damage
from seglog.storage.splits.split_scan import SplitScan
from seglog.storage.splits.splits import owner
from seglog.storage.splits.stretches import Stretch
from seglog.storage.walk.behind_damage import Head, Hole, LogEnd
from seglog.storage.walk.segment_walk import MISSING, ZERO, Split


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
        self._scan: Final = scan
        self._splits: Final = splits
        self._of_segment: defaultdict[int, list[Split]] = defaultdict(list)
        for split in splits:
            self._of_segment[split.segment_end].append(split)
        self._seen: list[list[Stretch]] = [[] for _ in splits]
        for stretch in seen:
            self._seen[stretch.split].append(stretch)
        firsts = [of_segment[0].start for of_segment in self._of_segment.values()]
        self._segment_bytes = splits[0].segment_end - splits[0].start if splits else 0
        self._end = LogEnd(self, firsts, self._segment_bytes)
        self._end.phy_offset = first_phy_offset
        self._stretches: list[Stretch] = []
        self._walked_again = 0

    def run(self) -> LogOutcome:
        tail: Damage | None = None
        while (split := owner(self._splits, self._end.phy_offset)) is not None:
            stretch = self._starting_at(self._end.phy_offset, split)
            self._accept(stretch)
            damage = stretch.damage
            if damage is None and owner(self._splits, self._end.phy_offset) is None:
                damage = MISSING
            if damage is not None and not self._end.step_over(damage):
                tail = None if damage.kind in (MISSING.kind, ZERO.kind) else damage
                break
        end = self._end
        return LogOutcome(tuple(self._stretches), tuple(end.holes), tail, end.phy_offset, self._walked_again)

    def heads(self, start: int, first_offset: int) -> Iterator[tuple[int, Head]]:
        """Yields the records of a segment that prove themselves from a place on."""
        for split in self._of_segment[first_offset + self._segment_bytes]:
            for stretch in self._seen[split.number] if split.end > start else ():
                if stretch.head is None or stretch.start < start:
                    continue
                yield stretch.start, stretch.head
                if stretch.max_store_timestamp_ms >= self._end.last_store_ms:  # else all of it is older
                    for place, head in self._scan.heads(stretch.start + 1, split):
                        if place >= stretch.end:
                            break
                        yield place, head

    def is_written(self, phy_offset: int) -> bool:
        """Returns whether a writer appended between the reading of this split and of a later one."""
        split = owner(self._splits, phy_offset)
        if split is None or not self._scan.is_written(phy_offset):
            return False
        self._walk_again(phy_offset, split)
        return True

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
        self._end.phy_offset = stretch.end
        if not stretch.records:
            return
        self._stretches.append(stretch)
        self._end.last_store_ms = stretch.last_store_timestamp_ms
        for end in stretch.queue_ends:
            self._end.next_queue_offset[end.topic, end.queue_id] = end.next_queue_offset
