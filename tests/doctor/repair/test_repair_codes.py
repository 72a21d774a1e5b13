"""A repair mends each fault that a check can find, or it is said here why not."""

from __future__ import annotations

import shutil

import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.repair.repair import plan_repair, repair_store
from seglog.doctor.undo.undo import undo_repair
from seglog.storage.directory.geometry import FileSizes
from seglog.storage.files.files import RealFiles
from seglog.storage.findings.code import Severity
from seglog.storage.findings.finding_codes import CODES
from tests.support.damage.broker_damage import DAMAGES
from tests.support.material import golden
from tests.support.material.stores import SMALL_INDEX, Stores, new_clock

INDEX_ONLY = FileSizes(index=SMALL_INDEX["index_geometry"])
"""What a damage that takes every queue file leaves to be told: stores of ours tell the rest themselves."""
NOT_MENDED = {
    "log-empty": "nothing is left to make it of: it must come from a copy, and the queues are left alone",
    "log-length-unknown": "nobody but the operator knows the length",
    "log-block-changed": "told by opening alone; the check that it asks for names what is damaged",
    "file-unreadable": "rights and disks are the owner's",
    "file-owner": "rights and disks are the owner's",
    "file-permission": "rights and disks are the owner's",
    "file-kind": "what a link, pipe or folder stands for nobody else knows",
    "seal-rot-unused": "a new seal must be asked for (verify --seal), once somebody looked at the disk",
    "seal-stale": "a new seal must be asked for (verify --seal)",
    "seal-unreadable": "a new seal must be asked for (verify --seal)",
    "topic-name": "no queue can have such a name",
    "queue-kind": "which of both is meant only the operator knows, but where a word is one byte off",
    "queue-gap": "the log has nothing for these offsets; units that RocketMQ passes over stand there",
    "config-shape": "what nothing proves only the operator knows",
    "epoch-damaged": "only the other replicas have it",
    "epoch-beyond-log": "only the other replicas have the log",
    "op-beyond-half": "nothing need be done",
}
"""Codes that stay, and why."""
IN_GOLDEN_STORES = {
    "log-tail-lost": "d-zerotail",
    "messages-lost": "d-trunclast",
    "queue-beyond-log": "d-cqgarbage",
    "queue-file-size": "d-cqtrunc",
    "queue-length-unknown": "d-nocq",
}
"""Codes that are mended, of damages that real stores show best; test_repair_golden and test_lengths repair
them."""
SETTLED_FIRST = {"undo-unfinished", "undo-unsound", "erase-unfinished", "erase-unsound"}
"""Codes of what a repair settles first; tests/cli/doctor/test_undo_packs and test_erase_journal show them."""


def wrong(root):
    report = check_store(root, clock=new_clock())
    return {finding.code for finding in report.findings if finding.severity is not Severity.NOTE}


def damaged(name, stores, tmp_path):
    make, damage, codes = DAMAGES[name]
    root = tmp_path / "store"
    shutil.copytree(stores(make), root)
    damage(root)
    return root, codes


MENDED = [name for name, (_make, _damage, codes) in DAMAGES.items() if not codes & NOT_MENDED.keys()]


@pytest.mark.parametrize("name", MENDED)
def test_after_a_repair_check_finds_nothing_and_undo_brings_it_back(name, stores: Stores, tmp_path):
    root, _codes = damaged(name, stores, tmp_path)
    files, before = RealFiles(), golden.tree_digest(root)
    plan, pack = repair_store(files, root, new_clock(), lambda _plan: True, INDEX_ONLY)
    assert plan.left == []
    assert wrong(root) == set()
    assert not plan_repair(files, root, new_clock(), INDEX_ONLY).changes
    if pack is not None:
        undo_repair(files, root)
    assert golden.tree_digest(root) == before


LEFT = [name for name in DAMAGES if name not in MENDED and name not in {
    "a pipe in the log", "a checkpoint that is a folder", "the log",
}]  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_what_no_repair_mends_is_named_by_its_plan_and_nothing_else_stays(name, stores: Stores, tmp_path):
    root, codes = damaged(name, stores, tmp_path)
    plan, _pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True, INDEX_ONLY)
    stays = wrong(root)
    assert stays <= codes & NOT_MENDED.keys()
    of_the_disk = {"file-permission", "seal-rot-unused", "seal-unreadable"}
    assert {finding.code for finding in plan.left} == stays - of_the_disk


def test_a_store_without_its_log_is_left_alone(stores: Stores, tmp_path):
    root, _codes = damaged("the log", stores, tmp_path)
    before = golden.tree_digest(root)
    plan = plan_repair(RealFiles(), root, new_clock(), INDEX_ONLY)
    assert ([finding.code for finding in plan.left], plan.changes) == (["log-empty"], [])
    assert golden.tree_digest(root) == before


def test_every_code_is_mended_or_has_a_reason():
    shown = set().union(*(DAMAGES[name][2] for name in MENDED))
    mended = {code for code in shown | IN_GOLDEN_STORES.keys() if CODES[code].severity is not Severity.NOTE}
    wanted = {code for code, entry in CODES.items() if entry.severity is not Severity.NOTE}
    assert mended | NOT_MENDED.keys() | SETTLED_FIRST == wanted
    assert not mended & NOT_MENDED.keys()
