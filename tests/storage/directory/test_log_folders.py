"""A log in several folders: found by its records, shown as one, and written to where its broker would."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seglog import MessageStore
from seglog.errors import UnsupportedStoreError
from seglog.storage.directory import LogRoot, check_is_store
from seglog.storage.directory.log_paths import place_log_paths, stated_log_paths
from seglog.storage.files.files import RealFiles
from tests.support.material.golden import tree_digest
from tests.support.material.stores import SEGMENT_BYTES, SMALL, fill, new_clock, served
from tests.support.scale import scaled

FILES = 5


def make_store(root):
    """Makes a store of five log files; returns what it serves."""
    with MessageStore.open(root, clock=new_clock(), **SMALL) as store:
        while store.max_phy_offset < (FILES - 1) * SEGMENT_BYTES + 100:
            fill(store, 4)
        return served(store)


def log_names(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def spread(root, folder_of):
    """Moves each file of a log to the folder of its number."""
    for number, name in enumerate(log_names(root / "commitlog")):
        folder = root / folder_of[number % len(folder_of)]
        folder.mkdir(exist_ok=True, parents=True)
        (root / "commitlog" / name).rename(folder / name)
    return root


def read(root):
    with MessageStore.open(root, create=False, read_only=True, clock=new_clock()) as store:
        return served(store)


def state(root, *folders, more=""):
    paths = ",".join(f"/elsewhere/{one}" for one in folders)
    (root / "broker.conf").write_text(f"storePathCommitLog={paths}\n{more}")


def folders_of(root):
    with closing(LogRoot(root)) as files:
        return files.log_folders


@pytest.fixture
def root(tmp_path):
    return tmp_path / "store"


@settings(max_examples=scaled(8, 60), deadline=None)
@given(st.lists(st.sampled_from(["commitlog", "commitlog2", "b", "logs/c"]), min_size=FILES, max_size=FILES))
def test_a_log_is_read_from_whatever_folders_hold_its_files(folder_of):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "store"
        whole = make_store(root)
        spread(root, folder_of)
        assert set(folders_of(root)) == {*folder_of} - {"commitlog"}
        before = tree_digest(root)
        assert read(root) == whole
        if {*folder_of} != {"commitlog"}:
            with pytest.raises(UnsupportedStoreError, match="several folders"):
                MessageStore.open(root)
        assert tree_digest(root) == before


def test_files_of_a_stated_log_are_created_where_its_broker_creates_them(root):
    make_store(root)
    spread(root, ["commitlog", "commitlog2"])
    state(root, "commitlog2", "commitlog")
    with MessageStore.open(root, clock=new_clock()) as store:
        while store.max_phy_offset < 9 * SEGMENT_BYTES:
            fill(store, 4)
        whole = served(store)
    first, second = log_names(root / "commitlog"), log_names(root / "commitlog2")
    assert {int(name) // SEGMENT_BYTES % 2 for name in first} == {0}
    assert {int(name) // SEGMENT_BYTES % 2 for name in second} == {1}
    assert len(first) + len(second) >= 10
    assert read(root) == whole


def test_a_new_store_begins_in_the_folders_that_are_stated(root):
    said = stated_log_paths({"storePathCommitLog": f"{root}/a,{root}/b"}, "conf")
    with (
        closing(LogRoot(root, log=said)) as files,
        MessageStore.open(root, clock=new_clock(), files=files, **SMALL) as store,
    ):
        while store.max_phy_offset < 4 * SEGMENT_BYTES:
            fill(store, 4)
        whole = served(store)
    assert log_names(root / "commitlog") == []
    assert all(len(log_names(root / name)) >= 2 for name in "ab")
    assert read(root) == whole


def test_no_file_is_created_in_a_folder_that_is_stated_to_be_read_only(root):
    make_store(root)
    spread(root, ["commitlog", "commitlog2"])
    state(root, "commitlog", "commitlog2", more="readOnlyCommitLogStorePaths=/elsewhere/commitlog2\n")
    before = log_names(root / "commitlog2")
    with MessageStore.open(root, clock=new_clock()) as store:
        while store.max_phy_offset < 9 * SEGMENT_BYTES:
            fill(store, 4)
    assert log_names(root / "commitlog2") == before


def test_a_killed_store_in_several_folders_is_recovered(root, tmp_path):
    make_store(root)
    spread(root, ["commitlog", "commitlog2"])
    state(root, "commitlog", "commitlog2")
    with MessageStore.open(root, clock=new_clock(), **SMALL) as store:
        fill(store, 100)
        whole = served(store)
        killed = shutil.copytree(root, tmp_path / "killed")
    assert read(killed) == whole
    with MessageStore.open(killed, clock=new_clock()) as store:
        assert served(store) == whole


def test_the_log_is_trimmed_in_the_folder_where_its_oldest_file_is(root):
    make_store(root)
    spread(root, ["commitlog2", "commitlog"])
    state(root, "commitlog", "commitlog2")
    with MessageStore.open(root, clock=new_clock()) as store:
        store.retention.delete_before(SEGMENT_BYTES)
        assert store.min_phy_offset == SEGMENT_BYTES
    assert f"{0:020d}" not in log_names(root / "commitlog2")


def test_a_reader_sees_a_folder_that_its_writer_begins_meanwhile(root):
    make_store(root)
    said = stated_log_paths({"storePathCommitLog": f"{root}/commitlog,{root}/commitlog2"}, "conf")
    with (
        closing(LogRoot(root, log=said)) as files,
        MessageStore.open(root, clock=new_clock(), files=files) as store,
        MessageStore.open(root, read_only=True, clock=new_clock()) as reader,
    ):
        while store.max_phy_offset < 9 * SEGMENT_BYTES:
            fill(store, 4)
        assert log_names(root / "commitlog2")
        reader.refresh()
        assert served(reader) == served(store)


@pytest.mark.parametrize("name", ["commitlog.bak", "older/commitlog"])
def test_a_copy_of_the_log_beside_it_changes_nothing(name, root):
    whole = make_store(root)
    shutil.copytree(root / "commitlog", root / name)
    assert folders_of(root) == ()
    with MessageStore.open(root, clock=new_clock()) as store:
        assert served(store) == whole


def test_another_store_in_the_store_is_no_part_of_its_log(root):
    make_store(root)
    make_store(root / "other")
    shutil.rmtree(root / "commitlog")
    assert folders_of(root) == ()


@pytest.mark.parametrize("number", range(1, FILES))
def test_a_file_that_only_a_copy_of_the_log_has_is_read_and_not_buried(number, root):
    whole = make_store(root)
    shutil.copytree(root / "commitlog", root / "commitlog.bak")
    (root / "commitlog" / f"{number * SEGMENT_BYTES:020d}").unlink()
    before = tree_digest(root)
    assert read(root) == whole
    with pytest.raises(UnsupportedStoreError, match=r"commitlog\.bak/.* that .*commitlog lacks"):
        MessageStore.open(root)
    assert tree_digest(root) == before


def test_files_far_in_front_of_the_log_are_what_retention_left(root):
    make_store(root)
    (root / "older").mkdir()
    (root / "commitlog" / f"{0:020d}").rename(root / "older" / f"{0:020d}")
    (root / "commitlog" / f"{SEGMENT_BYTES:020d}").unlink()
    assert folders_of(root) == ()


def test_an_empty_file_that_was_created_ahead_in_another_folder_is_not_doubled(root):
    whole = make_store(root)
    name = f"{FILES * SEGMENT_BYTES:020d}"
    (root / "commitlog2").mkdir()
    (root / "commitlog2" / name).write_bytes(bytes(SEGMENT_BYTES))
    assert read(root) == whole
    with pytest.raises(UnsupportedStoreError, match="several folders"):
        MessageStore.open(root)
    state(root, "commitlog", "commitlog2")
    with MessageStore.open(root, clock=new_clock()) as store:
        while store.max_phy_offset < (FILES + 1) * SEGMENT_BYTES:
            fill(store, 4)
    assert name not in log_names(root / "commitlog")


def test_a_damaged_first_record_does_not_hide_a_folder_of_the_log(root):
    make_store(root)
    spread(root, ["commitlog", "commitlog2"])
    for path in (root / "commitlog2").iterdir():
        data = bytearray(path.read_bytes())
        data[30] ^= 1
        path.write_bytes(data)
    assert folders_of(root) == ("commitlog2",)


def test_a_file_layer_that_does_not_show_the_log_as_one_is_refused(root):
    make_store(root)
    assert check_is_store(RealFiles(), root)
    spread(root, ["commitlog", "commitlog2"])
    with pytest.raises(UnsupportedStoreError, match="commitlog, commitlog2"):
        check_is_store(RealFiles(), root)


@pytest.mark.parametrize("stated", [("commitlog", "gone"), ("commitlog",), ("commitlog", "b")])
def test_a_configuration_with_other_folders_than_the_store_is_refused(stated, root):
    make_store(root)
    spread(root, ["commitlog", "commitlog2", "b"])
    state(root, *stated)
    before = tree_digest(root)
    with pytest.raises(UnsupportedStoreError, match=r"broker\.conf"):
        MessageStore.open(root)
    assert tree_digest(root) == before


@pytest.mark.parametrize(("text", "paths"), [
    ("/a/log,/b/log", ("/a/log", "/b/log")),
    ("/b/log, /a/log", ("/a/log", "/b/log")),
    ("/a/log:/b/log", ("/a/log", "/b/log")),
    ("/a/log", ("/a/log",)),
    ("/a/lo:g", ("/a/lo:g",)),
])  # fmt: skip
def test_paths_have_the_order_of_rocketmq(text, paths):
    said = stated_log_paths({"storePathCommitLog": text}, "conf")
    assert said is not None
    assert said.paths == paths


def test_a_configuration_without_paths_states_none():
    assert stated_log_paths({}, "conf") is None
    assert stated_log_paths({"readOnlyCommitLogStorePaths": "/a"}, "conf") is None


def test_paths_of_this_machine_are_told_apart_by_what_they_lead_to(tmp_path, root):
    for disk in ("disk1", "disk2"):
        (tmp_path / disk / "commitlog").mkdir(parents=True)
    root.mkdir()
    (root / "commitlog").symlink_to(tmp_path / "disk2" / "commitlog")
    (root / "second").symlink_to(tmp_path / "disk1" / "commitlog")
    said = stated_log_paths(
        {"storePathCommitLog": f"{tmp_path}/disk1/commitlog,{tmp_path}/disk2/commitlog"}, "conf"
    )
    assert said is not None
    assert place_log_paths(RealFiles(), root, said, ("commitlog", "second")).names == ("second", "commitlog")
