"""What commands read and change of groups after a kill is what a broker has that opens the store."""

from __future__ import annotations

from pathlib import Path

import pytest

from seglog import Broker, Durability, Producer
from tests.support.command_line import Seglog
from tests.support.material.stores import copy_store

QUEUES = 4


@pytest.fixture(params=[True, False], ids=["saved before", "never saved"])
def killed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A store whose broker was killed right after commits that are on the disk."""
    with Broker.open(tmp_path / "s", small=True, durability=Durability.SYNC) as broker:
        with Producer(broker) as producer:
            for number in range(40):
                producer.send("jobs", b"%d" % number, queue_id=number % QUEUES)
        broker.groups.find("workers")
        for queue_id in range(QUEUES):
            broker.offsets.commit("workers", "jobs", queue_id, 1)
        if request.param:
            broker.persist()
        for queue_id in range(QUEUES):
            broker.offsets.commit("workers", "jobs", queue_id, 5 + queue_id)
        broker.settle().wait()
        return copy_store(broker.path, tmp_path / "killed")


def offsets_of(root: Path) -> dict[int, int | None]:
    with Broker.open(root, small=True) as broker:
        return {queue_id: broker.offsets.query("workers", "jobs", queue_id) for queue_id in range(QUEUES)}


def test_commands_show_where_groups_stand(seglog: Seglog, killed: Path):
    shown = seglog("offsets", "show", killed, "--json").lines
    assert {line["queueId"]: line["offset"] for line in shown if line.get("group") == "workers"} == {
        queue_id: 5 + queue_id for queue_id in range(QUEUES)
    }


def test_a_skip_moves_the_group_in_its_queue_and_nowhere_else(seglog: Seglog, killed: Path):
    assert seglog("skip", "--apply", killed, "workers", "jobs", "0").exit_code == 0
    assert offsets_of(killed) == {0: 6, 1: 6, 2: 7, 3: 8}


def test_a_restore_goes_back_from_where_the_group_stands(seglog: Seglog, killed: Path):
    told = seglog("offsets", "reset", "--apply", killed, "workers", "jobs", "--queue", "1", "--to", "9")
    assert told.exit_code == 0, told.stderr
    assert "3 messages" in told.stdout
    assert offsets_of(killed) == {0: 5, 1: 9, 2: 7, 3: 8}


def test_a_kill_after_the_first_commit_leaves_a_store_that_is_clean(seglog: Seglog, killed: Path):
    shown = seglog("check", killed)
    assert shown.exit_code == 0, shown.stdout
    assert "result   clean" in shown.stdout
