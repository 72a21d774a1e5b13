"""A change of a store that is made through an undo pack can be taken back, whenever it was stopped."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from seglog.doctor.draft.changes import changes_of
from seglog.doctor.draft.draft_files import DraftFiles
from seglog.doctor.plans.apply import apply_changes
from seglog.doctor.plans.unfinished import unfinished
from seglog.doctor.undo.undo import undo_repair
from seglog.doctor.undo.undo_pack import list_packs, pack_folder
from seglog.doctor.undo.undo_writing import remove_leftovers
from seglog.errors import CorruptError, NotFoundError, UndoError
from seglog.storage.files.files import RealFiles, Stamp
from seglog.storage.small_files import UNDO
from tests.support.crash.crash_files import CrashFiles, KilledError
from tests.support.material.golden import tree_digest
from tests.support.scale import chance, scaled

ROOT = Path("/store")
SEEDS = scaled(3, 200)
BEFORE = {
    "commitlog/0": random.Random(1).randbytes(9000) + bytes(5000),
    "commitlog/1": bytes(7000) + b"end",
    "commitlog/stray": b"not a log file",
    "consumequeue/T/0/0": b"unit" * 500,
    "checkpoint": b"c" * 4096,
    "abort": b"123",
    "lock": b"lock",
    "config/topics.json": b"{]",
    "config/same.json": b"same",
}


def change_all(draft, root):
    """Makes every kind of change there is."""
    handle = draft.open(root / "commitlog/0", writable=True)
    handle.write_at(b"x" * 100, 4090)
    handle.write_at(b"y", 13_000)
    handle.close()
    draft.open(root / "commitlog/1", writable=True).set_size(7100)
    draft.make_dirs(root / "seglog/stray/commitlog")
    draft.rename(root / "commitlog/stray", root / "seglog/stray/commitlog/stray")
    draft.remove(root / "consumequeue/T/0/0")
    draft.create(root / "commitlog/2", 5000).write_at(b"new", 4999 - 3)
    draft.write_file(root / "checkpoint", b"short")
    draft.write_file(root / "config/topics.json", b"{}")
    draft.remove(root / "abort")


AFTER = {
    "commitlog/0": BEFORE["commitlog/0"][:4090]
    + b"x" * 100
    + BEFORE["commitlog/0"][4190:13_000]
    + b"y"
    + bytes(999),
    "commitlog/1": BEFORE["commitlog/1"] + bytes(97),
    "commitlog/2": bytes(4996) + b"new" + bytes(1),
    "seglog/stray/commitlog/stray": BEFORE["commitlog/stray"],
    "checkpoint": b"short",
    "lock": b"lock",
    "config/topics.json": b"{}",
    "config/same.json": b"same",
}


def crash_store(seed=0):
    files = CrashFiles.holding({ROOT / name: data for name, data in BEFORE.items()})
    files.chance = chance("undo", seed)
    return files


def state(files):
    """Returns the files of the store, but for the undo packs."""
    return {
        path.relative_to(ROOT).as_posix(): data
        for path, data in files.contents().items()
        if not path.is_relative_to(ROOT / UNDO)
    }


def repair(files, root=ROOT):
    draft = DraftFiles(files)
    change_all(draft, root)
    return apply_changes(draft, files, root, changes_of(draft), 0, had_lock=True)


def test_changes_are_made_and_taken_back():
    files = crash_store()
    repair(files)
    assert state(files) == AFTER
    undo_repair(files, ROOT)
    assert files.contents() == {ROOT / name: data for name, data in BEFORE.items()}
    assert not files.exists(ROOT / "seglog")


@pytest.mark.parametrize("power_loss", [False, True], ids=["killed", "power lost"])
def test_a_change_that_was_stopped_anywhere_can_be_taken_back(power_loss):
    for seed in range(SEEDS):
        calls = 0
        while True:
            files = crash_store(seed)
            files.calls_left = calls
            try:
                repair(files)
            except KilledError:
                pass
            else:
                break
            found = files.after_power_loss() if power_loss else files.after_kill()
            remove_leftovers(found, ROOT, ())
            stopped = unfinished(found, ROOT)
            if not list_packs(found, ROOT):
                assert state(found) == BEFORE, calls
            elif not stopped:
                assert state(found) == AFTER, calls
            else:
                assert [one.problem for one in stopped] == [""]
                undo_repair(found, ROOT, stopped[0].number)
                assert found.contents() == {ROOT / name: data for name, data in BEFORE.items()}, calls
            calls += 1
        assert calls > 30


@pytest.mark.parametrize("power_loss", [False, True], ids=["killed", "power lost"])
def test_taking_back_that_was_stopped_anywhere_can_be_begun_again(power_loss):
    for seed in range(SEEDS):
        calls = 0
        while True:
            files = crash_store(seed)
            repair(files)
            files.calls_left = calls
            try:
                undo_repair(files, ROOT)
            except KilledError:
                pass
            else:
                break
            found = files.after_power_loss() if power_loss else files.after_kill()
            if list_packs(found, ROOT):
                undo_repair(found, ROOT)
            assert state(found) == BEFORE, calls
            calls += 1
        assert calls > 20


def real_store(folder):
    for name, data in BEFORE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def test_rights_and_times_come_back(tmp_path):
    root, files = real_store(tmp_path / "store"), RealFiles()
    files.set_stamp(root / "commitlog/0", Stamp(0o600, 1_500_000_000_123_456_789))
    before = {path: files.stamp(path) for path in root.rglob("*") if path.is_file()}
    digest = tree_digest(root)
    repair(files, root)
    undo_repair(files, root)
    assert {path: files.stamp(path) for path in before} == before
    assert tree_digest(root) == digest


@pytest.mark.parametrize("end", [b"", b"the end"])
def test_a_hole_of_any_length_costs_nothing_to_cut_and_to_take_back(end, tmp_path):
    root, files = real_store(tmp_path / "store"), RealFiles()
    long = root / "consumequeue/T/0/0"
    with long.open("r+b") as file:
        file.truncate(1 << 40)
        file.seek((1 << 40) - len(end))
        file.write(end)
    begun_s = time.process_time()
    draft = DraftFiles(files)
    draft.open(long, writable=True).set_size(2000)
    apply_changes(draft, files, root, changes_of(draft), 7, had_lock=True)
    assert long.stat().st_size == 2000
    (number,) = list_packs(files, root)
    assert (pack_folder(root, number) / "journal").stat().st_size < 10_000
    undo_repair(files, root)
    assert time.process_time() - begun_s < 5
    assert long.stat().st_size == 1 << 40
    assert long.stat().st_blocks < 1000
    with long.open("rb") as file:
        assert file.read(2000) == BEFORE["consumequeue/T/0/0"]
        file.seek(-len(end), 2)
        assert file.read() == end


def test_zeros_come_back_over_what_a_change_wrote(tmp_path):
    root, files = real_store(tmp_path / "store"), RealFiles()
    hollow = root / "commitlog/1"
    with hollow.open("r+b") as file:
        file.truncate(20 << 20)
    was = hollow.read_bytes()
    draft = DraftFiles(files)
    draft.open(hollow, writable=True).write_at(b"x" * (9 << 20), 8 << 20)
    apply_changes(draft, files, root, changes_of(draft), 7, had_lock=True)
    assert hollow.read_bytes() != was
    undo_repair(files, root)
    assert hollow.read_bytes() == was


CHANGES_SINCE = {
    "other content": (
        lambda root: (root / "config/same.json").write_bytes(b"SAME"), "config/same.json has other content",
    ),
    "another length": (
        lambda root: (root / "config/same.json").write_bytes(b"same2"), "config/same.json has 5 bytes, not 4",
    ),
    "one byte that the repair wrote": (
        lambda root: (root / "checkpoint").write_bytes(b"shorT"), "checkpoint has other content",
    ),
    "a new file": (lambda root: (root / "abort").touch(), "abort is new"),
    "a file less": (lambda root: (root / "commitlog/2").unlink(), "commitlog/2 is gone"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES_SINCE)
def test_a_store_that_was_changed_since_is_left_alone(name, tmp_path):
    root = real_store(tmp_path / "store")
    repair(RealFiles(), root)
    change, told = CHANGES_SINCE[name]
    change(root)
    digest = tree_digest(root)
    with pytest.raises(UndoError, match=f"changed since repair 1: {told}"):
        undo_repair(RealFiles(), root)
    assert tree_digest(root) == digest


@pytest.mark.parametrize("name", ["lock", "abort.bak", "rocksdbstore/CURRENT", "other/file"])
def test_a_file_that_no_copy_of_a_store_has_stops_no_undo(name, tmp_path):
    root = real_store(tmp_path / "store")
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_bytes(b"here")
    before = tree_digest(root)
    repair(RealFiles(), root)
    (root / name).unlink()
    undo_repair(RealFiles(), root)
    del before[name]
    assert tree_digest(root) == before


def test_every_flipped_bit_of_a_pack_is_noticed(tmp_path):
    root = real_store(tmp_path / "store")
    pack = repair(RealFiles(), root)
    journal = pack.folder / "journal"
    data = journal.read_bytes()
    digest = tree_digest(root)
    for at in range(0, len(data), scaled(97, 1)):
        damaged = bytearray(data)
        damaged[at] ^= 1 << at % 8
        journal.write_bytes(damaged)
        with pytest.raises(CorruptError):
            undo_repair(RealFiles(), root)
    journal.write_bytes(data)
    assert tree_digest(root) == digest
    undo_repair(RealFiles(), root)


def test_a_pack_that_was_cut_undoes_nothing(tmp_path):
    root = real_store(tmp_path / "store")
    journal = repair(RealFiles(), root).folder / "journal"
    data = journal.read_bytes()
    for size in range(0, len(data), 211):
        journal.write_bytes(data[:size])
        with pytest.raises(CorruptError):
            undo_repair(RealFiles(), root)


def test_packs_are_undone_newest_first(tmp_path):
    root, files = real_store(tmp_path / "store"), RealFiles()
    first = tree_digest(root)
    repair(files, root)
    second = tree_digest(root)
    draft = DraftFiles(files)
    draft.write_file(root / "checkpoint", b"four")
    apply_changes(draft, files, root, changes_of(draft), 0, had_lock=True)
    assert list_packs(files, root) == [1, 2]
    with pytest.raises(UndoError, match="checkpoint has 4 bytes, not 5"):
        undo_repair(files, root, 1)
    assert undo_repair(files, root).number == 2
    assert tree_digest(root) == second
    assert undo_repair(files, root).number == 1
    assert tree_digest(root) == first
    with pytest.raises(NotFoundError, match="no repair to take back"):
        undo_repair(files, root)
    with pytest.raises(NotFoundError, match="no undo pack 7"):
        undo_repair(files, root, 7)


def test_the_lock_file_goes_with_the_repair_that_brought_it(tmp_path):
    root, files = real_store(tmp_path / "store"), RealFiles()
    (root / "lock").unlink()
    digest = tree_digest(root)
    lock = files.lock(root)
    draft = DraftFiles(files)
    change_all(draft, root)
    apply_changes(draft, files, root, changes_of(draft), 0, had_lock=False)
    assert (root / "lock").exists()
    undo_repair(files, root)
    lock.release()
    assert tree_digest(root) == digest


def test_a_pack_that_was_not_finished_leaves_nothing(tmp_path):
    root, files = real_store(tmp_path / "store"), RealFiles()
    digest = tree_digest(root)
    folder = pack_folder(root, 1)
    (folder / "kept").mkdir(parents=True)
    (folder / "journal.tmp").write_bytes(b"half")
    assert unfinished(files, root) == []
    remove_leftovers(files, root, ())
    assert tree_digest(root) == digest
