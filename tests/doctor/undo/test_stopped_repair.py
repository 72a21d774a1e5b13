"""A repair that was killed anywhere, or lost power, can be repeated or taken back."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import pytest

from seglog.doctor.repair.repair import locked, plan_repair, repair_store
from seglog.doctor.undo.undo import undo_repair
from seglog.doctor.undo.undo_pack import list_packs
from seglog.doctor.undo.undo_writing import remove_leftovers
from seglog.errors import FullError, SeglogError, UndoError
from seglog.storage.files.files import RealFiles
from seglog.storage.small_files.undo_names import UNDO, stopped_repair
from seglog.storage.store import MessageStore
from seglog.storage.survey import survey
from tests.support.crash.crash_files import CrashFiles, KilledError
from tests.support.crash.failing_files import FailingFiles, Fault
from tests.support.damage.images import Image
from tests.support.machine.disks import memory_disk
from tests.support.material.golden import tree_digest
from tests.support.material.stores import SMALL, SMALL_INDEX, new_clock
from tests.support.scale import is_gate, scaled, start

ROOT = Path("/store")
STEP = scaled(9, 1)


def damaged_store(folder):
    """A store with a rotten message, a hole over a segment's end, a foreign file and a queue file less."""
    with MessageStore.open(folder / "store", clock=new_clock(), **SMALL, **SMALL_INDEX) as store:
        puts = [store.put("T", b"%d " % slot + bytes(range(60)), keys=f"k{slot}") for slot in range(60)]
    image = Image(folder / "store", [put.phy_offset for put in puts], [put.size_bytes for put in puts])
    image.write(image.starts[10] + 95, b"rot")
    end = 4096
    image.write(end - 300, b"\x5a" * 300)
    (image.root / "commitlog" / "x").write_bytes(b"foreign")
    image.queue_file(2).unlink()
    return image.root


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    root = damaged_store(tmp_path_factory.mktemp("damaged"))
    return {
        ROOT / path.relative_to(root): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()
    }


def state(files):
    return {path: data for path, data in files.contents().items() if not path.is_relative_to(ROOT / UNDO)}


def repair(files):
    return repair_store(files, ROOT, new_clock(), lambda _plan: True)


def undo(files):
    with locked(files, ROOT):
        undo_repair(files, ROOT)


@pytest.fixture(scope="module")
def repaired(contents):
    files = CrashFiles.holding(contents)
    plan, _pack = repair(files)
    assert {action.kind for action in plan.actions} >= {"stray", "hole", "queue"}
    return state(files), files.calls


def stopped_anywhere(contents, calls):
    """Yields after how many calls a repair was killed, and the files that it left."""
    for stop in range(start(STEP, "stopped"), calls, STEP):
        files = CrashFiles.holding(contents)
        files.chance = random.Random(stop)
        files.calls = 0
        files.calls_left = stop
        try:
            repair(files)
        except KilledError:
            yield stop, files
        else:
            return


@pytest.mark.parametrize("how", ["killed", "power lost"])
def test_a_repair_that_was_stopped_anywhere_is_made_again_or_taken_back(contents, repaired, how):
    wanted, calls = repaired
    for stop, files in stopped_anywhere(contents, calls):
        found = files.after_power_loss() if how == "power lost" else files.after_kill()
        again = type(found).holding(found.contents())
        repair(again)
        assert state(again) == wanted, stop
        assert not plan_repair(again, ROOT, new_clock()).changes
        if list_packs(found, ROOT):
            undo(found)
        else:
            remove_leftovers(found, ROOT, ())
        assert found.contents() == contents, stop


def lost_messages(files):
    return survey(ROOT, files).counts.lost


def test_a_repair_that_was_stopped_anywhere_leaves_the_count_of_lost_messages(contents, repaired):
    _wanted, calls = repaired
    whole = CrashFiles.holding(contents)
    repair(whole)
    lost = lost_messages(whole)
    assert lost
    half_done = 0
    for stop, files in stopped_anywhere(contents, calls):
        found = files.after_kill()
        if not stopped_repair(found, ROOT):
            continue
        half_done += 1
        assert lost_messages(found) == lost, stop
        with pytest.raises(UndoError, match="stopped half-way"):
            MessageStore.open(ROOT, files=found, clock=new_clock())
        discarded = CrashFiles.holding(state(found))
        with MessageStore.open(ROOT, files=discarded, clock=new_clock()) as store:
            store.put("T", b"next")
        assert lost_messages(discarded) == lost, stop
    assert half_done


def test_a_repair_that_ran_out_of_space_can_be_taken_back(tmp_path):
    step = scaled(7, 1)
    at, helps, undoable = 1, list[str](), set[bool]()
    while True:
        folder = tmp_path / str(at)
        folder.mkdir()
        root = damaged_store(folder)
        before = tree_digest(root)
        fault = Fault(
            at=at, error=28, sticky=True, names=frozenset({"create", "write", "reserve", "make_dirs"})
        )
        try:
            repair_store(FailingFiles(fault), root, new_clock(), lambda _plan: True)
        except (FullError, OSError) as error:
            helps.append(getattr(error, "help", ""))
        else:
            break
        files = RealFiles()
        undoable.add(bool(list_packs(files, root)))
        assert ("`seglog undo /" in helps[-1]) == bool(list_packs(files, root)), at
        with locked(files, root):
            remove_leftovers(files, root, ())
            if list_packs(files, root):
                undo_repair(files, root)
        assert tree_digest(root) == before, at
        at += step if at > 1 else 1 + start(step, "out of space")
    assert at > 20
    assert is_gate() or undoable == {True, False}
    assert not any("send again" in one for one in helps[1:])  # the first fault meets the lock file


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_of_a_journal_that_was_not_completed_nothing_is_left(tmp_path, error):
    at, calls = 1, frozenset({"make_dirs", "create", "write", "sync", "rename"})
    ended = set[bool]()
    while ended != {True, False}:
        root = damaged_store(tmp_path / str(at))
        before = tree_digest(root)
        files = FailingFiles(Fault(at=at, error=error, sticky=True, names=calls))
        with pytest.raises((SeglogError, OSError)) as failed:
            repair_store(files, root, new_clock(), lambda _plan: True)
        help_text = getattr(failed.value, "help", "")
        has_pack = bool(list_packs(RealFiles(), root))
        ended.add(has_pack)
        assert (f"`seglog undo {root}`" in help_text) == has_pack, at
        assert f"`seglog repair --apply {root}` again" in help_text or has_pack, at
        if not has_pack:
            assert tree_digest(root) == before, at
            assert not (root / "seglog" / "undo").exists(), at
        at += 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small file system")
def test_a_full_disk_leaves_nothing_of_a_journal_and_space_lets_the_repair_run(tmp_path):
    with memory_disk(tmp_path, 1) as disk:
        root = damaged_store(disk)
        before = tree_digest(root)
        ballast = disk / "ballast"
        free = os.statvfs(disk)
        ballast.write_bytes(bytes((free.f_bavail - 1) * free.f_frsize))
        with pytest.raises(FullError) as full:
            repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
        assert "nothing of the repair was done" in full.value.help
        assert tree_digest(root) == before
        assert not (root / "seglog" / "undo").exists()
        ballast.unlink()
        plan, pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
        assert plan.changes
        assert pack is not None


def test_nothing_is_changed_without_a_yes(tmp_path):
    root = damaged_store(tmp_path)
    before = tree_digest(root)
    plan, pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: False)
    assert plan.changes
    assert pack is None
    assert tree_digest(root) == before
    (root / "lock").unlink()
    repair_store(RealFiles(), root, new_clock(), lambda _plan: False)
    assert not (root / "lock").exists()


def test_a_store_that_is_open_is_not_repaired(tmp_path):
    root = damaged_store(tmp_path)
    lock = RealFiles().lock(root)
    with pytest.raises(SeglogError, match="open for writing"):
        repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    lock.release()
