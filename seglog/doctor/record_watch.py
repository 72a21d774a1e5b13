"""Looks at records while the log is walked, for what queues do not tell: keys, times, checksums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from seglog.doctor.index_entries import IndexEntries
from seglog.doctor.index_facts import IndexFacts
from seglog.doctor.key_check import NO_DIFF, KeyDiff, compare_keys
from seglog.storage.audit.stretches import Stretch
from seglog.storage.files import Files
from seglog.storage.format.index_build import KEY_ROW
from seglog.storage.kernels.keys import index_keys
from seglog.storage.kernels.walk import Rows

MINUTE_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one stretch.

    Attributes:
        records: How many records.
        with_crc: How many of them have a record CRC.
        minutes: Records and bytes by the minute since 1970 in which they were stored.
        keys: How the index differs.
    """

    records: int = 0
    with_crc: int = 0
    minutes: tuple[tuple[int, int, int], ...] = ()
    keys: KeyDiff = NO_DIFF


class RecordWatch:
    """A watch of :class:`~seglog.storage.audit.split_scan.SplitScan`.

    Args:
        index: The index, or what of it is about the split that is walked.
        files: Where it is.

    Attributes:
        seen: By the place at which a stretch starts.
    """

    def __init__(self, index: IndexFacts, files: Files) -> None:
        self._index = index
        self._entries = IndexEntries(files, index.outlines)
        self.seen: dict[int, Seen] = {}
        self._at = 0
        self._reset()

    def begin(self, phy_offset: int) -> None:
        """Begins a stretch."""
        self._at = phy_offset
        self._reset()

    def note(
        self, window: memoryview, phy_offset: int, rows: Rows, _queues: Sequence[tuple[str, int]]
    ) -> None:
        """Takes in records that follow each other from the start of the window on."""
        self._records += len(rows)
        self._note_times(rows)
        last = rows[-1]
        self._compare(window[: int(last["phy_offset"]) + int(last["size_bytes"]) - phy_offset], phy_offset)

    def end(self, stretch: Stretch) -> None:
        """Ends the stretch: behind its last record no entry may lead anywhere."""
        if self._at < stretch.end:
            held = self._entries.in_range(self._at, stretch.end)
            self._keys += compare_keys(np.empty(0, KEY_ROW), held)
        minutes = tuple(
            (minute, self._minute_records[minute], size)
            for minute, size in sorted(self._minute_bytes.items())
        )
        self.seen[stretch.start] = Seen(self._records, self._with_crc, minutes, self._keys)

    def _reset(self) -> None:
        self._records = self._with_crc = 0
        self._minute_records: Counter[int] = Counter()
        self._minute_bytes: Counter[int] = Counter()
        self._keys = NO_DIFF

    def _note_times(self, rows: Rows) -> None:
        minutes, inverse = np.unique(rows["store_timestamp_ms"] // MINUTE_MS, return_inverse=True)
        counts = np.bincount(inverse, minlength=len(minutes))
        sizes = np.bincount(inverse, rows["size_bytes"], minlength=len(minutes))
        for minute, count, size in zip(minutes.tolist(), counts.tolist(), sizes.tolist(), strict=True):
            self._minute_records[minute] += count
            self._minute_bytes[minute] += int(size)

    def _compare(self, records: memoryview, phy_offset: int) -> None:
        end = phy_offset + len(records)
        found = index_keys(records, phy_offset, tags=self._index.has_tags)
        self._with_crc += found.with_crc
        wanted = found.rows
        begun, self._at = self._at, end
        is_covered = end <= self._index.end_phy_offset and not found.lost
        if is_covered and self._entries.stand_for(wanted, begun, end):
            self._keys += KeyDiff(len(wanted))
            return
        held = self._entries.in_range(begun, end)
        if found.lost:
            # The index may know a lost message by its keys, or by what stands in its place.
            held = held[~np.isin(held["phy_offset"], found.lost)]
        if self._index.end_phy_offset < end:
            wanted = wanted[wanted["phy_offset"] < self._index.end_phy_offset]
        self._keys += replace(compare_keys(wanted, held), keys=len(found.rows))
