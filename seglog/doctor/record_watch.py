"""Looks at records while the log is walked, for what queues do not tell: keys, times, checksums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.doctor.index_entries import IndexEntries
from seglog.doctor.key_check import NO_DIFF, KeyDiff, compare_keys
from seglog.storage.audit.stretches import Stretch
from seglog.storage.format import properties as props
from seglog.storage.format.record import HEAD_V4
from seglog.storage.format.tombstone import LOST_FLAG
from seglog.storage.kernels.keys import index_keys
from seglog.storage.kernels.walk import Rows

MINUTE_MS: Final = 60_000
_LOST_FLAG: Final = np.frombuffer(LOST_FLAG.to_bytes(4, "big"), np.uint8)
_CRC_NAME: Final = np.frombuffer(props.CRC_NAME, np.uint8)

_Ints = npt.NDArray[np.int64]


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


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """What of the index decides which keys records must have there.

    Attributes:
        entries: Its entries.
        has_tags: Whether tags are among its keys.
        end_phy_offset: Records from here on need no entries: the index of a store that was not closed
            trails the log.
    """

    entries: IndexEntries
    has_tags: bool
    end_phy_offset: int


class RecordWatch:
    """A watch of :class:`~seglog.storage.audit.split_scan.SplitScan`.

    Args:
        index: The index.

    Attributes:
        seen: By the place at which a stretch starts.
    """

    def __init__(self, index: IndexFacts) -> None:
        self._index = index
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
        sizes = rows["size_bytes"].astype(np.int64)
        starts = rows["phy_offset"] - phy_offset
        ends = starts + sizes
        size = int(ends[-1])
        self._records += len(rows)
        self._with_crc += _count_crcs(window, starts, ends)
        self._note_times(rows)
        self._compare(window[:size], phy_offset, starts)

    def end(self, stretch: Stretch) -> None:
        """Ends the stretch: behind its last record no entry may lead anywhere."""
        if self._at < stretch.end:
            held = self._index.entries.in_range(self._at, stretch.end)
            self._keys += compare_keys(index_keys(memoryview(b""), 0, tags=False), held)
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

    def _compare(self, records: memoryview, phy_offset: int, starts: _Ints) -> None:
        end = phy_offset + len(records)
        wanted = index_keys(records, phy_offset, tags=self._index.has_tags)
        held = self._index.entries.in_range(self._at, end)
        self._at = end
        lost = _tombstones(records, starts) + phy_offset
        if len(lost):
            # The index may know a lost message by its keys, or by what stands in its place.
            wanted = wanted[~np.isin(wanted["phy_offset"], lost)]
            held = held[~np.isin(held["phy_offset"], lost)]
        keys = len(wanted)
        if self._index.end_phy_offset < end:
            wanted = wanted[wanted["phy_offset"] < self._index.end_phy_offset]
        self._keys += replace(compare_keys(wanted, held), keys=keys)


def _count_crcs(window: memoryview, starts: _Ints, ends: _Ints) -> int:
    at = ends - props.CRC_PROPERTY_BYTES
    at = at[at > starts]
    content = np.frombuffer(window, np.uint8)
    found = content[at[:, None] + np.arange(len(_CRC_NAME))] == _CRC_NAME
    return int(found.all(axis=1).sum())


def _tombstones(records: memoryview, starts: _Ints) -> _Ints:
    """Returns where the tombstones are among records, by the flag that every one has."""
    content = np.frombuffer(records, np.uint8)
    at = HEAD_V4.offsets["flag"] + np.arange(len(_LOST_FLAG))
    is_lost = (content[starts[:, None] + at] == _LOST_FLAG).all(axis=1)
    found: _Ints = starts[is_lost]
    return found
