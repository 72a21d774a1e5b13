"""RocketMQ opens stores of which a repair made filter data, compaction logs or all queues again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seglog import MessageStore
from seglog.doctor.repair import repair_store
from seglog.storage.files import RealFiles
from tests.interop.judge import Geometry, Probe
from tests.interop.lines import differences, get_line
from tests.support import golden
from tests.support.broker_damage import DAMAGES, compacted, real
from tests.support.stores import new_clock

pytestmark = pytest.mark.interop

EXT = {"enableConsumeQueueExt": True, "mappedFileSizeConsumeQueueExt": 200}
REAL = Geometry(1 << 20, 2000, 500, 2_000)
SMALL = Geometry(4096, 200, 50, 200)
COMPACTION = {
    "topics": {"C": {"cleanup.policy": "COMPACTION"}},
    "compactionMappedFileSize": 4000,
    "compactionCqMappedFileSize": 460,
}
PROBES = [Probe(topic="C", queue_offset=at, max_count=32, decode=True) for at in (-1, 0, 7, 31, 39, 40, 99)]


def of(make):
    return [name for name, (of_store, _damage, codes) in DAMAGES.items() if of_store is make and codes & {
        "ext-missing", "ext-file", "compaction-missing", "compaction-damaged", "compaction-leftover",
        "compaction-pair", "compaction-file",
    }]  # fmt: skip


def repaired(name, tmp_path):
    make, damage, _codes = DAMAGES[name]
    root = make(tmp_path / "store")
    damage(root)
    plan, pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert (plan.left, pack is not None) == ([], True)
    return root


@pytest.mark.parametrize("name", of(compacted))
def test_compaction_topics_are_served_as_before(judge, tmp_path, name):
    root = repaired(name, tmp_path)
    with MessageStore.open(root, read_only=True) as store:
        ours = [get_line(store.get(each.topic, 0, each.queue_offset, each.max_count)) for each in PROBES]
    assert len(ours[1]["messages"]) >= 9
    # Without any file of theirs they get the lengths that RocketMQ gives them.
    config = {"topics": COMPACTION["topics"]} if name == "the own log of a compaction" else COMPACTION
    assert judge.probe(root, PROBES, SMALL, **config) == ours


@pytest.mark.parametrize("name", of(real))
def test_messages_whose_filter_data_is_gone_keep_their_tags(judge, tmp_path, name):
    root = repaired(name, tmp_path)
    dump = judge.dump(root, REAL, **EXT)
    assert dump.refusal is None
    (tmp_path / "whole").mkdir()
    told = judge.dump(real(tmp_path / "whole" / "store"), REAL, **EXT).of_kind("msg")
    assert told
    assert differences(told, dump.of_kind("msg"), ignoring=("keyFound",)) == []


@pytest.mark.parametrize("name", ["d-nocq", "d-nocq-halt"])
def test_queues_of_rocketmqs_length_are_served(judge, tmp_path, name):
    root = golden.extract(name, tmp_path)
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    geometry = Geometry(64 << 10, 6_000_000, 500, 2_000)
    dump = judge.dump(root, geometry)
    assert dump.refusal is None
    whole = [line for line in golden.expected(name.replace("d-nocq", "roll")) if line["kind"] == "msg"]
    assert differences(whole, dump.of_kind("msg"), ignoring=("keyFound",)) == []
    assert judge.try_lock(root, replace(geometry, queue_file_size_bytes=2_000))
