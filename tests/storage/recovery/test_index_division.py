"""Index files are divided as those of the store were; where nothing shows how, no file is made by a guess."""

from __future__ import annotations

import shutil

import pytest

from seglog import MessageStore
from seglog.doctor.repair.repair import repair_store
from seglog.storage.directory.index_files import list_index_files
from seglog.storage.files.files import RealFiles
from seglog.storage.format.index import DEFAULT_INDEX_GEOMETRY, IndexGeometry
from tests.support.material import golden
from tests.support.material.stores import SMALL, SMALL_INDEX, new_clock, read_all

DIVISION = IndexGeometry(500, 2000)


def of_rocketmq(tmp_path, *, length_bytes):
    """A store that RocketMQ made with a division of its own; every index file is random bytes."""
    root = golden.extract("roll", tmp_path)
    known, damaged = list_index_files(RealFiles(), root)
    assert {file.geometry for file in known} == {DIVISION}
    assert damaged == []
    for file in known:
        with file.path.open("wb") as opened:
            opened.write(b"\x5a" * 4096)
            opened.truncate(length_bytes)
    return root


def divisions(root):
    known, damaged = list_index_files(RealFiles(), root)
    return {file.geometry for file in known}, damaged


def found_by_key(root):
    with MessageStore.open(root, read_only=True) as store:
        first = next(one for one in read_all(store, "TopicA", 0) if one.keys)
        return [message.queue_offset for message in store.query("TopicA", first.keys[0])]


def test_an_opening_makes_no_file_where_nothing_shows_how_and_finds_every_key(tmp_path):
    root = of_rocketmq(tmp_path, length_bytes=DIVISION.file_size_bytes)
    for _opening in range(2):
        with MessageStore.open(root, clock=new_clock()) as store:
            assert "index-missing" in {finding.code for finding in store.recovery.findings}
            put = store.put("TopicA", b"later", keys="of-later")
            assert put.queue_offset in [message.queue_offset for message in store.query("TopicA", "of-later")]
        assert divisions(root) == (set(), [])
        assert found_by_key(root)


def test_an_opening_makes_them_by_the_division_that_it_is_given(tmp_path):
    root = of_rocketmq(tmp_path, length_bytes=DIVISION.file_size_bytes)
    MessageStore.open(root, clock=new_clock(), index_geometry=DIVISION).close()
    assert divisions(root) == ({DIVISION}, [])
    assert found_by_key(root)


def test_a_damaged_file_of_the_default_length_shows_the_default(tmp_path):
    root = of_rocketmq(tmp_path, length_bytes=DEFAULT_INDEX_GEOMETRY.file_size_bytes)
    repaired = shutil.copytree(root, tmp_path / "repaired")
    MessageStore.open(root, clock=new_clock()).close()
    repair_store(RealFiles(), repaired, new_clock(), lambda _plan: True)
    assert divisions(root) == divisions(repaired) == ({DEFAULT_INDEX_GEOMETRY}, [])


def test_what_a_repair_leaves_to_rocketmq_no_opening_makes_by_a_guess(tmp_path):
    root = of_rocketmq(tmp_path, length_bytes=DIVISION.file_size_bytes)
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    MessageStore.open(root, clock=new_clock()).close()
    assert divisions(root) == (set(), [])
    MessageStore.open(root, clock=new_clock(), index_geometry=DIVISION).close()
    assert divisions(root) == ({DIVISION}, [])
    assert found_by_key(root)


def test_a_store_of_ours_is_opened_by_what_was_written_down(tmp_path):
    root = tmp_path / "s"
    with MessageStore.open(root, clock=new_clock(), **SMALL, **SMALL_INDEX) as store:
        for number in range(40):
            store.put("T", b"body", keys=f"k{number}")
    known, _damaged = list_index_files(RealFiles(), root)
    for file in known:
        file.path.write_bytes(b"\x5a" * SMALL_INDEX["index_geometry"].file_size_bytes)
    with MessageStore.open(root, clock=new_clock()) as store:
        assert len(list(store.query("T", "k7"))) == 1
    assert divisions(root) == ({SMALL_INDEX["index_geometry"]}, [])


@pytest.mark.parametrize("keys", [None, "k"])
def test_a_new_store_writes_its_division_down(tmp_path, keys):
    root = tmp_path / "s"
    with MessageStore.open(root, clock=new_clock(), **SMALL) as store:
        store.put("T", b"body", keys=keys)
    for path in (root / "index").iterdir() if keys else ():
        path.unlink()
    with MessageStore.open(root, clock=new_clock()) as store:
        store.put("T", b"body", keys="k")
    assert divisions(root) == ({DEFAULT_INDEX_GEOMETRY}, [])
