"""Both kernels say the same of the entries of an index file, for any bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seglog.storage.format.index.index import INDEX_ENTRY, IndexGeometry
from seglog.storage.format.index.index_build import KEY_ROW
from seglog.storage.kernels.index_entries import MOST_WRONG, extent_of, follow, stand_for
from tests.support.machine.kernels import native, running
from tests.support.material.index_files import build_index_files
from tests.support.rows import every_row
from tests.support.scale import scaled

MANY = settings(max_examples=scaled(300, 30_000))
GEOMETRY = IndexGeometry(7, 64)
BEGIN_MS = 1_700_000_000_000
ints32 = st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 3)
ints64 = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
entries = st.lists(st.tuples(ints32, ints64, ints32, ints32), min_size=1, max_size=20).map(
    lambda rows: np.array(rows, INDEX_ENTRY.dtype)
)


def written(count=40):
    """Keys, and the entries that an index file has of them."""
    rows = np.zeros(count, KEY_ROW)
    rows["key_hash"] = np.arange(count) * 5 % 11
    rows["phy_offset"] = 100 * (np.arange(count) // 2)
    rows["store_timestamp_ms"] = BEGIN_MS + 700 * np.arange(count)
    (file,) = build_index_files(rows, GEOMETRY)
    return rows, np.frombuffer(file, INDEX_ENTRY.dtype, count, GEOMETRY.entries_at + INDEX_ENTRY.size_bytes)


def test_chains_that_are_as_they_were_written(kernels: str):
    _rows, stored = written()
    newest = np.zeros(GEOMETRY.slot_count, np.int32)
    assert follow(stored[:13], 1, newest) == []
    assert follow(stored[13:], 14, newest) == []
    slots = stored["key_hash"] % GEOMETRY.slot_count
    assert newest.tolist() == [
        1 + max(np.flatnonzero(slots == slot), default=-1) for slot in range(GEOMETRY.slot_count)
    ]


def test_an_entry_that_names_another_one_is_told_with_the_right_one(kernels: str):
    _rows, stored = written()
    changed = stored.copy()
    changed["previous_entry"][20] += 1
    newest = np.zeros(GEOMETRY.slot_count, np.int32)
    assert follow(changed, 1, newest) == [(21, int(stored["previous_entry"][20]))]


def test_only_the_first_wrong_entries_are_told(kernels: str):
    many = np.zeros(3 * MOST_WRONG, INDEX_ENTRY.dtype)
    many["previous_entry"] = -1
    assert [entry for entry, _ in follow(many, 5, np.zeros(1, np.int32))] == list(range(5, 5 + MOST_WRONG))


def test_entries_of_keys_stand_for_them(kernels: str):
    rows, stored = written()
    assert stand_for(rows, stored, BEGIN_MS, starts_file=True)
    assert stand_for(rows[:0], stored[:0], BEGIN_MS, starts_file=False)
    assert not stand_for(rows, stored[:-1], BEGIN_MS, starts_file=True)
    assert not stand_for(rows[1:], stored[:-1], BEGIN_MS, starts_file=True)


def test_an_entry_that_says_something_else_does_not(kernels: str):
    with every_row() as row:
        for name in ("key_hash", "phy_offset", "time_diff_s"):
            for at in (1, 17, 39):
                with row(name, at):
                    rows, stored = written()
                    changed = stored.copy()
                    changed[name][at] ^= 1
                    assert not stand_for(rows, changed, BEGIN_MS, starts_file=True)


def test_the_time_of_a_files_first_entry_and_of_a_file_without_begin_say_nothing(kernels: str):
    rows, stored = written()
    changed = stored.copy()
    changed["time_diff_s"][0] = 99
    assert stand_for(rows, changed, BEGIN_MS, starts_file=True)
    assert not stand_for(rows, changed, BEGIN_MS, starts_file=False)
    assert stand_for(rows, changed, -1, starts_file=False)
    changed["time_diff_s"] = 0
    assert stand_for(rows, changed, 0, starts_file=False)


def test_where_entries_lead(kernels: str):
    _rows, stored = written()
    assert extent_of(stored) == (0, 1900, True)
    assert extent_of(stored[::-1].copy()) == (0, 1900, False)
    assert extent_of(stored[7:8]) == (300, 300, True)


@given(entries=entries, slots=st.integers(1, 9), first=st.integers(0, 2**31 - 100))
@MANY
def test_both_kernels_say_the_same_of_any_entries(entries, slots, first):
    native()
    told = []
    for kernels in ("python", "native"):
        newest = np.zeros(slots, np.int32)
        with running(kernels):
            told.append((extent_of(entries), follow(entries, first, newest), newest.tolist()))
    assert told[0] == told[1]


@given(data=st.data(), begin_ms=ints64, starts_file=st.booleans())
@MANY
def test_both_kernels_compare_alike(data, begin_ms, starts_file):
    native()
    times = st.integers(-(2**62), 2**62) if abs(begin_ms) < 2**62 else st.just(begin_ms)
    made = data.draw(st.lists(st.tuples(ints32, ints64, times, ints32), max_size=9))
    rows = np.array([one[:3] for one in made], KEY_ROW)
    held = np.zeros(len(made), INDEX_ENTRY.dtype)
    for name in ("key_hash", "phy_offset"):
        held[name] = rows[name]
    seconds = [max(0, min(2**31 - 1, (one[2] - begin_ms) // 1000)) if begin_ms > 0 else 0 for one in made]
    held["time_diff_s"] = seconds
    told = []
    for kernels in ("python", "native"):
        with running(kernels):
            told.append(stand_for(rows, held, begin_ms, starts_file=starts_file))
    assert told == [True, True]


@pytest.mark.parametrize("first", [2**31, 2**32 - 1])
def test_numbers_that_no_entry_has_are_refused(first):
    slots, one = memoryview(bytearray(8)), memoryview(bytes(20))
    with pytest.raises(ValueError, match="numbers"):
        native().follow_entries(one, first, slots, 1)
    with pytest.raises(ValueError, match="slots"):
        native().follow_entries(one, 1, memoryview(bytearray(0)), 1)
    with pytest.raises(ValueError, match="nowhere"):
        native().entries_extent(memoryview(b""))
