"""Holds the key index against the log: one window of records at a time, as a walk comes upon them.

The index can show damage that no checksum covers: without ``__CRC32#`` a flipped bit in a key passes every
check of its record, but the index has a hash of the key as it was. It is not believed over the log.

Memory: the keys of one window, a few pieces of the index, and the places of records that differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.files.files import Files
from seglog.storage.format.index.index_build import KEY_ROW, KeyRows
from seglog.storage.index_check.index_coverage import IndexFacts
from seglog.storage.index_check.index_entries import HeldEntries, IndexEntries
from seglog.storage.kernels.index_entries import seconds_since
from seglog.storage.kernels.index_keys import RecordKeys

_PAIR: Final = np.dtype([("phy_offset", "i8"), ("key_hash", "i4")])
_MAX_CHANGED: Final = 1000
"""Records of one window that are named one by one; more of them are counted."""


@dataclass(frozen=True, slots=True)
class Places:
    """Records, by how many they are and where the first and the last one start; -1 without any."""

    count: int = 0
    first: int = -1
    last: int = -1

    @classmethod
    def of(cls, phy_offsets: npt.NDArray[np.int64]) -> Places:
        """Returns records, each counted once."""
        places = np.unique(phy_offsets)
        return cls(len(places), int(places[0]), int(places[-1])) if len(places) else cls()

    def __add__(self, other: Places) -> Places:
        if not self.count or not other.count:
            return self if self.count else other
        first, last = min(self.first, other.first), max(self.last, other.last)
        return Places(self.count + other.count, first, last)


NOWHERE: Final = Places()


@dataclass(frozen=True, slots=True)
class KeyDiff:
    """How the index differs from the log.

    Attributes:
        keys: Keys that the records have.
        changed: Where records lie of which the index has other keys.
        absent: Records of which it lacks keys.
        stray: Places that it has entries of, where no record has such a key.
        late: Records of which it has another time.
    """

    keys: int = 0
    changed: tuple[int, ...] = ()
    absent: Places = NOWHERE
    stray: Places = NOWHERE
    late: Places = NOWHERE

    def __add__(self, other: KeyDiff) -> KeyDiff:
        return KeyDiff(
            self.keys + other.keys,
            self.changed + other.changed,
            self.absent + other.absent,
            self.stray + other.stray,
            self.late + other.late,
        )


NO_DIFF: Final = KeyDiff()


class KeyCheck:
    """Holds the records of a walk against an index. One thread at a time.

    Args:
        index: The index, or what of it is about the part of the log that is walked.
        files: Where it is.

    Attributes:
        diff: How it differs from the records so far.
    """

    def __init__(self, index: IndexFacts, files: Files) -> None:
        self._index = index
        self._entries = IndexEntries(files, index.outlines)
        self._at = 0
        self.diff = NO_DIFF

    @property
    def tags(self) -> bool:
        """Whether tags are among the keys of the index."""
        return self._index.has_tags

    def begin(self, phy_offset: int) -> None:
        """Begins a stretch of the log without holes."""
        self._at = phy_offset

    def note(self, found: RecordKeys, end: int) -> None:
        """Compares the keys of the next records.

        Args:
            found: Their keys, with tags if :attr:`tags`.
            end: Where the last of these records ends.
        """
        wanted = found.rows
        begun, self._at = self._at, end
        is_covered = end <= self._index.end_phy_offset and not found.lost
        if is_covered and self._entries.stand_for(wanted, begun, end):
            self.diff += KeyDiff(len(wanted))
            return
        held = self._entries.in_range(begun, end)
        if found.lost:
            # The index may know a lost message by its keys, or by what stands in its place.
            held = held[~np.isin(held["phy_offset"], found.lost)]
        if self._index.end_phy_offset < end:
            # A writer may be within the keys of the newest record: neither side counts there.
            wanted, held = (rows[rows["phy_offset"] < self._index.end_phy_offset] for rows in (wanted, held))
        self.diff += replace(compare_keys(wanted, held), keys=len(found.rows))

    def end(self, phy_offset: int) -> None:
        """Ends the stretch: after its last record no entry may lead anywhere in it."""
        if self._at < phy_offset:
            self.diff += compare_keys(np.empty(0, KEY_ROW), self._entries.in_range(self._at, phy_offset))


def compare_keys(wanted: KeyRows, held: HeldEntries) -> KeyDiff:
    """Returns how entries differ from the keys of the records.

    Args:
        wanted: ``(n,) KEY_ROW``, the keys of a stretch of the log, in order.
        held: ``(m,) HELD``, the entries about it, in the order of the files.
    """
    same = (
        len(wanted) == len(held)
        and np.array_equal(wanted["phy_offset"], held["phy_offset"])
        and np.array_equal(wanted["key_hash"], held["key_hash"])
    )
    if same:
        return KeyDiff(
            len(wanted), late=Places.of(wanted["phy_offset"][late(wanted["store_timestamp_ms"], held)])
        )
    there, known = np.unique(_pairs(wanted)), np.unique(_pairs(held))
    missing, extra = np.setdiff1d(there, known), np.setdiff1d(known, there)
    # An entry about a record that has other keys: one of both is damaged, and the record may be.
    changed = np.intersect1d(there["phy_offset"], extra["phy_offset"])
    own = held[np.isin(_pairs(held), there)]
    own_ms = wanted["store_timestamp_ms"][np.searchsorted(wanted["phy_offset"], own["phy_offset"])]
    absent = missing["phy_offset"][~np.isin(missing["phy_offset"], changed)]
    stray = extra["phy_offset"][~np.isin(extra["phy_offset"], changed)]
    return KeyDiff(
        len(wanted),
        tuple(changed[:_MAX_CHANGED].tolist()),
        Places.of(absent),
        Places.of(np.concatenate([stray, changed[_MAX_CHANGED:]])),
        Places.of(own["phy_offset"][late(own_ms, own)]),
    )


def _pairs(rows: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    """Returns place and key hash of rows, one after the other."""
    pairs = np.empty(len(rows), _PAIR)
    for name in ("phy_offset", "key_hash"):
        pairs[name] = rows[name]
    return pairs


def late(store_ms: npt.NDArray[np.int64], held: HeldEntries) -> npt.NDArray[np.int64]:
    """Returns which entries have another time than the records that they are about.

    Args:
        store_ms: The time of the record of each.
        held: ``(n,) HELD``.
    """
    begin_ms = held["begin_ms"]
    wrong = (begin_ms >= 0) & (held["time_diff_s"] != seconds_since(begin_ms, store_ms))
    return np.flatnonzero(wrong)
