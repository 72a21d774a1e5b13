"""Observes records during the walk of the log, for facts that queues do not hold: keys, times, checksums."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np

from seglog.storage.files import Files
from seglog.storage.index_check import NO_DIFF, IndexFacts, KeyCheck, KeyDiff
from seglog.storage.kernels.index_keys import RecordKeys
from seglog.storage.kernels.walk import Rows
from seglog.storage.splits import Stretch

MINUTE_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Seen:
    """The facts about the records of one stretch.

    Attributes:
        records: Number of records.
        with_crc: Number of them that have a record CRC.
        placeholders: Number of them that replace messages which a compaction dropped.
        minutes: Records and bytes by the minute since 1970 in which they were stored.
        keys: Differences between records and index.
    """

    records: int = 0
    with_crc: int = 0
    placeholders: int = 0
    minutes: tuple[tuple[int, int, int], ...] = ()
    keys: KeyDiff = NO_DIFF


class RecordWatch:
    """An observer for :class:`~seglog.storage.splits.split_scan.SplitScan`.

    Args:
        index: The index, or its part about the split that is walked.
        files: Access to the files.

    Attributes:
        seen: The facts about each stretch, by the place where it starts.
    """

    def __init__(self, index: IndexFacts, files: Files) -> None:
        self._check = KeyCheck(index, files)
        self.seen: dict[int, Seen] = {}
        self._reset()

    def begin(self, phy_offset: int) -> None:
        """Begins a stretch."""
        self._check.begin(phy_offset)
        self._reset()

    @property
    def tags(self) -> bool:
        """Whether the observer needs tags among the keys."""
        return self._check.tags

    def note(self, rows: Rows, keys: RecordKeys) -> None:
        """Adds the next records, which follow the previous ones."""
        self._records += len(rows)
        self._with_crc += keys.with_crc
        self._placeholders += keys.placeholders
        self._note_times(rows)
        last = rows[-1]
        self._check.note(keys, int(last["phy_offset"]) + int(last["size_bytes"]))

    def end(self, stretch: Stretch) -> None:
        """Ends the stretch: no index entry may lead to a place after its last record."""
        self._check.end(stretch.end)
        minutes = tuple(
            (minute, self._minute_records[minute], size)
            for minute, size in sorted(self._minute_bytes.items())
        )
        self.seen[stretch.start] = Seen(
            self._records, self._with_crc, self._placeholders, minutes, self._check.diff
        )

    def _reset(self) -> None:
        self._records = self._with_crc = self._placeholders = 0
        self._minute_records: Counter[int] = Counter()
        self._minute_bytes: Counter[int] = Counter()
        self._check.diff = NO_DIFF

    def _note_times(self, rows: Rows) -> None:
        times = rows["store_timestamp_ms"]
        first = int(times.min()) // MINUTE_MS
        if int(times.max()) // MINUTE_MS == first:  # true for most windows
            self._minute_records[first] += len(rows)
            self._minute_bytes[first] += int(rows["size_bytes"].sum(dtype=np.int64))
            return
        minutes, inverse = np.unique(times // MINUTE_MS, return_inverse=True)
        counts = np.bincount(inverse, minlength=len(minutes))
        sizes = np.bincount(inverse, rows["size_bytes"], minlength=len(minutes))
        for minute, count, size in zip(minutes.tolist(), counts.tolist(), sizes.tolist(), strict=True):
            self._minute_records[minute] += count
            self._minute_bytes[minute] += int(size)
