"""Checks the entries of an index file: their physical offsets, their chains, and the keys of their records.

Pure: works on consecutive entries, as they are in a file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from seglog.storage.format.index.index import MAX_INT
from seglog.storage.format.index.index_build import KeyRows
from seglog.storage.format.index.index_view import Entries
from seglog.storage.kernels import KERNELS, NATIVE

MOST_WRONG: Final = 100
"""The most entries with a wrong predecessor that one call returns."""

NativeExtent: TypeAlias = Callable[[memoryview], tuple[int, int, bool]]
NativeFollow: TypeAlias = Callable[[memoryview, int, memoryview, int], list[tuple[int, int]]]
NativeStandFor: TypeAlias = Callable[[memoryview, memoryview, int, bool], bool]

native_extent: NativeExtent | None = None
native_follow: NativeFollow | None = None
native_stand_for: NativeStandFor | None = None
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_extent = _native.entries_extent
    native_follow = _native.follow_entries
    native_stand_for = _native.entries_stand_for


class Extent(NamedTuple):
    """The range of physical offsets of entries.

    Attributes:
        least: The least physical offset.
        greatest: The greatest physical offset.
        is_sorted: Whether the physical offsets never descend.
    """

    least: int
    greatest: int
    is_sorted: bool


def extent_of(entries: Entries) -> Extent:
    """Returns the range of physical offsets of entries.

    Args:
        entries: ``(n,) INDEX_ENTRY.dtype``, one or more.
    """
    if native_extent is not None:
        return Extent(*native_extent(_as_bytes(entries)))
    places = entries["phy_offset"].astype(np.int64)
    return Extent(int(places.min()), int(places.max()), bool((places[1:] >= places[:-1]).all()))


def follow(entries: Entries, first: int, newest: npt.NDArray[np.int32]) -> list[tuple[int, int]]:
    """Checks that each entry has the right predecessor: the entry before it in its slot.

    Args:
        entries: ``(n,) INDEX_ENTRY.dtype``.
        first: Number of the first entry in the file.
        newest: ``(slots,) i4``, the number of the newest entry of each slot before these entries, 0 for none;
            updated to include them.

    Returns:
        Number and right predecessor of the first ``MOST_WRONG`` entries that have a wrong predecessor.
    """
    if native_follow is not None:
        return native_follow(_as_bytes(entries), first, _as_bytes(newest), MOST_WRONG)
    slots = entries["key_hash"].astype(np.int64) % len(newest)
    order = np.argsort(slots, kind="stable")
    own = (first + order).astype(np.int32)
    by_slot = slots[order]
    before = newest[by_slot]
    again = by_slot[1:] == by_slot[:-1]
    before[1:][again] = own[:-1][again]
    newest[by_slot] = own  # if a slot occurs several times, the last assignment stays
    previous = np.empty_like(before)
    previous[order] = before
    wrong = np.flatnonzero(entries["previous_entry"] != previous)[:MOST_WRONG]
    return [(first + at, int(previous[at])) for at in wrong.tolist()]


def stand_for(rows: KeyRows, entries: Entries, begin_ms: int, *, starts_file: bool) -> bool:
    """Returns whether entries are those of the keys, in the same order and with the right times.

    Args:
        rows: ``(n,) KEY_ROW``.
        entries: ``(m,) INDEX_ENTRY.dtype``.
        begin_ms: Begin time of their file.
        starts_file: Whether the first entry is the first of the file; its time is relative to another begin.
    """
    if len(rows) != len(entries):
        return False
    if native_stand_for is not None:
        return native_stand_for(_as_bytes(rows), _as_bytes(entries), begin_ms, starts_file)
    same = np.array_equal(rows["phy_offset"], entries["phy_offset"])
    if not same or not np.array_equal(rows["key_hash"], entries["key_hash"]):
        return False
    if begin_ms < 0:
        return True
    seconds = seconds_since(begin_ms, rows["store_timestamp_ms"])
    is_right = entries["time_diff_s"] == seconds
    return bool(is_right[int(starts_file) :].all())


def seconds_since(
    begin_ms: int | npt.NDArray[np.int64], timestamps_ms: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Returns the time differences that entries must have; 0 while a file has no begin time."""
    return np.where(np.greater(begin_ms, 0), np.clip((timestamps_ms - begin_ms) // 1000, 0, MAX_INT), 0)


def _as_bytes(items: npt.NDArray[np.void] | npt.NDArray[np.int32]) -> memoryview:
    return np.ascontiguousarray(items).data.cast("B") if len(items) else memoryview(b"")
