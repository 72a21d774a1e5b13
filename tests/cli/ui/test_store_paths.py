"""A path in a store stands for the store above it, and nothing outside of a store does."""

from __future__ import annotations

import shutil

import pytest

from seglog.errors import NotAStoreError
from tests.support.command_line import Seglog
from tests.support.hostile.commands import READING, Subject, words_of
from tests.support.material import golden

FIRST = "00000000000000000000"


@pytest.fixture
def root(tmp_path):
    return golden.extract("broker-store", tmp_path)


def taken(ran, given, root):
    return f"note: {given} is in the store {root}, which is taken\n" in ran.stderr


@pytest.mark.parametrize(
    "inside",
    [
        "commitlog",
        f"commitlog/{FIRST}",
        "consumequeue",
        "config",
        "config/topics.json",
        "checkpoint",
        "index",
    ],
)
def test_a_path_in_a_store_stands_for_the_store(seglog: Seglog, root, inside):
    given = root / inside
    assert given.exists()
    said = seglog("info", given)
    plain = seglog("info", root)
    assert (said.exit_code, said.stdout) == (plain.exit_code, plain.stdout)
    assert taken(said, given, root)
    assert plain.stderr == ""


def test_a_file_of_a_queue_does_too(seglog: Seglog, root):
    given = next(path for path in (root / "consumequeue").rglob(FIRST))
    assert len(given.relative_to(root).parts) == 4
    assert taken(seglog("queues", given), given, root)


def test_check_takes_a_file_of_the_log(seglog: Seglog, root):
    assert seglog("check", root / "commitlog" / FIRST).exit_code == seglog("check", root).exit_code == 0


@pytest.mark.parametrize("name", sorted(name for name in READING if " " not in name))
def test_every_kind_of_command_takes_one(seglog: Seglog, root, tmp_path, name):
    subject = Subject(root, tmp_path, "LiveTopic", "cg1")
    words = words_of(name, subject)
    words = [word if word != str(root) else str(root / "commitlog") for word in words]
    assert taken(seglog(*words), root / "commitlog", root)


def test_what_adds_goes_to_the_store_above_and_makes_none_in_its_log(seglog: Seglog, root):
    assert taken(seglog("put", root / "commitlog", "T", "x"), root / "commitlog", root)
    assert "FOUND, 1 message" in seglog("get", root, "T").stdout
    assert not (root / "commitlog" / "commitlog").exists()


@pytest.mark.parametrize(
    ("folder", "given", "above"),
    [
        (".", "commitlog", "."),
        ("commitlog", FIRST, ".."),
        ("commitlog", ".", ".."),
        ("..", f"broker-store/commitlog/{FIRST}", "broker-store"),
        ("config", f"../commitlog/{FIRST}", ".."),
    ],
)
def test_a_relative_path_is_looked_at_from_where_one_is(
    seglog: Seglog, root, monkeypatch, folder, given, above
):
    monkeypatch.chdir(root / folder)
    shown = root if above == ".." and given in (FIRST, ".") else above
    assert taken(seglog("info", given), given, shown)


def test_a_branch_is_a_store_of_its_own_whatever_is_left_of_it(seglog: Seglog, root):
    assert seglog("branch", "create", root, "b").exit_code == 0
    branch = root / "seglog" / "branches" / "b"
    assert taken(seglog("info", branch / "commitlog"), branch / "commitlog", branch)
    assert seglog("info", branch).stderr == ""
    for path in list(branch.iterdir()):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (branch / "notes").write_text("left")
    before = golden.tree_digest(root)
    for given in (branch, branch / "notes", root / "seglog"):
        refused = seglog("repair", given, "--apply", "--yes")
        assert (refused.exit_code, "note:" in refused.stderr) == (NotAStoreError.exit_code, False)
    assert golden.tree_digest(root) == before


def test_a_store_in_a_folder_called_commitlog_is_that_store(seglog: Seglog, root, tmp_path):
    (tmp_path / "commitlog").mkdir()
    moved = root.rename(tmp_path / "commitlog" / "mine")
    assert seglog("info", moved).stderr == ""
    assert taken(seglog("info", moved / "commitlog" / FIRST), moved / "commitlog" / FIRST, moved)
    outer = seglog("info", tmp_path / "commitlog")
    assert (outer.exit_code, "note:" in outer.stderr) == (NotAStoreError.exit_code, False)


def test_a_folder_of_a_name_of_ours_in_no_store_is_none(seglog: Seglog, tmp_path):
    for inside in ("commitlog/file", "config/topics.json", "consumequeue.txt"):
        given = tmp_path / "x" / inside
        given.parent.mkdir(parents=True, exist_ok=True)
        given.write_text("no log")
        refused = seglog("info", given)
        assert (refused.exit_code, "note:" in refused.stderr) == (NotAStoreError.exit_code, False)


def test_a_file_beside_those_of_a_store_is_none_of_it(seglog: Seglog, root):
    (root / "notes.txt").write_text("mine")
    refused = seglog("info", root / "notes.txt")
    assert (refused.exit_code, "note:" in refused.stderr) == (NotAStoreError.exit_code, False)


def test_a_link_leads_neither_into_a_store_nor_out_of_it(seglog: Seglog, root, tmp_path):
    (tmp_path / "to-log").symlink_to(root / "commitlog")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("outside")
    (root / "commitlog" / "out").symlink_to(elsewhere)
    (root / "index").rename(tmp_path / "index")
    (root / "index").symlink_to(tmp_path / "index")
    outside = [
        tmp_path / "to-log",
        tmp_path / "to-log" / FIRST,
        root / "commitlog" / "out",
        root / "commitlog" / "out" / "file",
        root / "commitlog" / "out" / ".." / "elsewhere" / "file",
        root / "index",
    ]
    before = golden.tree_digest(tmp_path)
    for given in outside:
        assert given.exists()
        refused = seglog("repair", given, "--apply", "--yes")
        assert (refused.exit_code, "note:" in refused.stderr) == (NotAStoreError.exit_code, False), given
    assert golden.tree_digest(tmp_path) == before


def test_a_store_that_is_reached_by_a_link_is_the_link(seglog: Seglog, root, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(root)
    assert taken(seglog("info", link / "commitlog"), link / "commitlog", link)


def test_what_is_not_there_is_in_no_store(seglog: Seglog, root):
    refused = seglog("info", root / "commitlog" / "00000000000000000001")
    assert "note:" not in refused.stderr
    assert "there is no store at" in refused.stderr


@pytest.mark.parametrize("command", ["repair", "check", "info", "undo"])
def test_a_folder_above_a_store_is_no_store_and_the_store_in_it_is_named(seglog: Seglog, root, command):
    (root.parent / "aaa").mkdir()
    ran = seglog(command, root.parent)
    assert ran.exit_code == NotAStoreError.exit_code
    assert f"{root.parent} is no RocketMQ store: it holds aaa, broker-store, but no commitlog/" in ran.stderr
    assert f"help:  give the folder that holds commitlog/, such as {root}\n" in ran.stderr


def test_only_what_makes_stores_is_told_of_an_empty_folder(seglog: Seglog, tmp_path):
    (tmp_path / "notes.txt").touch()
    new = "; for a new store, a folder that is empty or not there yet"
    assert new in seglog("put", tmp_path, "T", "x").stderr
    for words in (["repair"], ["check"], ["get"], ["tx", "ls"]):
        ran = seglog(*words, tmp_path, *["T"] * (words == ["get"]))
        assert (ran.exit_code, new in ran.stderr) == (NotAStoreError.exit_code, False)
        assert "give the folder that holds commitlog/ (storePathRootDir of broker.conf)\n" in ran.stderr
