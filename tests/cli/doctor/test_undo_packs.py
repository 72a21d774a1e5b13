"""Undo packs that are unsound, half done or foreign, as a person meets them."""

from __future__ import annotations

import json
import os

import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.repair.repair import plan_repair
from seglog.errors import Ending, NotFoundError
from seglog.storage.files.files import RealFiles
from seglog.storage.format.ours.undo_journal import UndoEntry, UndoKind
from tests.support.command_line import Seglog
from tests.support.command_line.screen import on_screen
from tests.support.damage.packs import (
    entries_of,
    file_entry,
    outside_entries,
    plant_pack,
    store_among_others,
    surroundings,
)
from tests.support.material import golden
from tests.support.material.golden import tree_digest
from tests.support.material.stores import new_clock

FILES = RealFiles()


@pytest.fixture
def store(tmp_path):
    """A store in a folder with things that are none of its business."""
    return store_among_others(tmp_path)


@pytest.mark.parametrize("is_finished", [False, True], ids=["half done", "finished"])
@pytest.mark.parametrize("way", ["undo", "repair"])
def test_a_pack_that_names_files_outside_changes_none_of_them(seglog: Seglog, store, way, is_finished):
    entries = outside_entries(store)
    after = [one for one in entries_of(store) if one.kind is UndoKind.FILE]
    plant_pack(store, entries, after=after if is_finished else None)
    before = surroundings(store)
    if way == "undo":
        refused = seglog("undo", store)
        assert refused.exit_code == 27, refused.stderr
        assert "may lead out" in refused.stderr
    else:
        assert seglog("check", store).exit_code == 1
        assert seglog("repair", "--apply", "--yes", store).exit_code == 0
        assert (store / "seglog/stray/undo/1/journal").exists()
        assert seglog("check", store).exit_code == 0
    assert surroundings(store) == before


def test_a_pack_that_was_stopped_half_way_is_a_finding_and_the_first_step_of_the_plan(seglog: Seglog, store):
    before = tree_digest(store)
    log = next((store / "commitlog").iterdir())
    entries = entries_of(store)
    name = log.relative_to(store).as_posix()
    old = log.read_bytes()[4000:4004]
    plant_pack(store, [*entries, UndoEntry(UndoKind.BYTES, name, old, position_bytes=4000, size_bytes=4)])
    with log.open("r+b") as file:
        file.seek(4000)
        file.write(b"\xff\xff\xff\xff")
    report = check_store(store, clock=new_clock())
    assert "undo-unfinished" in {finding.code for finding in report.findings}
    assert seglog("check", store).exit_code == 1
    stated = seglog("info", store).stdout
    assert "undo-unfinished seglog/undo/1/journal" in stated
    assert "recovery  none: opening for writing is refused" in stated
    shown = seglog("repair", store)
    assert shown.exit_code == 1
    assert "  1. take back the repair that was stopped: seglog/undo/1/journal" in shown.stdout
    assert "2." not in shown.stdout  # what the half-done repair left is no damage of its own
    declined = on_screen(["repair", "--apply", str(store)], 200, stdin=b"no\n")
    assert "nothing was changed" in declined.text
    assert (store / "seglog/undo/1/journal").exists()
    done = seglog("repair", "--apply", "--yes", store)
    assert done.exit_code == 0
    assert "done: 1 step; nothing else was to be repaired" in done.stdout
    assert tree_digest(store) == before
    assert seglog("check", store).exit_code == 0


def test_a_pack_that_does_not_fit_the_store_is_refused_and_can_be_moved_aside(seglog: Seglog, store):
    plant_pack(store, [*entries_of(store), file_entry("abort"), UndoEntry(UndoKind.CREATED, "x")])
    before = tree_digest(store)
    for words in (("undo",), ("repair",), ("repair", "--apply", "--yes")):
        refused = seglog(*words, store)
        assert refused.exit_code == 28, refused.stderr
        assert f"seglog undo --discard {store} 1" in refused.stderr
    assert tree_digest(store) == before
    gone = seglog("undo", "--discard", store, "1")
    assert gone.stdout == "undo pack 1 is in seglog/stray/undo/1 now; nothing else was changed\n"
    assert (store / "seglog/stray/undo/1/journal").exists()
    assert seglog("check", store).exit_code == 0
    plant_pack(store, [])
    assert seglog("undo", "--discard", store, "1", "--json").lines[0]["place"] == "seglog/stray/undo/1.2"
    assert seglog("undo", "--discard", store, "1").exit_code == NotFoundError.exit_code
    assert seglog("undo", "--discard", store).exit_code == 2


def test_folders_that_are_no_number_are_no_packs(seglog: Seglog, store):
    for name in ("٣", "01", "-1", "0", "9" * 30, "x"):
        (store / "seglog/undo" / name).mkdir(parents=True)
        (store / "seglog/undo" / name / "journal").write_bytes(b"no")
    assert {line.partition(" is ")[2] for line in seglog("undo", "--list", store).stdout.splitlines()} == {
        "no repair that can be taken back",
        "no undo pack: no command uses or removes it; remove it yourself",
    }
    assert plan_repair(FILES, store, new_clock()).first == []


def test_a_journal_that_is_a_folder_is_called_one(seglog: Seglog, store):
    (store / "seglog/undo/1/journal").mkdir(parents=True)
    (store / "seglog/erasing").mkdir()
    (store / "seglog/undo/2").symlink_to("/tmp")
    checked = seglog("check", store).stdout
    for journal in ("seglog/undo/1/journal", "seglog/erasing"):
        assert f"found {journal} is a folder, where a file belongs" in checked
    assert "put there what belongs there, or remove it" in checked
    shown = seglog("undo", "--list", store)
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert (
        "  1  cannot be taken back: seglog/undo/1/journal is a folder, where a file belongs" in shown.stdout
    )
    assert "seglog/undo/2 is no undo pack: no command uses or removes it" in shown.stdout


def test_a_repair_of_two_packs_says_how_both_are_taken_back(seglog: Seglog, tmp_path):
    root = golden.extract("roll", tmp_path)
    first, second, third, *_ = sorted((root / "commitlog").iterdir())
    first.rename(tmp_path / "first")
    second.rename(first)
    (tmp_path / "first").rename(second)
    damaged = bytearray(third.read_bytes())
    damaged[300:900] = bytes(600)
    third.write_bytes(damaged)
    before = golden.tree_digest(root)
    done = seglog("repair", "--apply", "--yes", root)
    assert f"done; `seglog undo {root}`, run twice, takes it back (undo packs 2 and 1)" in done.stdout
    assert [seglog("undo", root).exit_code for _ in range(2)] == [0, 0]
    assert golden.tree_digest(root) == before
    told = seglog("repair", "--apply", "--yes", "--json", root).lines[-1]
    assert (told["undo"], told["undoPacks"]) == (2, [2, 1])


def test_packs_that_cannot_be_believed_are_listed_with_the_reason(seglog: Seglog, store):
    plant_pack(store, [UndoEntry(UndoKind.CREATED, "../\x1b]0;x\x07")])
    shown = seglog("undo", "--list", store)
    assert shown.exit_code == 0
    assert "cannot be taken back" in shown.stdout
    assert "\x1b" not in shown.stdout
    assert "problem" in json.loads(seglog("undo", "--list", "--json", store).stdout)


ODD = {
    "a link": (lambda path: path.symlink_to("/etc"), "file-kind", "expected a folder, found a link"),
    "a pipe": (os.mkfifo, "file-kind", "expected a folder, found a pipe"),
    "a file": (lambda path: path.write_text("x"), "", ""),
    "a folder": (lambda path: path.mkdir(), "", ""),
}
"""What may lie among undo packs: how it comes there; what check says of it under a number."""


@pytest.mark.parametrize("name", ["2", "notes"])
@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_pack_keeps_nobody_from_the_packs(seglog: Seglog, tmp_path, kind, name):
    root = golden.extract("d-zeropage-first", tmp_path)
    before = golden.file_digest(root)
    assert seglog("repair", "--apply", "--yes", root).exit_code == 0
    odd = root / "seglog" / "undo" / name
    make, code, words = ODD[kind]
    make(odd)
    shown = seglog("check", root).stdout
    if code or (kind == "a file" and name == "2"):
        assert f"file-kind seglog/undo/{name}: {words or 'expected a folder, found a file'}" in shown
    elif name == "notes":
        assert f"stray seglog/undo/{name}" in shown
    listed = seglog("undo", "--list", root)
    assert listed.exit_code == 0
    assert "finished, 11 files changed, 3 new" in listed.stdout
    if (kind, name) != ("a folder", "2"):
        assert f"seglog/undo/{name} is no undo pack" in listed.stdout
    assert seglog("undo", root).exit_code == 0
    # Without the pipe: who opens it waits for ever.
    os.renames(odd, tmp_path / "odd") if os.path.lexists(odd) else None
    assert {at: one for at, one in golden.file_digest(root).items() if at in before} == before
    odd.parent.mkdir(parents=True, exist_ok=True)
    make(odd)
    assert seglog("repair", "--apply", "--yes", root).exit_code == (
        Ending.LEFT if "file-kind" in shown else 0
    )
    number = seglog("undo", "--list", root, "--json").lines[0]["number"]
    assert seglog("undo", "--discard", root, number).exit_code == 0
