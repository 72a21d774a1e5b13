"""A file of any name in the folder of the log fills the place that its records state, where that is free."""

from __future__ import annotations

import os
import shutil

import pytest
from click.testing import CliRunner

from seglog import MessageStore
from seglog.cli.main import commands
from seglog.doctor.check.check import check_store
from seglog.doctor.repair.repair import plan_repair, repair_store
from seglog.doctor.undo.undo import undo_repair
from seglog.errors import MisnamedFileError
from seglog.storage.directory.misnamed import find_misnamed
from seglog.storage.files.files import RealFiles
from tests.doctor.check.test_lengths import SEGMENT, log_files, served
from tests.doctor.check.test_misnamed import codes, own_store, without_lock
from tests.support.material import golden
from tests.support.material.golden import tree_digest
from tests.support.material.stores import OpenOptions, new_clock
from tests.support.rows import every_row
from tests.support.scale import chance, scaled

NAMES = ("{}.bak", ".{}.Ab3xYz", "{}.1", "copy of {}", "{}~", "log\nfile")


@pytest.fixture(scope="module")
def whole():
    return served(golden.shared("roll"))


def rename(path, name="{}.bak"):
    """Gives a log file a name that none has; returns where it is then."""
    return path.rename(path.with_name(name.format(path.name)))


def stray(root):
    folder = root / "seglog" / "stray" / "commitlog"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_any_name_loses_nothing(name, whole, tmp_path):
    with every_row() as row:
        for number in chance("any name", name).sample(range(5), scaled(5, 5)):
            (tmp_path / str(number)).mkdir()
            with row(number):
                lose_nothing_of(golden.extract("roll", tmp_path / str(number)), number, name, whole)


def lose_nothing_of(root, number, name, whole):
    """Gives a file of the log another name, looks at the store, repairs it and takes that back."""
    path = log_files(root)[number]
    rename(path, name)
    before = tree_digest(root)
    assert codes(root) == {"log-file-misnamed"}
    assert check_store(root, clock=new_clock()).lost_messages == 0
    assert served(root) == whole, "readers see the file where it belongs"
    with pytest.raises(MisnamedFileError, match="another file of the log"):
        MessageStore.open(root, clock=new_clock())
    assert without_lock(tree_digest(root)) == without_lock(before)

    assert [action.detail for action in plan_repair(RealFiles(), root, new_clock()).first] == [
        f"to {path.name}"
    ]
    plan, pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert pack is not None
    assert (plan.actions, plan.left, codes(root), stray(root)) == ([], [], set(), [])
    assert served(root) == whole
    undo_repair(RealFiles(), root)
    assert without_lock(tree_digest(root)) == without_lock(before)


@pytest.mark.parametrize("numbers", [(0, 1, 2, 3, 4), (1, 3), (3, 4), (0, 1), (0, 4)])
def test_several_files_of_other_names_all_come_back(numbers, whole, tmp_path):
    root = golden.extract("roll", tmp_path)
    paths = log_files(root)
    for number in numbers:
        rename(paths[number])
    assert served(root) == whole
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert codes(root) == set()
    assert served(root) == whole


def test_files_of_other_names_beside_swapped_ones(whole, tmp_path):
    root = golden.extract("roll", tmp_path)
    first, second, third, fourth, _last = log_files(root)
    rename(third)
    held = first.rename(first.with_name("held"))
    fourth.rename(first)
    held.rename(fourth)
    assert served(root) == whole
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert codes(root) == set()
    assert served(root) == whole
    assert second.exists()


@pytest.mark.parametrize("number", range(5))
def test_a_copy_of_a_sound_file_stays_stray(number, whole, tmp_path):
    root = golden.extract("roll", tmp_path)
    path = log_files(root)[number]
    shutil.copy(path, path.with_name(f"{path.name}.bak"))
    assert not find_misnamed(RealFiles(), root)
    assert codes(root) == {"log-file-stray"}
    assert served(root) == whole
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert stray(root) == [f"{path.name}.bak"]
    assert served(root) == whole


@pytest.mark.parametrize("left_bytes", [0, SEGMENT])
@pytest.mark.parametrize("number", range(5))
def test_a_file_without_a_record_gives_way_to_a_copy_of_it(number, left_bytes, whole, tmp_path):
    root = golden.extract("roll", tmp_path)
    path = log_files(root)[number]
    rename(path)
    path.write_bytes(bytes(left_bytes))
    before = tree_digest(root)
    assert served(root) == whole
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert codes(root) == set()
    assert served(root) == whole
    while (root / "seglog" / "undo").is_dir() and any((root / "seglog" / "undo").iterdir()):
        undo_repair(RealFiles(), root)
    assert without_lock(tree_digest(root)) == without_lock(before)


def test_the_copy_that_reaches_further_is_taken(whole, tmp_path):
    root = golden.extract("roll", tmp_path)
    path = log_files(root)[2]
    data = path.read_bytes()
    rename(path)
    path.with_name(f".{path.name}.Ab3xYz").write_bytes(data[: SEGMENT // 3])
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert served(root) == whole
    assert stray(root) == [f".{path.name}.Ab3xYz"]


def test_a_part_of_a_file_brings_back_the_messages_that_it_has(whole, tmp_path):
    root = golden.extract("roll", tmp_path)
    path = log_files(root)[2]
    data = path.read_bytes()
    path.unlink()
    path.with_name(f".{path.name}.Ab3xYz").write_bytes(data[: SEGMENT // 3])
    left = served(root)
    end = 2 * SEGMENT + SEGMENT // 3
    kept = {
        key: [one for one in queue if one[1] < end - 4096 or one[1] >= 3 * SEGMENT]
        for key, queue in whole.items()
    }
    assert all(set(kept[key]) <= set(left.get(key, ())) for key in kept)
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert codes(root) == set()
    assert served(root) == left


def test_what_was_cut_off_the_log_does_not_come_back_behind_it(tmp_path):
    root = own_store(tmp_path / "s")
    *_others, second_last, last = log_files(root)
    old = last.read_bytes()
    last.unlink()
    data = second_last.read_bytes()
    second_last.write_bytes(data[: SEGMENT // 2].ljust(SEGMENT, b"\0"))
    for folder in ("consumequeue", "index", "seglog"):
        shutil.rmtree(root / folder)
    (root / "checkpoint").unlink()
    clock = new_clock()
    clock.advance(3_600_000)
    with MessageStore.open(root, clock=clock, queue_file_size_bytes=2000) as store:
        store.put("T", b"newer")
    assert [path.name for path in log_files(root)][-1] == second_last.name
    after = served(root)
    last.with_name("old").write_bytes(old)
    assert "log-file-misnamed" not in codes(root)
    assert served(root) == after


def test_what_is_far_in_front_of_the_log_may_be_older_than_retention_left(tmp_path):
    root = golden.extract("roll", tmp_path)
    first, second, *_others = log_files(root)
    rename(first)
    second.unlink()
    assert not find_misnamed(RealFiles(), root)


@pytest.mark.parametrize("content", [b"", b"text", bytes(SEGMENT), os.urandom(SEGMENT)])
def test_a_file_that_is_not_of_the_log_stays_stray(content, whole, tmp_path):
    root = golden.extract("roll", tmp_path)
    path = log_files(root)[2]
    path.unlink()
    path.with_name(f"{path.name}.bak").write_bytes(content)
    assert not find_misnamed(RealFiles(), root)
    assert codes(root) == {"log-file-stray", "log-file-missing"}


def test_a_copy_of_a_file_with_an_erased_message_stays_stray(tmp_path):
    root = own_store(tmp_path / "s")
    path = log_files(root)[1]
    old = path.read_bytes()
    with MessageStore.open(root, read_only=True) as store:
        key = next(one for one in store.get("T", 0, 0, 9999).messages if one.phy_offset >= SEGMENT).keys[0]
    ran = CliRunner().invoke(commands, ["erase", str(root), key, "--apply", "--yes"])
    assert ran.exit_code == 0, ran.output
    path.unlink()
    path.with_name(f"{path.name}.bak").write_bytes(old)
    assert not find_misnamed(RealFiles(), root)


def test_opening_from_a_recovery_point_does_not_go_past_a_file_of_another_name(tmp_path):
    options: OpenOptions = {"clock": new_clock(), "segment_size_bytes": SEGMENT, "recovery_step_bytes": 4096}
    with MessageStore.open(tmp_path / "s", **options) as store:
        store.put_batch("T", [b"body %d" % number for number in range(99)])
    point = (tmp_path / "s" / "seglog" / "recovery-point").read_bytes()
    with MessageStore.open(tmp_path / "s", **options) as store:
        for number in range(300):
            store.put("T", b"body %d " % number * 40)
        store.flush()
        root = shutil.copytree(tmp_path / "s", tmp_path / "killed")
    (root / "seglog" / "recovery-point").write_bytes(point)
    rename(max(log_files(root)))
    with pytest.raises(MisnamedFileError):
        MessageStore.open(root, clock=new_clock())
