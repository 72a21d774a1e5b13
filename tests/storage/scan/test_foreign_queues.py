"""Queue folders of another store beside a healthy log: no reason for a loss, nor for a byte of the log."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.repair.repair import plan_repair, repair_store
from seglog.storage.files.files import RealFiles
from seglog.storage.findings.code import Severity
from seglog.storage.store import MessageStore
from tests.support.machine.shared import copy_tree
from tests.support.material import golden
from tests.support.material.stores import new_clock

OWN, MESSAGES = "basic", 200
LONGER = {
    "a known queue that continues": ("roll", "consumequeue/TopicA/0"),
    "the last queue that continues": ("roll", "consumequeue/order_events/3"),
    "a topic whose units lead into the log": ("outerbatch", "consumequeue/BatchTopic/1"),
    "a queue with longer files": ("broker-store", "consumequeue/rmq_sys_wheel_timer/0"),
    "a batch queue": ("innerbatch", "batchconsumequeue/BCQTopic/0"),
}
"""Store and folder of a queue."""


def with_folder(case: str, folder: Path) -> Path:
    root = golden.extract(OWN, folder)
    store, name = LONGER[case]
    if (root / name).is_dir():
        shutil.rmtree(root / name)
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    copy_tree(golden.shared(store) / name, root / name)
    return root


def with_topics(root: Path) -> Path:
    """Adds the table of a broker that knows the topics of the log alone."""
    own = sorted(path.name for path in (golden.shared(OWN) / "consumequeue").iterdir())
    (root / "config").mkdir(exist_ok=True)
    table = {"topicConfigTable": {topic: {"topicName": topic} for topic in own}}
    (root / "config" / "topics.json").write_text(json.dumps(table))
    return root


def log_of(root: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((root / "commitlog").iterdir())).rstrip(b"\0")


@pytest.mark.parametrize("case", LONGER)
def test_a_healthy_log_lost_nothing_and_stays_as_it_is(case, memory_path: Path):
    root = with_topics(with_folder(case, memory_path))
    log = log_of(root)
    report = check_store(root)
    assert (report.messages.lost, report.messages.messages) == (0, MESSAGES)
    assert all(finding.severity is not Severity.LOSS for finding in report.findings)
    opened = copy_tree(root, memory_path / "opened")
    MessageStore.open(opened, clock=new_clock(), create=False).close()
    assert log_of(opened) == log
    plan = plan_repair(RealFiles(), root, new_clock())
    assert not plan.doubt
    assert sum(action.lost_messages for action in plan.actions) == 0
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert log_of(root) == log
    for each in (root, opened):
        after = check_store(each)
        wrong = [(one.code, one.file) for one in after.findings if one.severity is not Severity.NOTE]
        # The folder stays, empty, and RocketMQ does not start with it: it has to be removed by hand.
        assert wrong == ([("queue-kind", LONGER[case][1])] if case == "a batch queue" else [])
        assert after.messages.messages == MESSAGES


@pytest.mark.parametrize(
    "case", [case for case, (store, _name) in LONGER.items() if store not in {"roll", OWN}]
)
def test_a_queue_of_a_topic_that_nothing_knows_is_named_and_moved_aside(case, memory_path: Path):
    root = with_topics(with_folder(case, memory_path))
    (stray,) = [one for one in check_store(root).findings if one.code == "queue-stray"]
    held = {path.name: path.read_bytes() for path in (root / stray.file).iterdir()}
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    moved = root / "seglog" / "stray" / stray.file
    assert {path.name: path.read_bytes() for path in moved.iterdir()} == held
    assert list((root / stray.file).iterdir()) == []


def test_several_queues_of_a_longer_log_of_other_topics_are_no_lost_end(memory_path: Path):
    root = golden.extract("propcrc", memory_path)
    other = golden.shared("outerbatch") / "consumequeue" / "BatchTopic"
    copy_tree(other, root / "consumequeue" / "BatchTopic")
    log = log_of(root)
    assert check_store(root).messages.lost == 0
    MessageStore.open(root, clock=new_clock(), create=False).close()
    assert log_of(root) == log


def test_a_lost_end_is_counted_without_topics_and_without_a_checkpoint(memory_path: Path):
    root = with_topics(golden.extract(OWN, memory_path))
    last = max((root / "commitlog").iterdir())
    content = last.read_bytes()
    last.write_bytes(bytes(len(content)))
    lost = check_store(root).messages.lost
    assert lost == 32
    (root / "checkpoint").unlink()
    shutil.rmtree(root / "index")
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": {"X": {}}}))
    assert check_store(root).messages.lost == lost


def test_units_of_expired_messages_are_no_stray_queue(memory_path: Path):
    root = with_topics(golden.extract("outerbatch", memory_path))
    (root / "commitlog" / f"{0:020d}").unlink()
    own = next((root / "consumequeue").iterdir())
    kept = {path: path.read_bytes() for path in sorted(own.glob("*/*"))}
    assert "queue-stray" not in {one.code for one in check_store(root).findings}
    assert {path: path.read_bytes() for path in sorted(own.glob("*/*"))} == kept
