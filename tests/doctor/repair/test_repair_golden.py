"""Every damaged store of RocketMQ's is repaired so that check finds nothing, and undone bit for bit."""

from __future__ import annotations

import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.repair.repair import plan_repair, repair_store
from seglog.doctor.undo.undo import undo_repair
from seglog.storage.files.files import RealFiles
from seglog.storage.findings.code import Severity
from seglog.storage.store import MessageStore
from tests.support.damage.treatment import treated
from tests.support.machine.shared import content_digest
from tests.support.material import golden
from tests.support.material.golden import tree_digest
from tests.support.material.stores import new_clock
from tests.support.rows import every_row

NOT_TOLD = {"d-nocq", "d-nocq-halt", "d-noindex", "d-noindex-halt"}
GIVEN = ("--queue-file-bytes", "2000", "--index-division", "500", "2000")
LOST = {"d-trunclast": 32, "d-zerotail": 3, "d-zerotail-halt": 3, "d-zeropage-first": 10,
        "d-zeropage-last": 11, "d-zeropage-last-halt": 11}  # fmt: skip
"""Messages that stay lost; of every other store all come back."""
BITS = {"d-bodyflip-first", "d-bodyflip-first-halt", "d-bodyflip-last", "d-propcrc-propflip", "d-propflip"}
WHOLE = sorted(BITS | {"d-magic"})


def wrong(root):
    report = check_store(root, clock=new_clock())
    return [finding.code for finding in report.findings if finding.severity is not Severity.NOTE]


def repaired(name):
    """Returns what became of a store; the lengths that none of its files shows are given."""
    return treated(name, *(GIVEN if name in NOT_TOLD else ()))


def test_damaged_store_is_repaired_and_undone():
    with every_row() as row:
        for name in golden.golden_names(damaged=True):
            with row(name):
                done = repaired(name)
                assert done.after.check.wrong == set()
                assert done.repair.plan["lost"] == LOST.get(name, 0)
                assert ("bit" in {action["action"] for action in done.repair.actions}) == (name in BITS)
                assert done.after.dry_run is not None
                assert done.after.dry_run.stdout == "nothing to do\n"
                assert "abort" not in done.repaired
                assert not done.not_undone


def test_what_can_be_known_is_written_as_rocketmq_wrote_it():
    with every_row() as row:
        for name in WHOLE:
            with row(name):
                family = "propcrc" if "propcrc" in name else "roll-halt" if name.endswith("-halt") else "roll"
                intact = content_digest(golden.shared(family))
                files = repaired(name).repaired.items()
                log = {file: content for file, content in files if file.startswith("commitlog/")}
                assert len(log) >= 2
                assert log == {file: intact[file] for file in log}


def test_nothing_is_done_to_an_intact_store_but_to_close_it():
    with every_row() as row:
        for name in golden.golden_names(damaged=False):
            with row(name):
                done = treated(name)
                kinds = {action["action"] for action in done.repair.actions}
                assert kinds <= ({"close", "spare"} if name.endswith("-halt") else set())
                assert done.repair.plan["left"] == []
                assert not done.changed


@pytest.mark.parametrize("name", ["d-nocq", "d-nocq-halt"])
def test_queue_files_whose_length_no_file_tells_are_left_to_rocketmq(name, tmp_path):
    root, files = golden.extract(name, tmp_path), RealFiles()
    before = tree_digest(root)
    plan, _pack = repair_store(files, root, new_clock(), lambda _plan: True)
    assert plan.actions[-1].kind == "rescan"
    assert plan.actions[-1].saved == 400
    assert (root / "abort").read_bytes() == b""
    assert not any((root / "checkpoint").read_bytes())
    assert not any(path.is_file() for path in (root / "consumequeue").rglob("*"))
    assert wrong(root) == ["queue-length-unknown"]
    assert [finding.code for finding in plan.left] == ["queue-length-unknown"]
    assert "rescan-due" in {finding.code for finding in check_store(root, clock=new_clock()).findings}
    assert not plan_repair(files, root, new_clock()).changes
    with MessageStore.open(root, read_only=True) as store:
        assert sum(queue.max_offset for queue in store.queues()) == 400
    undo_repair(files, root)
    assert tree_digest(root) == before


def test_index_files_whose_division_no_file_tells_are_left_to_rocketmq(tmp_path):
    root, files = golden.extract("d-noindex", tmp_path), RealFiles()
    before = tree_digest(root)
    plan, _pack = repair_store(files, root, new_clock(), lambda _plan: True)
    assert [action.kind for action in plan.actions] == ["index", "rescan"]
    assert plan.is_rescanned
    undo_repair(files, root)
    assert tree_digest(root) == before
