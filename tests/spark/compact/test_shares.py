"""Rows come to the tasks that take them, by files and packed, in the order of their makers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seglog.spark.compact.phases import LOSER
from seglog.spark.compact.shares import Groups, load_rows, packed, save_rows, unpacked
from seglog.storage.files.files import RealFiles

TAKERS = 5


def rows_of(numbers):
    rows = np.zeros(len(numbers), LOSER)
    rows["part"] = numbers
    rows["row"] = np.arange(len(numbers))
    return rows


@given(st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=9), max_size=4))
def test_each_taker_gets_its_rows_in_order(tmp_path_factory, makers):
    folder, files = tmp_path_factory.mktemp("rows"), RealFiles()
    every = [rows_of(numbers) for numbers in makers]
    found = []
    for number, rows in enumerate(every):
        save_rows(files, folder / str(number), rows, rows["part"] % TAKERS, TAKERS)
        found += packed(rows, rows["part"] % TAKERS, TAKERS)
    together = np.concatenate([rows_of([]), *every])
    for taker in range(TAKERS):
        wanted = together[together["part"] % TAKERS == taker]
        paths = [folder / str(number) for number in range(len(every))]
        np.testing.assert_array_equal(load_rows(files, paths, LOSER, taker), wanted)
        mine = (one for one in found if one[0] == taker)
        np.testing.assert_array_equal(unpacked(mine, LOSER), wanted)
    assert {path.name for path in folder.iterdir()} == {str(number) for number in range(len(every))}


def test_more_takers_than_numbers_of_sixteen_bits(tmp_path):
    rows = rows_of([70_000, 4, 65_536])
    save_rows(RealFiles(), tmp_path / "rows", rows, rows["part"], 70_001)
    assert load_rows(RealFiles(), [tmp_path / "rows"], LOSER, 70_000)["part"].tolist() == [70_000]
    assert load_rows(RealFiles(), [tmp_path / "rows"], LOSER, 0)["part"].tolist() == []


def test_what_is_written_twice_is_written_once(tmp_path):
    rows = rows_of([1, 0, 1])
    for _attempt in range(2):
        save_rows(RealFiles(), tmp_path / "rows", rows, rows["part"], 2)
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


@given(st.integers(0, 500), st.integers(1, 90))
def test_groups_hold_each_part_once_and_are_even(part_count, most):
    groups = Groups(part_count, most)
    parts = [part for group in range(groups.count) for part in groups.parts(group)]
    assert parts == list(range(part_count))
    of_parts = [group for group in range(groups.count) for _part in groups.parts(group)]
    assert groups.of(np.arange(part_count)).tolist() == of_parts
    sizes = {len(groups.parts(group)) for group in range(groups.count)}
    assert max(sizes) - min(sizes) <= 1
    assert groups.count <= most
