"""A queue file of a compaction topic is rebuilt from its log file, after any damage."""

from __future__ import annotations

import itertools
import os
import random
import shutil

import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.repair.repair import plan_repair, repair_store
from seglog.storage.files.files import RealFiles
from seglog.storage.store import MessageStore
from tests.support.damage.broker_damage import compacted, compacted_once
from tests.support.material.sealed import flip
from tests.support.material.stores import copy_store, new_clock
from tests.support.scale import chance, is_gate


def zeros(path):
    path.write_bytes(bytes(path.stat().st_size))


def noise(path):
    path.write_bytes(random.Random(1).randbytes(path.stat().st_size))


DAMAGES = {
    "deleted": lambda path: path.unlink(),
    "cut": lambda path: os.truncate(path, 100),
    "a tags code": lambda path: flip(path, 46 + 15),
    "a queue offset": lambda path: flip(path, 46 + 34),
    "a count": lambda path: flip(path, 46 + 37),
    "zeros": zeros,
    "noise": noise,
}


@pytest.fixture(scope="module", params=["the log's front is gone", "the log is whole", "compacted"])
def whole(request, module_folders):
    make = compacted_once if request.param == "compacted" else compacted
    root = make(module_folders.mktemp("whole") / request.param)
    if request.param == "the log's front is gone":
        (root / "commitlog" / f"{0:020d}").unlink()
        MessageStore.open(root, clock=new_clock()).close()
    assert check_store(root, clock=new_clock()).is_clean
    return root


def messages(root):
    with MessageStore.open(root, read_only=True) as store:
        found, offset = [], 0  # the topic begins before the queue, which retention cut
        while records := store.get("C", 0, offset).messages:
            found += [(message.queue_offset, message.body) for message in records]
            offset = records[-1].queue_offset + 1
        return found


def files_of(root):
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in (root / "compaction").rglob("*")
        if path.is_file()
    }


def queue_files(root):
    return sorted((root / "compaction/compactionCq/C/0").iterdir())


WAYS = list(itertools.product([0, -1], ["opening", "repair"]))
"""Which of its files is damaged, and what makes it again."""


@pytest.mark.parametrize("name", DAMAGES)
def test_queue_file_is_made_again_byte_for_byte(whole, tmp_path, name):
    ways = [chance("made again", name, whole.name).choice(WAYS)] if is_gate() else WAYS
    for which, mended_by in ways:
        root = copy_store(whole, tmp_path / f"{which} {mended_by}")
        DAMAGES[name](queue_files(root)[which])
        assert not check_store(root, clock=new_clock()).is_clean
        assert messages(root) == messages(whole)
        if mended_by == "opening":
            MessageStore.open(root, clock=new_clock()).close()
        else:
            plan, _pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
            assert "compaction-queue" in {action.kind for action in plan.actions}
            assert sum(action.lost_messages for action in plan.actions) == 0
            assert plan.left == []
        assert files_of(root) == files_of(whole)
        assert messages(root) == messages(whole)
        assert check_store(root, clock=new_clock()).is_clean
        assert plan_repair(RealFiles(), root, new_clock()).actions == []


def test_all_queue_files_but_one_are_made_again(whole, tmp_path):
    root = copy_store(whole, tmp_path / "store")
    for path in queue_files(root)[:-1]:
        path.unlink()
    MessageStore.open(root, clock=new_clock()).close()
    assert files_of(root) == files_of(whole)


def test_log_files_stay_where_no_queue_file_is_left(whole, tmp_path):
    root = copy_store(whole, tmp_path / "store")
    shutil.rmtree(root / "compaction/compactionCq")
    MessageStore.open(root, clock=new_clock()).close()
    assert messages(root) == messages(whole)
    logs = {name: data for name, data in files_of(whole).items() if "compactionLog" in name}
    assert {name: data for name, data in files_of(root).items() if "compactionLog" in name} == logs


def test_what_cannot_be_made_again_is_told_as_lost(tmp_path):
    root = compacted(tmp_path / "store")
    (root / "commitlog" / f"{0:020d}").unlink()
    before = messages(root)
    min((root / "compaction/compactionLog/C/0").iterdir()).unlink()
    plan, _pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    lost = {offset for action in plan.actions for one in action.lost for offset in one.offsets}
    after = messages(root)
    assert lost
    assert lost == {offset for offset, _body in before} - {offset for offset, _body in after}
    assert plan_repair(RealFiles(), root, new_clock()).actions == []
    assert check_store(root, clock=new_clock()).is_clean


def test_units_behind_a_damaged_record_are_told_as_lost(tmp_path):
    root = compacted(tmp_path / "store")
    (root / "commitlog" / f"{0:020d}").unlink()
    before = messages(root)
    flip(queue_files(root)[0], 6)  # the place of the first record
    log = min((root / "compaction/compactionLog/C/0").iterdir())
    flip(log, log.read_bytes().index(b"c" * 60, 300))
    plan, _pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    lost = {offset for action in plan.actions for one in action.lost for offset in one.offsets}
    after = messages(root)
    assert after[0] == before[0]
    assert lost
    assert lost == {offset for offset, _body in before} - {offset for offset, _body in after}
