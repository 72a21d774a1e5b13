"""RocketMQ opens stores of which a repair made filter data or compaction logs, or left it the queues."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seglog import MessageStore
from seglog.doctor.check.check import check_store
from seglog.doctor.repair.repair import repair_store
from seglog.storage.files.files import RealFiles
from tests.interop.judging.judge import Judge
from tests.interop.judging.lines import differences, get_line
from tests.interop.judging.questions import Geometry, JavaMessages, Probe
from tests.support.damage.broker_damage import DAMAGES, compacted, real
from tests.support.material import golden
from tests.support.material.stores import new_clock

pytestmark = pytest.mark.interop

EXT: dict[str, Any] = {"enableConsumeQueueExt": True, "mappedFileSizeConsumeQueueExt": 200}
REAL = Geometry(1 << 20, 2000, 500, 2_000)
SMALL = Geometry(4096, 200, 50, 200)
COMPACTION: dict[str, Any] = {
    "topics": {"C": {"cleanup.policy": "COMPACTION"}},
    "compactionMappedFileSize": 4000,
    "compactionCqMappedFileSize": 460,
}
PROBES = [Probe(topic="C", queue_offset=at, max_count=32, decode=True) for at in (-1, 0, 7, 31, 39, 40, 99)]


def of(make):
    return [name for name, (of_store, _damage, codes) in DAMAGES.items() if of_store is make and codes & {
        "ext-missing", "ext-wrong", "ext-file", "compaction-missing", "compaction-damaged",
        "compaction-leftover", "compaction-pair", "compaction-file",
    }]  # fmt: skip


def repaired(name, tmp_path):
    make, damage, _codes = DAMAGES[name]
    root = make(tmp_path / "store")
    damage(root)
    plan, pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert (plan.left, pack is not None) == ([], True)
    return root


@pytest.mark.parametrize("name", of(compacted))
def test_compaction_topics_are_served_as_before(judge: Judge, tmp_path, name):
    root = repaired(name, tmp_path)
    with MessageStore.open(root, read_only=True) as store:
        ours = [get_line(store.get(each.topic, 0, each.queue_offset, each.max_count)) for each in PROBES]
    assert len(ours[1]["messages"]) >= 9
    # Without any file of theirs they get the lengths that RocketMQ gives them.
    config = {"topics": COMPACTION["topics"]} if name == "the own log of a compaction" else COMPACTION
    assert judge.probe(root, PROBES, SMALL, **config) == ours


def last_of_each_key(root):
    last, at = {}, 0
    with MessageStore.open(root, read_only=True) as store:
        while messages := list(result := store.get("C", 0, at, 32)):
            last |= {tuple(message.keys): message.body for message in messages}
            at = result.next_offset
    return last


COMPACTED = {
    "a log file": lambda log, _queue: log.unlink(),
    "a queue file": lambda _log, queue: queue.unlink(),
    "half of a queue file": lambda _log, queue: queue.write_bytes(queue.read_bytes()[:230]),
    "units": lambda _log, queue: queue.write_bytes(queue.read_bytes()[:92].ljust(460, b"\0")),
    "a record": lambda log, _queue: log.write_bytes(log.read_bytes()[:400].ljust(log.stat().st_size, b"?")),
}


@pytest.mark.parametrize("name", COMPACTED)
def test_a_topic_that_rocketmq_compacted_has_the_last_message_of_each_key_again(judge: Judge, tmp_path, name):
    root = tmp_path / "store"
    table = {"topicConfigTable": {"C": {"topicName": "C", "attributes": COMPACTION["topics"]["C"]}}}
    (root / "config").mkdir(parents=True)
    (root / "config" / "topics.json").write_text(json.dumps(table))
    sent = [JavaMessages(topic="C", count=30, keys="k", body_bytes=60 + life) for life in range(4)]
    judge.write(root, sent, SMALL, **COMPACTION)
    judge.compact(root, (), SMALL, **COMPACTION)
    assert check_store(root).is_clean
    wanted = last_of_each_key(root)
    assert len(wanted) == 30
    log, queue = (sorted((root / "compaction" / folder / "C" / "0").iterdir())[1]
                  for folder in ("compactionLog", "compactionCq"))  # fmt: skip
    COMPACTED[name](log, queue)
    assert not check_store(root).is_clean
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert check_store(root).is_clean
    assert last_of_each_key(root) == wanted
    with MessageStore.open(root, read_only=True) as store:
        ours = [get_line(store.get("C", 0, each.queue_offset, each.max_count)) for each in PROBES]
    assert judge.probe(root, PROBES, SMALL, **COMPACTION) == ours
    judge.compact(root, (), SMALL, **COMPACTION)
    assert last_of_each_key(root) == wanted


@pytest.mark.parametrize("name", of(real))
def test_messages_whose_filter_data_is_gone_keep_their_tags(judge: Judge, tmp_path, name):
    root = repaired(name, tmp_path)
    dump = judge.dump(root, REAL, **EXT)
    assert dump.refusal is None
    (tmp_path / "whole").mkdir()
    told = judge.dump(real(tmp_path / "whole" / "store"), REAL, **EXT).of_kind("msg")
    assert told
    assert differences(told, dump.of_kind("msg"), ignoring=("keyFound",)) == []


@pytest.mark.parametrize("queue_bytes", [2_000, 6_000_000])
@pytest.mark.parametrize("name", ["d-nocq", "d-nocq-halt"])
def test_queues_that_are_left_to_the_rescan_get_the_length_that_the_broker_has(
    judge: Judge, tmp_path, name, queue_bytes
):
    root = golden.extract(name, tmp_path)
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    dump = judge.dump(root, Geometry(64 << 10, queue_bytes, 500, 2_000))
    assert dump.refusal is None
    whole = [line for line in golden.expected(name.replace("d-nocq", "roll")) if line["kind"] == "msg"]
    assert differences(whole, dump.of_kind("msg"), ignoring=("keyFound",)) == []
