"""A log file of another store under the name of one of these: what the queues had there is lost."""

from __future__ import annotations

import shutil

import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.exchange.export import Selection, iter_rows
from seglog.doctor.repair.repair import plan_repair, repair_store
from seglog.storage.files.files import RealFiles
from seglog.storage.findings.code import Severity
from seglog.storage.scan.holes_file import OTHERS, load_holes
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.material.golden import extract
from tests.support.material.stores import new_clock

FIRST, SECOND = "00000000000000000000", "00000000000000065536"
IN_ALL = 528
"""Messages of ``roll``."""


@pytest.fixture(params=[(FIRST, 87), (SECOND, 81)], ids=["first", "middle"])
def exchanged(request, tmp_path):
    """A store with one log file of another, and how many messages that cost."""
    name, lost = request.param
    root, other = extract("roll", tmp_path / "own"), extract("outerbatch", tmp_path / "other")
    shutil.copyfile(other / "commitlog" / name, root / "commitlog" / name)
    return root, lost


def exported(root):
    """How many messages an export writes, and how many it names as lost."""
    lost = []
    with MessageStore.open(root, read_only=True) as store:
        rows = list(iter_rows(store, Selection(), [], lambda *told: lost.append(told)))
    assert {why for *_place, why in lost} <= {"lost"}
    return len(rows), sum(len(offsets) for _topic, _queue_id, offsets, _why in lost)


def counted(root):
    """How many messages a check and a survey say that the store has, and has lost; they agree."""
    found, seen = check_store(root).messages, survey(root, RealFiles()).counts
    assert found == seen
    return found.messages, found.lost


def of_code(root, code):
    return sum(one.messages for one in check_store(root).findings if one.code == code)


def test_check_dry_run_repair_and_export_count_the_same_loss(exchanged):
    root, lost = exchanged
    own = IN_ALL - lost
    served, named = exported(root)
    assert named == of_code(root, "queue-gap") == lost
    assert served >= own
    assert counted(root) == (served, lost)
    plan = plan_repair(RealFiles(), root, new_clock())
    assert sum(action.lost_messages for action in plan.actions) == lost
    done, pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert pack is not None
    assert sum(action.lost_messages for action in done.actions) == lost
    assert [one for one in check_store(root).findings if one.severity is not Severity.NOTE] == []
    assert of_code(root, "tombstones") == lost
    assert exported(root) == counted(root) == (served, lost)


def test_opening_for_writing_writes_the_loss_down_too(exchanged):
    root, lost = exchanged
    with MessageStore.open(root, clock=new_clock()) as store:
        store.put("New", b"x")
    assert of_code(root, "tombstones") == exported(root)[1] == lost
    with MessageStore.open(root, clock=new_clock()) as store:
        store.put("New", b"y")
    assert of_code(root, "tombstones") == lost


def test_the_note_goes_once_the_file_is_back(exchanged, tmp_path):
    root, lost = exchanged
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    sound = extract("roll", tmp_path / "again")
    for file in (sound / "commitlog").iterdir():
        shutil.copyfile(file, root / "commitlog" / file.name)
    noted = [one for hole in load_holes(RealFiles(), root) if hole.why == OTHERS for one in hole.lost]
    assert sum(len(one.offsets) for one in noted) == lost
    assert of_code(root, "tombstones") == 0
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert exported(root)[1] == 0


def test_files_that_retention_took_are_no_loss(tmp_path):
    root = extract("roll", tmp_path)
    (root / "commitlog" / FIRST).unlink()
    assert [one.code for one in check_store(root).findings if one.severity is Severity.LOSS] == []
    assert exported(root)[1] == 0
