"""A table that is gone with its backup is a finding where the store proves that it held something."""

from __future__ import annotations

import json

import pytest

from seglog.broker.broker import Broker
from seglog.broker.tables import as_object
from seglog.doctor.check.check import check_store
from seglog.doctor.repair.repair import plan_repair, repair_store
from seglog.storage.files.files import RealFiles
from seglog.storage.findings.code import Severity
from seglog.storage.format.config import decode_config
from tests.support.material import golden
from tests.support.material.stores import new_clock

OFFSETS, TOPICS, DELAYS = "consumerOffset.json", "topics.json", "delayOffset.json"


def wrong(root):
    report = check_store(root, clock=new_clock())
    return {(one.code, one.file) for one in report.findings if one.severity is not Severity.NOTE}


def remove(root, *names):
    for name in names:
        for path in (root / "config" / name, root / "config" / f"{name}.bak"):
            path.unlink(missing_ok=True)


def offsets(root):
    return as_object(decode_config((root / "config" / OFFSETS).read_bytes()), OFFSETS)["offsetTable"]


@pytest.fixture
def own(tmp_path):
    """A store of a broker of seglog: two groups, offsets in two queues, one of them moved twice."""
    root = tmp_path / "own"
    with Broker.open(root, clock=new_clock()) as broker:
        for number in range(20):
            broker.store.put("orders", b"x", queue_id=number % 2)
        for group, queue_id, offset in (("a", 0, 3), ("b", 1, 4), ("a", 0, 7)):
            broker.groups.find(group)
            broker.offsets.commit(group, "orders", queue_id, offset)
            broker.offsets.persist()
    return root


def test_offsets_come_back_from_their_history(own):
    held = offsets(own)
    remove(own, OFFSETS)
    assert wrong(own) == {("config-lost", f"config/{OFFSETS}")}
    plan, _pack = repair_store(RealFiles(), own, new_clock(), lambda _plan: True)
    assert plan.left == []
    assert offsets(own) == held == {"orders@a": {0: 7}, "orders@b": {1: 4}}
    assert wrong(own) == set()


def test_damaged_offsets_come_back_from_their_history_too(own):
    for name in (OFFSETS, f"{OFFSETS}.bak"):
        (own / "config" / name).write_text('{"a')
    plan, _pack = repair_store(RealFiles(), own, new_clock(), lambda _plan: True)
    assert plan.left == []
    assert offsets(own) == {"orders@a": {0: 7}, "orders@b": {1: 4}}


def test_no_repair_invents_the_offsets_of_a_rocketmq_store(tmp_path):
    root = golden.extract("real-conf-5.4.0", tmp_path)
    remove(root, OFFSETS)
    lost = ("config-lost", f"config/{OFFSETS}")
    assert wrong(root) == {lost}
    plan = plan_repair(RealFiles(), root, new_clock())
    assert [(one.code, one.file) for one in plan.left] == [lost]
    assert plan.changes == []


def test_topics_come_back_with_the_queues_that_they_have(tmp_path):
    root = golden.extract("broker-store", tmp_path)
    named = json.loads((root / "config" / TOPICS).read_text())["topicConfigTable"]
    remove(root, TOPICS)
    assert wrong(root) == {("config-lost", f"config/{TOPICS}")}
    plan, _pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert plan.left == []
    made = json.loads((root / "config" / TOPICS).read_text())["topicConfigTable"]
    assert {"LiveTopic", "%RETRY%cgretry", "%DLQ%cgodlq"} <= made.keys() <= named.keys()
    assert all(topic["readQueueNums"] <= named[name]["readQueueNums"] for name, topic in made.items())


def test_a_group_without_offsets_and_queues_without_topics_are_no_loss(tmp_path):
    with Broker.open(tmp_path, clock=new_clock()) as broker:
        broker.store.put("orders", b"x", queue_id=0)
        broker.groups.find("billing")
    assert wrong(tmp_path) == set()


@pytest.mark.parametrize("name", ["broker-store", *golden.config_names()])
def test_a_store_without_any_table_had_none(tmp_path, name):
    root = golden.extract(name, tmp_path)
    for path in [*(root / "config").glob("*.json"), *(root / "config").glob("*.json.bak")]:
        path.unlink()
    assert wrong(root) == set()


@pytest.mark.parametrize("name", [OFFSETS, TOPICS, DELAYS, "subscriptionGroup.json"])
def test_an_empty_file_with_an_empty_backup_is_lost(tmp_path, name):
    root = golden.extract("real-conf-5.4.0", tmp_path)
    for file in (name, f"{name}.bak"):
        (root / "config" / file).write_bytes(b"")
    assert wrong(root) == {("config-lost", f"config/{name}")}
