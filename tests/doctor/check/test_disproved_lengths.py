"""``lengths.conf`` with a right checksum that the files of the store disprove is named and corrected."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Any

import pytest

from seglog import MessageStore
from seglog.doctor.check.check import check_store
from seglog.storage.directory.broker_conf import encode_lengths, read_lengths
from seglog.storage.directory.geometry import FileSizes
from seglog.storage.files.files import RealFiles
from seglog.storage.format.index.index import IndexGeometry
from tests.doctor.check.test_lengths import served
from tests.support.damage.treatment import run
from tests.support.material import golden
from tests.support.material.stores import new_clock
from tests.support.narrow import not_none

RIGHT = FileSizes(2000, IndexGeometry(500, 2000), 65536)
WRONG: dict[str, Any] = {
    "segment_bytes": 1 << 20,
    "queue_file_bytes": 400,
    "index": IndexGeometry(5_000_000, 20_000_000),
}


def store_saying(folder, sizes):
    root = golden.extract("roll", folder)
    (root / "seglog").mkdir()
    (root / "seglog" / "lengths.conf").write_bytes(encode_lengths(sizes))
    return root


def own(root):
    return [one for one in check_store(root, clock=new_clock()).findings if one.code == "own-damaged"]


@pytest.mark.parametrize("name", WRONG)
def test_a_length_that_the_files_disprove_is_named_and_corrected(name, tmp_path):
    root = store_saying(tmp_path, replace(RIGHT, **{name: WRONG[name]}))
    assert {one.file for one in own(root)} == {"seglog/lengths.conf"}
    before = served(root)
    opened = shutil.copytree(root, tmp_path / "opened")
    assert run("repair", "--apply", "--yes", root)[0] == 0
    assert own(root) == []
    assert read_lengths(RealFiles(), root) == RIGHT
    MessageStore.open(opened, clock=new_clock()).close()
    assert read_lengths(RealFiles(), opened) == RIGHT, "opening keeps no claim that files disprove"
    assert served(root) == served(opened) == before


def test_lengths_that_the_files_have_are_right(tmp_path):
    assert own(store_saying(tmp_path, RIGHT)) == []


def test_an_index_that_is_lost_is_made_of_the_division_that_it_had_by_opening_and_repair(tmp_path):
    root = golden.extract("roll", tmp_path)
    MessageStore.open(root, clock=new_clock()).close()
    assert read_lengths(RealFiles(), root).index == RIGHT.index
    shutil.rmtree(root / "index")
    opened = shutil.copytree(root, tmp_path / "opened")
    MessageStore.open(opened, clock=new_clock()).close()
    assert run("repair", "--apply", "--yes", root)[0] == 0
    sizes = [{path.stat().st_size for path in (one / "index").iterdir()} for one in (root, opened)]
    assert sizes == [{not_none(RIGHT.index).file_size_bytes}] * 2
