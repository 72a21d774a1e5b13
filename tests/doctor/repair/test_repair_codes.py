"""A repair mends each fault that a check can find, or it is said here why not."""

from __future__ import annotations

import pytest

from seglog.storage.findings.code import Severity
from seglog.storage.findings.finding_codes import CODES
from tests.support.damage.broker_damage import DAMAGES
from tests.support.damage.treatment import MAKERS, damages_of, treated
from tests.support.rows import every_row

NOT_MENDED = {
    "log-empty": "nothing is left to make it of: it must come from a copy, and the queues are left alone",
    "log-file-doubled": "which of both is the log's only the operator knows",
    "log-folder": "a repair is refused until a configuration states the folders",
    "log-length-unknown": "nobody but the operator knows the length",
    "log-file-packed": "the messages are in it, so it is unpacked first",
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
    "rocksdb-damaged": "seglog does not write what RocketMQ keeps in RocksDB",
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


MENDED = [name for name, (_make, _damage, codes) in DAMAGES.items() if not codes & NOT_MENDED.keys()]
LEFT = [name for name in DAMAGES if name not in MENDED and name not in {
    "a pipe in the log", "a checkpoint that is a folder", "the log",
}]  # fmt: skip


@pytest.mark.parametrize("make", MAKERS)
def test_after_a_repair_check_finds_nothing_and_undo_brings_it_back(make):
    with every_row() as row:
        for name in filter(MENDED.__contains__, damages_of(make)):
            with row(name):
                done = treated(name)
                assert done.repair.plan["left"] == []
                assert done.after.check.wrong == set()
                assert done.after.dry_run is not None
                assert done.after.dry_run.stdout == "nothing to do\n"
                assert not done.not_undone


def test_what_no_repair_mends_is_named_by_its_plan_and_nothing_else_stays():
    with every_row() as row:
        for name in LEFT:
            with row(name):
                done = treated(name)
                stays = done.after.check.wrong
                assert stays <= DAMAGES[name][2] & NOT_MENDED.keys()
                assert {finding["code"] for finding in done.repair.plan["left"]} == stays
                assert not done.not_undone


def test_a_store_without_its_log_is_left_alone():
    done = treated("the log")
    assert [finding["code"] for finding in done.repair.plan["left"]] == ["log-empty"]
    assert done.repair.actions == []
    assert not done.written


def test_every_code_is_mended_or_has_a_reason():
    shown = set().union(*(DAMAGES[name][2] for name in MENDED))
    mended = {code for code in shown | IN_GOLDEN_STORES.keys() if CODES[code].severity is not Severity.NOTE}
    wanted = {code for code, entry in CODES.items() if entry.severity is not Severity.NOTE}
    assert mended | NOT_MENDED.keys() | SETTLED_FIRST == wanted
    assert not mended & NOT_MENDED.keys()
