"""What the doctor does to single messages leaves a store that its own check finds nothing wrong with."""

from __future__ import annotations

import pytest

from seglog.cli.main import commands
from seglog.doctor.check.check import check_store
from seglog.doctor.check.verify import verify_store
from seglog.storage.findings.code import Severity
from seglog.storage.store import MessageStore
from tests.support.material.lives import TOPIC, UNIQUE, live


def wrong(path):
    return [str(one) for one in check_store(path).findings if one.severity is not Severity.NOTE]


def run(*arguments):
    commands([str(argument) for argument in arguments], standalone_mode=False)


@pytest.fixture
def life(tmp_path):
    life = live(tmp_path / "s", others=150)
    verify_store(life.path, seal=True)
    assert wrong(life.path) == []
    return life


def test_skip_and_park(life):
    run("park", life.path, UNIQUE, "--group", "audit", "--apply")
    run("skip", life.path, "audit", TOPIC, 0, "--apply")
    assert wrong(life.path) == []


def test_erase(life):
    run("erase", life.path, UNIQUE, "--apply", "--yes")
    assert wrong(life.path) == []


def test_export_and_import(life, tmp_path):
    run("export", life.path, "-o", tmp_path / "out.jsonl")
    run("import", life.path, tmp_path / "out.jsonl")
    assert wrong(life.path) == []


def test_backup_of_a_closed_and_of_an_open_store(life, tmp_path):
    run("backup", life.path, tmp_path / "cold")
    assert wrong(tmp_path / "cold") == []
    with MessageStore.open(life.path) as store:
        store.put(TOPIC, b"x")
        run("backup", life.path, tmp_path / "hot")
    # It is marked as crashed, and its queues may lack what the log has: opening it puts that right.
    assert {one.partition(" ")[0] for one in wrong(tmp_path / "hot")} <= {"queue-short", "index-short"}
    MessageStore.open(tmp_path / "hot").close()
    assert wrong(tmp_path / "hot") == []


def test_a_branch_and_its_store(life):
    run("branch", "create", life.path, "replay")
    branch = life.path / "seglog" / "branches" / "replay"
    assert wrong(life.path) == wrong(branch) == []
    with MessageStore.open(branch) as store:
        store.put(TOPIC, b"x")
    assert wrong(life.path) == wrong(branch) == []
    assert [entry.name for entry in branch.parent.iterdir()] == ["replay"]
