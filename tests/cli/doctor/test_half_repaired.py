"""A repair that was stopped half-way: every command says so, with the loss, and goes on from there."""

from __future__ import annotations

import os
import random
import shutil
from contextlib import suppress

import pytest

from seglog.doctor.repair import repair_store
from seglog.errors import SeglogError
from tests.support.command_line import Seglog
from tests.support.crash.failing_files import FailingFiles, Fault
from tests.support.machine.disks import memory_disk
from tests.support.material import golden
from tests.support.material.stores import new_clock

LOG = "commitlog/00000000000000131072"


def damaged(folder):
    """A store of RocketMQ, with files beside it that no copy has, of which messages are lost."""
    root = golden.extract("roll", folder)
    with (root / LOG).open("r+b") as file:
        file.seek(20_000)
        file.write(random.Random(3).randbytes(6_000))
    shutil.rmtree(root / "consumequeue" / "TopicB")
    assert (root / "abort.bak").exists()
    assert (root / "rocksdbstore").is_dir()
    return root


def stop_repair(root, at):
    """Stops a repair at a call; returns whether it came to that."""
    fault = Fault(at, sticky=True, names=frozenset({"write", "rename", "write_file"}))
    with suppress(OSError, SeglogError):
        repair_store(FailingFiles(fault), root, new_clock(), lambda _plan: True)
    return bool(fault.fired)


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """The store as it was, and half repaired: its log changed, its queues not all."""
    folder = tmp_path_factory.mktemp("half")
    before = damaged(folder)
    for at in range(1, 200):
        half = shutil.copytree(before, folder / f"half{at}")
        assert stop_repair(half, at)
        if (half / LOG).read_bytes() != (before / LOG).read_bytes():
            return before, half
    raise AssertionError("no repair was stopped behind a change of the log")


@pytest.fixture
def half(halves, tmp_path):
    return shutil.copytree(halves[1], tmp_path / "s")


def test_check_and_plan_end_with_the_loss_and_count_no_message_of_the_half_state(
    seglog: Seglog, halves, half, tmp_path
):
    whole = shutil.copytree(halves[0], tmp_path / "whole")
    of_whole = seglog("check", whole, "--json").lines[-1]["verdict"]
    checked = seglog("check", half, "--json")
    verdict = checked.lines[-1]["verdict"]
    assert seglog("check", whole).exit_code == checked.exit_code == 5
    assert of_whole["repairSaves"] == 264
    assert verdict["repairSaves"] is None
    assert verdict["lostForGood"] == of_whole["lostForGood"] == 11
    assert of_whole["mayBeMore"]  # messages of the queue without units leave a part of the hole unexplained
    planned = seglog("repair", half)
    assert planned.exit_code == seglog("repair", whole).exit_code == 5
    assert "  1. take back the repair that was stopped: seglog/undo/1/journal" in planned.stdout
    assert "up to 331 messages saved, at least 11 lost for good" in planned.stdout


def test_doctor_tries_the_repair_on_a_branch_although_it_has_fewer_files(seglog: Seglog, half):
    done = seglog("doctor", "--yes", half)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert "a check of the repaired branch finds nothing wrong" in done.stdout
    assert seglog("check", half).exit_code == 0


def test_a_backup_says_so_and_is_repaired_by_itself(seglog: Seglog, half, tmp_path):
    made = seglog("backup", half, tmp_path / "b", "--copy")
    assert "half done  a repair of the store was stopped" in made.stdout
    assert seglog("repair", "--apply", "--yes", tmp_path / "b").exit_code == 0
    assert seglog("check", tmp_path / "b").exit_code == 0


def test_a_repair_is_taken_back_in_a_backup(seglog: Seglog, halves, tmp_path):
    root = shutil.copytree(halves[0], tmp_path / "s")
    assert seglog("repair", "--apply", "--yes", root).exit_code == 0
    assert seglog("backup", root, tmp_path / "b", "--copy").exit_code == 0
    assert seglog("undo", tmp_path / "b").exit_code == 0
    before, after = golden.file_digest(halves[0]), golden.file_digest(tmp_path / "b")
    apart = {name for name in before if name == "abort.bak" or name.startswith("rocksdbstore/")}
    assert {name: after[name] for name in before if name not in apart} == {
        name: state for name, state in before.items() if name not in apart
    }


def test_a_trial_that_cannot_be_made_leaves_no_branch(seglog: Seglog, half):
    (half / "consumequeue" / "TopicA" / "0" / "00000000000000000000").write_bytes(b"changed since")
    refused = seglog("doctor", "--yes", half)
    assert refused.exit_code == 28
    assert "has other content" in refused.stderr
    assert seglog("branch", "list", half).stdout == "no branches\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small file system")
def test_a_trial_for_which_the_disk_has_no_room_leaves_no_branch(seglog: Seglog, halves, tmp_path):
    with memory_disk(tmp_path, 40) as disk:
        root = shutil.copytree(halves[0], disk / "s")
        free = os.statvfs(disk)
        room_bytes = 210 << 10  # enough for the branch, but not for what the repair writes there
        (disk / "ballast").write_bytes(bytes(free.f_bavail * free.f_frsize - room_bytes))
        before = golden.file_digest(root)
        refused = seglog("doctor", "--yes", root)
        assert refused.exit_code == 17, refused.stderr
        assert f"{root} was not changed" in refused.stderr
        assert "seglog doctor --no-trial" in refused.stderr
        assert seglog("branch", "list", root).stdout == "no branches\n"
        after = golden.file_digest(root)
        assert {name: after[name] for name in before} == before
