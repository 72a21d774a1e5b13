"""Log files under another file's name are known by their records: read as they are, renamed by a repair."""

from __future__ import annotations

import random
import shutil
from contextlib import suppress

import pytest
from typing_extensions import override

from seglog import MessageStore
from seglog.doctor.check.check import check_store
from seglog.doctor.repair.repair import plan_repair, repair_store
from seglog.doctor.undo.undo import undo_repair
from seglog.errors import MisnamedFileError
from seglog.storage.directory.misnamed import find_misnamed
from seglog.storage.files.files import RealFiles
from seglog.storage.findings.code import Severity
from tests.doctor.check.test_lengths import SEGMENT, log_files, messages, served
from tests.support.damage.subjects import make_subject
from tests.support.material import golden
from tests.support.material.golden import tree_digest
from tests.support.material.stores import copy_store, new_clock, read_all
from tests.support.scale import chance, scaled


@pytest.fixture(scope="module")
def whole():
    return served(golden.shared("roll"))


def call(root, names):
    """Gives each file of a log, in order, the number of another one."""
    paths = log_files(root)
    for path in paths:
        path.rename(path.with_suffix(".held"))
    for path, number in zip(paths, names, strict=True):
        path.with_suffix(".held").rename(path.with_name(f"{number * SEGMENT:020d}"))


def codes(root):
    findings = check_store(root, clock=new_clock()).findings
    return {one.code for one in findings if one.severity is not Severity.NOTE}


def without_lock(digest):
    return {name: one for name, one in digest.items() if name != "lock"}


@pytest.mark.parametrize("names", [
    (1, 0, 2, 3, 4), (0, 1, 2, 4, 3), (4, 1, 2, 3, 0), (1, 2, 0, 3, 4), (1, 2, 3, 4, 0), (0, 1, 2, 3, 7),
    (4, 3, 2, 1, 0), (0, 2, 4, 6, 8),
])  # fmt: skip
def test_files_under_each_others_names_lose_nothing(names, whole, tmp_path):
    root = golden.extract("roll", tmp_path)
    call(root, names)
    before = tree_digest(root)
    report = check_store(root, clock=new_clock())
    assert codes(root) == {"log-file-misnamed"}
    assert report.lost_messages == 0
    assert served(root) == whole, "readers see each file where it belongs"
    with pytest.raises(MisnamedFileError, match="another file of the log") as refused:
        MessageStore.open(root, clock=new_clock())
    assert "seglog repair" in refused.value.help
    assert without_lock(tree_digest(root)) == without_lock(before)

    planned = plan_repair(RealFiles(), root, new_clock())
    assert {action.kind for action in planned.first} == {"name"}
    plan, pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert pack is not None
    assert (plan.actions, plan.left, codes(root)) == ([], [], set())
    assert served(root) == whole
    assert [path.read_bytes() for path in log_files(root)] == [
        path.read_bytes() for path in log_files(golden.shared("roll"))
    ]
    undo_repair(RealFiles(), root)
    assert without_lock(tree_digest(root)) == without_lock(before)


def test_a_copy_under_the_next_name_is_moved_aside(whole, tmp_path):
    root = golden.extract("roll", tmp_path)
    copy = root / "commitlog" / f"{5 * SEGMENT:020d}"
    shutil.copy(log_files(root)[1], copy)
    assert "log-file-misnamed" in codes(root)
    assert served(root) == whole
    other = shutil.copytree(root, tmp_path / "other")
    with MessageStore.open(other, clock=new_clock()) as store:
        assert messages(store) == whole, "opening steps over it"
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert codes(root) == set()
    assert served(root) == whole
    assert (root / "seglog" / "stray" / "commitlog" / copy.name).exists()


@pytest.mark.parametrize(("name", "source"), [(0, 1), (0, 3), (1, 2), (2, 4), (3, 0)])
def test_a_copy_over_a_file_of_the_log_is_a_hole_to_all(name, source, whole, tmp_path):
    root = golden.extract("roll", tmp_path)
    paths = log_files(root)
    shutil.copy(paths[source], paths[name])
    before = tree_digest(root)
    report = check_store(root, clock=new_clock())
    assert codes(root) == {"log-file-misnamed", "log-hole"}
    (hole,) = [one for one in report.findings if one.code == "log-hole"]
    assert (hole.severity, hole.file) == (Severity.LOSS, f"commitlog/{paths[name].name}")
    left = served(root)
    lost = count(whole) - count(left)
    assert lost > 0
    assert report.lost_messages == hole.messages == lost
    with MessageStore.open(root, read_only=True) as reader:
        ranges = bounds(reader)
    other = shutil.copytree(root, tmp_path / "other")
    with MessageStore.open(other, clock=new_clock()) as store:
        assert messages(store) == left, "a writer serves what a reader serves"
        assert bounds(store) == ranges

    planned = plan_repair(RealFiles(), root, new_clock())
    assert sum(action.lost_messages for action in planned.actions) == lost
    assert planned.left == []
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert codes(root) == set()
    assert served(root) == left
    with MessageStore.open(root, read_only=True) as reader:
        assert bounds(reader) == ranges, "no queue begins later"
    undo_repair(RealFiles(), root)
    assert without_lock(tree_digest(root)) == without_lock(before)


def test_a_reader_serves_compacted_messages_as_a_writer_does_beside_a_copy(tmp_path):
    root = make_subject("own of every kind", tmp_path).root
    first, second, *_more = log_files(root)
    shutil.copy(second, first)
    with MessageStore.open(root, read_only=True) as reader:
        seen = [(one.queue_offset, one.body) for one in read_all(reader, "Compacted", 0)]
    with MessageStore.open(root, clock=new_clock()) as writer:
        assert [(one.queue_offset, one.body) for one in read_all(writer, "Compacted", 0)] == seen
    assert seen[0][0] == 0


def test_a_copy_gives_its_name_to_the_file_that_belongs_there(tmp_path):
    root = golden.extract("roll", tmp_path)
    first, second, third, *_more = log_files(root)
    of_first = records_of(root, first)
    second.rename(first)
    shutil.copy(third, second)
    before = tree_digest(root)
    assert check_store(root, clock=new_clock()).lost_messages == of_first
    plan, _pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert sum(action.lost_messages for action in plan.actions) == of_first
    assert codes(root) == set()
    undo_repair(RealFiles(), root)
    undo_repair(RealFiles(), root)
    assert without_lock(tree_digest(root)) == without_lock(before)


def test_a_copy_far_in_front_of_the_log_is_no_file_of_it(tmp_path):
    root = golden.extract("roll", tmp_path)
    first, second, third, *_more = log_files(root)
    shutil.copy(third, first)
    second.unlink()
    assert find_misnamed(RealFiles(), root).written_over == ()


def count(of_queues):
    return sum(len(one) for one in of_queues.values())


def bounds(store):
    return {(one.topic, one.queue_id): (one.min_offset, one.max_offset) for one in store.queues()}


def records_of(root, path):
    """Returns how many messages of a store lie in one file of its log."""
    with MessageStore.open(root, read_only=True) as store:
        queues = [read_all(store, one.topic, one.queue_id) for one in store.queues()]
    start = int(path.name)
    return sum(start <= one.phy_offset < start + SEGMENT for queue in queues for one in queue)


@pytest.mark.parametrize("store", ["roll", "own"])
def test_a_copy_of_a_file_that_grew_is_moved_aside_before_lengths_are_cut(store, tmp_path):
    root = golden.extract("roll", tmp_path) if store == "roll" else own_store(tmp_path / "s")
    third_last, second_last, _last = log_files(root)[-3:]
    with second_last.open("ab") as stream:
        stream.write(random.Random(5).randbytes(4096))
    shutil.copy(second_last, third_last)
    before = tree_digest(root)
    planned = plan_repair(RealFiles(), root, new_clock())
    assert planned.left == []
    assert {(action.kind, action.file.rpartition("/")[2]) for action in planned.actions} >= {
        ("stray", third_last.name),
        ("length", second_last.name),
    }
    assert without_lock(tree_digest(root)) == without_lock(before)
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert codes(root) == set()
    undo_repair(RealFiles(), root)
    assert without_lock(tree_digest(root)) == without_lock(before)


def own_store(root):
    """Makes a store of several log files and closes it."""
    with MessageStore.open(root, clock=new_clock(), segment_size_bytes=SEGMENT) as store:
        for number in range(600):
            store.put("T", b"body %d " % number * 40, keys=f"k{number}")
    return root


KEPT_NUMBERS, KEPT_SECTORS = (0, 4), (78, 97)


def test_what_only_a_copy_under_another_name_has_comes_back_opened_before_or_not(tmp_path):
    for seed in range(scaled(12, 200)):
        draw = chance("copies", seed)
        (tmp_path / str(seed)).mkdir()
        root = golden.extract("roll", tmp_path / str(seed))
        paths = log_files(root)
        # The first one once lost messages.
        number, over = draw.sample(range(len(paths)), 2) if seed else KEPT_NUMBERS
        shutil.copyfile(paths[number], paths[over])
        content = bytearray(paths[number].read_bytes())
        one, other = (512 * sector for sector in (draw.sample(range(128), 2) if seed else KEPT_SECTORS))
        content[one : one + 512], content[other : other + 512] = (
            content[other : other + 512],
            content[one : one + 512],
        )
        paths[number].write_bytes(content)
        opened = copy_store(root, tmp_path / f"opened {seed}")
        with suppress(MisnamedFileError):
            MessageStore.open(opened, clock=new_clock()).close()
        for store in (root, opened):
            repair_store(RealFiles(), store, new_clock(), lambda _plan: True)
            assert not plan_repair(RealFiles(), store, new_clock()).changes
        assert served(root) == served(opened), seed


def test_damage_in_a_misnamed_file_is_repaired_in_its_place(whole, tmp_path):
    root = golden.extract("roll", tmp_path)
    call(root, (1, 0, 2, 3, 4))
    before = tree_digest(root)
    path = log_files(root)[0]
    data = bytearray(path.read_bytes())
    data[60:160] = bytes(100)
    path.write_bytes(data)
    damaged = tree_digest(root)
    plan, pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert [action.kind for action in plan.first] == ["name", "name"]
    assert pack is not None
    assert pack.number == 2, "names have a pack of their own"
    assert sum(action.lost_messages for action in plan.actions) <= 1
    undo_repair(RealFiles(), root)
    undo_repair(RealFiles(), root)
    assert without_lock(tree_digest(root)) == without_lock(damaged) != without_lock(before)


class StoppingError(Exception):
    """The process was killed."""


class Stopping(RealFiles):
    """Files that stop everything at one rename."""

    def __init__(self, stop_at):
        self.renames = 0
        self.stop_at = stop_at

    @override
    def rename(self, source, target):
        self.renames += 1
        if self.renames == self.stop_at:
            raise StoppingError
        super().rename(source, target)


@pytest.mark.parametrize("stop_at", range(1, 12))
def test_renaming_that_was_stopped_is_taken_back_or_finished(stop_at, whole, tmp_path):
    root = golden.extract("roll", tmp_path)
    call(root, (1, 2, 0, 3, 4))
    before = without_lock(tree_digest(root))
    try:
        repair_store(Stopping(stop_at), root, new_clock(), lambda _plan: True)
    except StoppingError:
        repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert served(root) == whole
    assert codes(root) == set()
    undo_repair(RealFiles(), root)
    assert without_lock(tree_digest(root)) == before


@pytest.mark.parametrize("stop_at", range(1, 7))
def test_undoing_a_renaming_can_be_stopped_and_begun_again(stop_at, tmp_path):
    root = golden.extract("roll", tmp_path)
    call(root, (1, 2, 0, 3, 4))
    before = without_lock(tree_digest(root))
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    with pytest.raises(StoppingError):
        undo_repair(Stopping(stop_at), root)
    undo_repair(RealFiles(), root)
    assert without_lock(tree_digest(root)) == before


def test_no_whole_store_has_a_misnamed_file():
    for name in golden.golden_names(damaged=False):
        assert not find_misnamed(RealFiles(), golden.shared(name)), name
