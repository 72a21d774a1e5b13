"""What goes to temporary files is what it would be in memory, which it is where they have no room."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import FullError
from seglog.storage.directory.queue_files import QueueFiles, list_queue, read_units
from seglog.storage.files.files import RealFiles
from seglog.storage.kernels.walk import ROW, QueueTable, Rows
from seglog.storage.segments.scratch import Room, Scratch
from seglog.storage.walk.dispatch import dispatch
from seglog.storage.walk.growable_rows import PART_ROWS, Gathered, chosen, place_of, spliced

_FILE_BYTES = 6_000_000


def _rows(count: int, queues: int, seed: int = 1) -> Rows:
    random = np.random.default_rng(seed)
    rows = np.zeros(count, ROW)
    rows["phy_offset"] = np.arange(count) * 100
    rows["queue"] = random.integers(0, queues, count)
    rows["queue_offset"] = np.arange(count)
    rows["size_bytes"] = 100
    return rows


def _table(queues: int) -> QueueTable:
    table = QueueTable()
    for number in range(queues):
        table.number(b"T", number)
    return table


@given(st.lists(st.integers(0, 3000), max_size=8), st.floats(0.01, 1), st.sampled_from([0, 20_000, 1 << 20]))
def test_rows_are_gathered_in_the_order_in_which_they_come(
    sizes: list[int], share: float, in_memory: int
) -> None:
    gathered = Gathered(ROW, Room(in_memory))
    rows = _rows(sum(sizes), 3)
    at = 0
    for size in sizes:
        gathered.add(rows[at : at + size], share)
        at += size
    assert np.array_equal(gathered.items, rows)


@pytest.mark.parametrize("queues", [1, 4])
def test_many_rows_are_dispatched_as_few_are(queues: int) -> None:
    rows = _rows(PART_ROWS + 1000, queues)
    table = _table(queues)
    wanted = dispatch(rows, rows[:0], table, ()).plain
    found = dispatch(rows, rows[:0], table, (), Room(0)).plain
    assert found.keys() == wanted.keys()
    assert all(np.array_equal(found[key], wanted[key]) for key in wanted)


def test_chosen_rows_of_many_are_those_of_few() -> None:
    rows = _rows(PART_ROWS + 1000, 4)
    assert chosen(rows, lambda part: part["queue"] >= 0) is rows
    found = chosen(rows, lambda part: part["queue"] == 2, Room(0))
    assert np.array_equal(found, rows[rows["queue"] == 2])


def test_a_row_is_found_by_the_place_of_its_record_and_others_put_in_before_it() -> None:
    rows = _rows(1000, 1)
    assert [place_of(rows, place) for place in (0, 99, 100, 99_900, 1 << 40)] == [0, 1, 1, 999, 1000]
    found = spliced(rows[:10], 4, rows[20:22])
    assert found["phy_offset"].tolist() == [0, 100, 200, 300, 2000, 2100, 400, 500, 600, 700, 800, 900]


@pytest.mark.parametrize("files", [1, 4])
def test_units_in_a_file_are_those_in_memory(tmp_path: Path, files: int) -> None:
    for number in range(files):
        content = np.random.default_rng(number).bytes(_FILE_BYTES)
        (tmp_path / f"{number * _FILE_BYTES:020d}").write_bytes(content)
    queue = list_queue(RealFiles(), QueueFiles("T", 0, tmp_path))
    first, wanted = read_units(RealFiles(), queue, _FILE_BYTES)
    assert first == 0
    assert len(wanted) == files * _FILE_BYTES // 20
    first, found = read_units(RealFiles(), queue, _FILE_BYTES, Room(0))
    assert first == 0
    assert np.array_equal(found, wanted)


def test_without_room_for_temporary_files_rows_are_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(FullError, match="missing") as caught:
        Scratch(1)
    assert "TMPDIR" in caught.value.help
    gathered = Gathered(ROW, Room(0))
    rows = _rows(5000, 3)
    gathered.add(rows[:3000], 0.5)
    gathered.add(rows[3000:])
    assert np.array_equal(gathered.items, rows)
    assert len(Room(0).empty(5000, ROW)) == 5000
